"""What importers of published files share: rows of a file, usable ids, and notes about what is left out."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from judge.records.metadata import metadata_in
from judge.records.tasks import Task
from judge.scenario.importers import ImportRequest
from judge.scenario.models import TASKS
from judge.scenario.sources import dataset_records
from judge.scenario.toml import select
from shared.errors import ConfigError
from shared.fields import printable
from shared.files import read_errors, read_file
from shared.text import clip, counted
from shared.validation import validated

MAX_POINT_CHARS = 1_000
_MAX_TASK_CHARS = 10_000
_MAX_ID_CHARS = 128
_MAX_NAMED = 5


@dataclass
class Notes:
    """Rows left out and texts cut, by reason, with the first few ids."""

    ids_by_reason: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: object) -> None:
        """Note it for one row."""
        self.ids_by_reason.setdefault(reason, []).append(printable(str(name)))

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [
            f"{counted(len(names), 'row')}: {reason}: {', '.join(names[:_MAX_NAMED])}"
            f"{', …' if len(names) > _MAX_NAMED else ''}"
            for reason, names in self.ids_by_reason.items()
        ]


def given_file(request: ImportRequest, what: str) -> Path:
    """The file or folder that the command names. Raises `ConfigError` without one."""
    if request.path is None:
        raise ConfigError(f"no file given: this source needs {what}", remedy="name it after the source")
    return request.path


def read_rows(path: Path, remedy: str) -> list[object]:
    """The records of a JSON or JSON lines file. Raises `ConfigError`."""
    with read_errors(path, remedy):
        content = read_file(path)
    return dataset_records(content, str(path))


def usable_id(value: object) -> str:
    """An id as a folder name: `Google Map--1` is `Google_Map--1`. Empty if nothing is left of it."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(value if value is not None else "").strip()).strip("_")[:_MAX_ID_CHARS]


def is_address(value: object) -> bool:
    """Whether it is the address of a page."""
    try:
        return isinstance(value, str) and urlsplit(value.strip()).scheme in ("http", "https") and "//" in value
    except ValueError:
        return False


def text_of(value: object) -> str:
    """A text without surrounding space; empty for anything else."""
    return value.strip() if isinstance(value, str) else ""


def metadata_of(row: Mapping[str, Any], *columns: str, **renamed: str) -> dict[str, Any]:
    """The key `metadata` of a task's table with the values of these columns, as far as they are usable."""
    values = {key: row.get(column) for key, column in {**dict(zip(columns, columns, strict=True)), **renamed}.items()}
    usable = {key: value for key, value in values.items() if metadata_in({key: value})}
    return {"metadata": usable} if usable else {}


def tasks_from(
    rows: Iterable[object],
    table_of: Callable[[Mapping[str, Any]], dict[str, Any] | None],
    notes: Notes,
    *,
    request: ImportRequest,
    source: Path,
) -> tuple[Task, ...]:
    """The tasks of the rows that `table_of` makes tables of; it returns `None` for a row that it leaves out and notes.

    Rows other than tables, without an id or the id of an earlier row are left out and noted. Raises `ConfigError`, also
    if no task is left.
    """
    tables: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            notes.add("not a table", f"row {number}")
            continue
        if (table := table_of(row)) is None:
            continue
        if not (task_id := table["task_id"]):
            notes.add("without a usable id", f"row {number}")
        elif task_id in tables:
            notes.add("the id of an earlier row", task_id)
        elif not table["task"]:
            notes.add("without the text of a task", task_id)
        else:
            tables[task_id] = table | {"task": clip(table["task"], _MAX_TASK_CHARS)}
    selection = _select(tables, request.names)
    if not selection:
        raise ConfigError(f"{source}: no task is left", remedy="; ".join(notes.lines()) or "give another file")
    return select(validated(TASKS, selection, source, under=("row",)), level=request.level, limit=request.limit)


def _select(tables: Mapping[str, dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    ids = [usable_id(name) for text in names for name in text.split(",") if name.strip()]
    if unknown := [name for name in ids if name not in tables]:
        raise ConfigError(f"--tasks: no task {printable(unknown[0])}", remedy="give ids of the file")
    return [tables[name] for name in dict.fromkeys(ids)] if ids else list(tables.values())


class WeightedText(NamedTuple):
    """A key point as a dataset has it. With a `condition`, it counts only where that holds."""

    text: str
    weight: float = 1
    condition: str = ""


def weighted_points(items: Sequence[WeightedText], notes: Notes, task_id: str) -> list[Any]:
    """Key points as tables or, without weight and condition, as texts; overlong texts are cut and noted."""
    counts = Counter(item.text for item in items)
    points: list[Any] = []
    for text, weight, condition in items:
        if max(len(text), len(condition)) > MAX_POINT_CHARS:
            notes.add(f"a key point is cut to {MAX_POINT_CHARS} characters", task_id)
        if counts[text] > 1:
            notes.add("a key point is there twice", task_id)
        cut = clip(text, MAX_POINT_CHARS)
        only_if = {"condition": clip(condition, MAX_POINT_CHARS)} if condition else {}
        points.append(cut if weight == 1 and not only_if else {"text": cut, "weight": weight, **only_if})
    return points
