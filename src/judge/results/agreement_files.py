"""Reads labels and verdicts for comparison: a CSV of both, or a run's verdict files and a file of labels."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.files import read_json, read_text, reason_of
from judge.off_site import site_of
from judge.results.agreement import Pair
from shared.errors import ConfigError
from shared.fields import shown
from shared.models import Verdict

MAX_FILE_BYTES = 256_000_000
_WORDS = {
    "1": True,
    "1.0": True,
    "true": True,
    "success": True,
    "0": False,
    "0.0": False,
    "false": False,
    "failure": False,
}
# 2 is the word of Online-Mind2Web's own labels for it (HUMAN_EVALUATIONS.md of its repository).
_NO_LABEL = {"not executable", "not_executable", "2", "2.0"}
_HUMAN = "human"
_OTHER_LABELS = "_human_label"
_NO_VERDICT = {"", "unscored"}

Row = Mapping[str, str]
# By task id: the label as it was written, and the groups.
Labels = Mapping[str, tuple[str, Mapping[str, str]]]


def read_pairs(path: Path) -> list[Pair]:
    """The rows of a CSV with the columns `human` and `judge` (0 or 1); every other column may be a group.

    A blank or `unscored` judge, a blank human and the label `not executable` (or 2) are kept as excluded.
    """
    rows = _csv_rows(path, ("human", "judge"))
    return [
        pair_of(row["human"], row["judge"], _others(row, ("human", "judge")), f"{path}: line {line}")
        for line, row in rows
    ]


def read_labels(path: Path, column: str = _HUMAN) -> dict[str, tuple[str, dict[str, str]]]:
    """Labels by task id, each with its groups: a CSV `task_id,human[,group…]`, or JSON.

    JSON is `{task_id: label}` or a list of objects with `task_id`, `human` and groups. `column` is another name for
    `human`: Online-Mind2Web's own file has one for each agent (`Operator_human_label`); those of others are no groups.
    """
    rows = _json_rows(path, column) if path.suffix.lower() == ".json" else _csv_rows(path, ("task_id", column))
    labels: dict[str, tuple[str, dict[str, str]]] = {}
    for line, row in rows:
        task_id = row["task_id"]
        if task_id in labels:
            raise ConfigError(f"{path}: line {line}: task {shown(task_id)} has two labels", remedy="keep one")
        groups = _others(row, (column, "task_id"))
        labels[task_id] = (
            row[column],
            {name: value for name, value in groups.items() if not name.endswith(_OTHER_LABELS)},
        )
    return labels


def read_verdicts(results: Path, labels: Labels, *, labels_path: Path, method: str | None) -> dict[str, list[Pair]]:
    """Pairs by judge id (`<method>-<digest>`), from `<results>/<task_id>/verdicts/*.json`.

    A labelled task without a verdict of that judge is excluded as `no_verdict`. `level` and `website` are groups as
    well, unless the labels have columns of these names. Raises `ConfigError` when nothing matches.
    """
    found: dict[str, dict[str, Verdict]] = {}
    folders = sorted(folder for folder in results.iterdir() if folder.name in labels)
    for folder in folders:
        for path in sorted((folder / "verdicts").glob("*.json")):
            if method in (None, path.stem, path.stem.rpartition("-")[0]):
                found.setdefault(path.stem, {})[folder.name] = _verdict(path)
    if not found:
        which = f"verdict of method {method!a}" if method else "verdict"
        raise ConfigError(
            f"{results}: no {which} for any task of {labels_path}",
            remedy="run wabe score first, and check that the task ids are the same",
        )
    facts = {folder.name: _facts(folder) for folder in folders}
    return {
        judge_id: [
            pair_of(
                label,
                verdicts[task_id].outcome if task_id in verdicts else None,
                {**facts.get(task_id, {}), **groups},
                f"{labels_path}: task {shown(task_id)}",
            )
            for task_id, (label, groups) in labels.items()
        ]
        for judge_id, verdicts in sorted(found.items())
    }


def pair_of(human: str, judge: str | None, groups: Mapping[str, str], where: str) -> Pair:
    """One row as a pair; `judge` is `None` where there is no verdict. Raises `ConfigError` for any other word."""
    label, verdict = human.strip().lower(), None if judge is None else judge.strip().lower()
    if label in _NO_LABEL:
        return Pair(excluded="not_executable", groups=dict(groups))
    if not label:
        return Pair(excluded="unlabelled", groups=dict(groups))
    if label not in _WORDS:
        raise ConfigError(f"{where}: human is {shown(human)}", remedy="write 1, 0 or 'not executable'")
    if verdict is None or verdict in _NO_VERDICT:
        return Pair(excluded="no_verdict" if verdict is None else "unscored", groups=dict(groups))
    if verdict not in _WORDS:
        raise ConfigError(f"{where}: judge is {shown(judge)}", remedy="write 1, 0 or 'unscored'")
    return Pair(human=_WORDS[label], judge=_WORDS[verdict], groups=dict(groups))


def _others(row: Row, taken: tuple[str, ...]) -> dict[str, str]:
    return {name: value.strip() for name, value in row.items() if name not in taken}


def _csv_rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, Row]]:
    """Line numbers and rows of a CSV, all cells present."""
    try:
        text = read_text(path, max_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy="give a CSV file in UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in needed:
            if header.count(name) != 1:
                problem = "no column" if name not in header else "two columns"
                raise ConfigError(
                    f"{path}: {problem} {name!r}; the columns are {', '.join(map(shown, header[:20])) or 'none'}",
                    remedy=f"name the columns in the first line, {','.join(needed)} among them",
                )
        rows: list[tuple[int, Row]] = []
        for cells in reader:
            if cells and len(cells) != len(header):
                raise ConfigError(
                    f"{path}: line {reader.line_num}: {len(cells)} cells, but {len(header)} columns",
                    remedy="quote cells that hold a comma",
                )
            if cells:
                rows.append((reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.line_num}: not CSV: {error}", remedy="correct that line") from None
    if not rows:
        raise ConfigError(f"{path}: no rows", remedy="add a line for each trajectory")
    return rows


def _json_rows(path: Path, column: str) -> Iterable[tuple[int, Row]]:
    try:
        value = read_json(path, max_bytes=MAX_FILE_BYTES)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: line {error.lineno}: not JSON: {error.msg}", remedy="correct that line") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy="give a file of labels") from None
    items = [{"task_id": key, column: label} for key, label in value.items()] if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        raise ConfigError(f"{path}: no labels", remedy="write {task_id: 1} or [{task_id, human}]")
    rows = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict) or not isinstance(item.get("task_id"), str) or column not in item:
            raise ConfigError(
                f"{path}: label {number} has no task_id or no {column}", remedy="write both, or give --label-column"
            )
        rows.append((number, {str(key): _word(cell) for key, cell in item.items()}))
    return rows


def _word(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _verdict(path: Path) -> Verdict:
    try:
        return Verdict.model_validate(read_json(path))
    except ValidationError:
        raise ConfigError(f"{path}: not a verdict", remedy="remove it and run wabe score again") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy="remove it and run wabe score again") from None


def _facts(folder: Path) -> dict[str, str]:
    """A task's level and website, where its result tells them."""
    try:
        result = read_json(folder / "result.json")
    except (OSError, ValueError):
        return {}
    if not isinstance(result, dict):
        return {}
    website = result.get("website")
    facts = {"level": result.get("level"), "website": site_of(website) if isinstance(website, str) else None}
    return {name: value for name, value in facts.items() if isinstance(value, str)}
