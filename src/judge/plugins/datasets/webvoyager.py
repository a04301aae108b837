"""WebVoyager: `{"web_name", "id", "ques", "web"}` in each line of a JSON lines file."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from judge.plugins.datasets.rows import (
    Notes,
    given_file,
    is_address,
    metadata_of,
    read_rows,
    tasks_from,
    text_of,
    usable_id,
)
from judge.scenario.importers import ImportedTasks, Importer, ImportRequest

_WHAT = "WebVoyager's JSON lines file, such as WebVoyager_data.jsonl"
# Its tasks ask for answers, and its own judge sees them.
_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {"max_steps": 15, "judge_method": "webvoyager", "judge_sees_answer": True}
)


def import_tasks(request: ImportRequest) -> ImportedTasks:
    """The tasks of the file. Raises `ConfigError`."""
    path, notes = given_file(request, _WHAT), Notes()

    def table_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
        name = row.get("id")
        if not is_address(row.get("web")):
            notes.add("without the address of a website", name)
            return None
        table = {"task_id": usable_id(name), "website": text_of(row["web"]), "task": text_of(row.get("ques"))}
        return table | metadata_of(row, "web_name")

    tasks = tasks_from(read_rows(path, f"give {_WHAT}"), table_of, notes, request=request, source=path)
    return ImportedTasks(tasks, _SETTINGS, notes=notes.lines())


IMPORTER = Importer(run=import_tasks, takes=("path", "names"))
