"""WebTailBench: tab-separated, with a rubric in JSON in each row, whose criteria become weighted key points.

Columns: `id`, `task_summary`, `init_url` (may be empty), `precomputed_rubric` (`{"items": [{"criterion", "description",
"max_points", "condition"}]}`), `benchmark` (the category). JSON lines with the same keys are read as well.
"""

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.plugins.datasets.rows import (
    Notes,
    WeightedText,
    given_file,
    is_address,
    metadata_of,
    read_rows,
    tasks_from,
    text_of,
    usable_id,
    weighted_points,
)
from judge.records.key_points import MAX_WEIGHT
from judge.scenario.importers import ImportedTasks, Importer, ImportRequest
from shared.errors import ConfigError
from shared.fields import as_mapping, as_mappings
from shared.files import decode, read_errors, read_file
from shared.strict_json import parse_json

_WHAT = "WebTailBench's file with rubrics, such as WebTailBench-v2-rubrics.tsv"
# Where tasks begin that name no website.
_START = "https://www.bing.com/"
_MAX_POINTS = 50
_SETTINGS: Mapping[str, Any] = MappingProxyType({"max_steps": 50, "judge_method": "rubric", "judge_sees_answer": True})


def import_tasks(request: ImportRequest) -> ImportedTasks:
    """The tasks of the file. Raises `ConfigError`."""
    path, notes = given_file(request, _WHAT), Notes()
    rows = _rows(path)

    def table_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
        task_id = usable_id(row.get("id"))
        website = text_of(row.get("init_url"))
        if not is_address(website):
            notes.add(f"without a website, so it begins at {_START}", task_id)
            website = _START
        instruction = text_of(row.get("task_summary") or row.get("ques"))
        table: dict[str, Any] = {"task_id": task_id, "website": website, "task": instruction}
        table |= metadata_of(row, category="benchmark")
        if points := _points(row.get("precomputed_rubric"), notes, task_id):
            table["key_points"] = points
        return table

    tasks = tasks_from(rows, table_of, notes, request=request, source=path)
    return ImportedTasks(tasks, _SETTINGS, notes=notes.lines())


def _rows(path: Path) -> list[object]:
    if path.suffix.lower() in (".json", ".jsonl"):
        return read_rows(path, f"give {_WHAT}")
    with read_errors(path, f"give {_WHAT}"):
        text = decode(read_file(path))
    rows: list[object] = list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t"))
    if rows and "task_summary" not in as_mapping(rows[0]):
        raise ConfigError(f"{path}: no column task_summary", remedy=f"give {_WHAT}, with tabs between its columns")
    return rows


def _points(rubric: object, notes: Notes, task_id: str) -> list[Any]:
    """The criteria as weighted key points. Without a usable one, the judge model writes its own."""
    if isinstance(rubric, str) and rubric.strip():
        try:
            rubric = parse_json(rubric)
        except (ValueError, json.JSONDecodeError):
            notes.add("its rubric is not JSON, so it has none", task_id)
            return []
    items = as_mappings(as_mapping(rubric).get("items"))
    if not items:
        notes.add("without a rubric", task_id)
        return []
    criteria = []
    for item in items:
        points = item.get("max_points", item.get("maxPoints"))
        is_usable = isinstance(points, int | float) and not isinstance(points, bool) and math.isfinite(points)
        if not is_usable or not 0 < points <= MAX_WEIGHT or not (text := _text(item)):
            notes.add("a criterion without text or points is left out", task_id)
            continue
        criteria.append(WeightedText(text, float(points), text_of(item.get("condition"))))
    if len(criteria) > _MAX_POINTS:
        notes.add(f"more than {_MAX_POINTS} criteria, of which the heaviest are kept", task_id)
        heaviest = sorted(criteria, key=lambda each: -each.weight)[:_MAX_POINTS]
        criteria = [each for each in criteria if each in heaviest][:_MAX_POINTS]
    return weighted_points(criteria, notes, task_id)


def _text(item: Mapping[str, Any]) -> str:
    head, more = text_of(item.get("criterion")), text_of(item.get("description"))
    return ": ".join(filter(None, (head, more if more != head else "")))


IMPORTER = Importer(run=import_tasks, takes=("path", "names"))
