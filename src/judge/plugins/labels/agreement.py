"""Labels and verdicts side by side: read from a CSV of both, or from a run's verdict files and a file of labels."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from judge.records.metadata import metadata_in, shown
from judge.records.sites import site_of
from judge.records.verdicts import Verdict, method_of
from judge.results.agreement import LabelledVerdict, Rates, rates, required_verdicts
from judge.results.given_verdicts import JudgeName, judge_names, name_in
from judge.store.layout import TaskStore
from judge.trajectory.files import foreign_verdicts, read_result
from shared.errors import ConfigError, TrajectoryError
from shared.fields import printable
from shared.files import read_errors, read_json, read_text
from shared.models import Record
from shared.text import counted

MAX_GROUP_VALUES = 200
_NEVER_GROUPS = {"index", "id", "task_id", "trajectory_id", "episode_id"}
# In a small table even a real group may have another value in each row.
_FEW_ROWS = 10
_TOTAL = "all"
_MAX_FILE_BYTES = 256_000_000
_WORDS = {
    "1": True,
    # Spreadsheets and data frames write whole numbers like this.
    "1.0": True,
    "true": True,
    "success": True,
    # CUAVerifierBench's.
    "correct": True,
    "incorrect": False,
    "0": False,
    "0.0": False,
    "false": False,
    "failure": False,
}
# Online-Mind2Web's labels use 2 for "not executable" (HUMAN_EVALUATIONS.md in its repository).
_NO_LABEL = {"not executable", "not_executable", "2", "2.0"}
_HUMAN = "human"
# What people say of an attempt that they cannot decide, and what is made of labels that differ.
UNDECIDED: Literal["undecided"] = "undecided"
# The column for a person's note on a label in the report.
_NOTE = "note"
_OTHER_LABELS = "_human_label"
_NO_VERDICT = {"", "unscored"}
# What may separate the cells of a CSV, in words.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_DECLARED = re.compile(r'"?sep=([^"\w\s]|\t)"?;*,*', re.IGNORECASE)
_JSON_REMEDY = "write {task_id: 1} or [{task_id, human}]"
Row = Mapping[str, str]
# By task id: the label as written, and the groups.
Labels = Mapping[str, tuple[str, Mapping[str, str]]]


class Agreement(Record):
    """Rates over everything and by the values of each group column. `notes` are sentences for the reader."""

    overall: Rates
    groups: dict[str, dict[str, Rates]]
    notes: tuple[str, ...] = ()


def agreement(pairs: Sequence[LabelledVerdict]) -> Agreement:
    """Compare labels and verdicts. A column is a group unless it identifies rows: see `group_columns`."""
    comparable_pairs, notes = _without_totals(pairs, group_columns(pairs))
    groups = {}
    for column in group_columns(comparable_pairs):
        by_value: dict[str, list[LabelledVerdict]] = {}
        for pair in comparable_pairs:
            by_value.setdefault(pair.groups.get(column, ""), []).append(pair)
        groups[column] = {value: rates(by_value[value]) for value in sorted(by_value)}
    return Agreement(overall=rates(comparable_pairs), groups=groups, notes=tuple(notes))


def group_columns(pairs: Sequence[LabelledVerdict]) -> list[str]:
    """The columns whose values are groups.

    Not a group: `index`, `id`, `task_id`, `trajectory_id`, `episode_id`; a column of more than 200 values; a column
    whose value differs on each of more than 10 rows.
    """
    names = dict.fromkeys(name for pair in pairs for name in pair.groups if name not in _NEVER_GROUPS)
    values = {name: len({pair.groups.get(name, "") for pair in pairs}) for name in names}
    return [name for name, n in values.items() if n <= MAX_GROUP_VALUES and not (n == len(pairs) > _FEW_ROWS)]


def _without_totals(
    pairs: Sequence[LabelledVerdict], columns: Sequence[str]
) -> tuple[Sequence[LabelledVerdict], list[str]]:
    """Leave out total rows.

    Published tables contain the rows of each agent and the same rows again under the agent `all`. Counted twice, they
    would make every interval too narrow. They are left out only if they repeat the other rows exactly.
    """
    notes = []
    for column in columns:
        totals = [pair for pair in pairs if pair.groups.get(column) == _TOTAL]
        others = [pair for pair in pairs if pair.groups.get(column) != _TOTAL]
        rest = [name for name in columns if name != column]
        if totals and _signature(totals, rest) == _signature(others, rest):
            pairs = others
            notes.append(f"left out: {counted(len(totals), 'row')} with {column} = {_TOTAL}, the sum of other rows")
    return pairs, notes


def _signature(pairs: Sequence[LabelledVerdict], columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    return Counter(
        (pair.human, pair.judge, pair.excluded, *(pair.groups.get(name, "") for name in columns)) for pair in pairs
    )


def read_pairs(path: Path) -> list[LabelledVerdict]:
    """The rows of a CSV with the columns `human` and `judge` (0 or 1); every other column may be a group.

    A blank or `unscored` judge, a blank human and the labels `undecided` and `not executable` (or 2) are kept as
    excluded.
    """
    if path.suffix.lower() == ".json":
        raise ConfigError(
            f"{path}: JSON has labels only, and nothing to compare them with",
            remedy=f"wabe agreement --verdicts RUN --labels {path}",
        )
    rows = _csv_rows(path, ("human", "judge"))
    return [
        pair_of(row["human"], row["judge"], _others(row, ("human", "judge")), f"{path}: line {line}")
        for line, row in rows
    ]


def read_labels(path: Path, column: str = _HUMAN) -> dict[str, tuple[str, dict[str, str]]]:
    """Labels by task id, each with its groups: a CSV `task_id,human[,group…]`, or JSON.

    JSON is `{task_id: label}` or a list of objects with `task_id`, `human` and groups. `column` replaces the name
    `human`: Online-Mind2Web's `human_label.json` has one per agent (`Operator_human_label`, for short `Operator`);
    other agents' are ignored.
    """
    if path.suffix.lower() == ".json":
        column, rows = _json_rows(path, column)
    else:
        rows = _csv_rows(path, ("task_id", column))
    labels: dict[str, tuple[str, dict[str, str]]] = {}
    for line, row in rows:
        task_id = row["task_id"]
        if task_id in labels:
            raise ConfigError(f"{path}: line {line}: task {printable(task_id)} has two labels", remedy="keep one")
        groups = _others(row, (column, "task_id", _NOTE))
        labels[task_id] = (
            row[column],
            {name: value for name, value in groups.items() if not name.endswith(_OTHER_LABELS)},
        )
    return labels


def read_verdicts(
    results: Path, labels: Labels, *, labels_path: Path, method: str | None
) -> dict[str, list[LabelledVerdict]]:
    """Pairs by judge id (`<method>-<digest>`), from `<results>/<task_id>/verdicts/*.json`.

    A labelled task without a verdict of that judge is excluded as `no_verdict`. `level`, `website` and metadata are
    groups as well, unless the labels have columns of these names. Raises `ConfigError` when nothing matches.
    """
    verdicts_by_task: dict[str, dict[str, Verdict]] = {}
    folders = sorted(folder for folder in results.iterdir() if folder.name in labels)
    for folder in folders:
        # Folders of other tools contain the scores of their own evaluators.
        for judge_id, verdict in (required_verdicts(folder) | foreign_verdicts(folder)).items():
            if method in (None, judge_id, method_of(judge_id)):
                verdicts_by_task.setdefault(judge_id, {})[folder.name] = verdict
    if not verdicts_by_task:
        which = f"verdict of method {method!a}" if method else "verdict"
        raise ConfigError(
            f"{results}: no {which} for any task of {labels_path}",
            remedy="run wabe score first, and check that the task ids are the same",
        )
    facts = {folder.name: facts_of(folder) for folder in folders}
    return {
        judge_id: [
            pair_of(
                label,
                verdicts[task_id].outcome if task_id in verdicts else None,
                {**facts.get(task_id, {}), **groups},
                f"{labels_path}: task {printable(task_id)}",
            ).model_copy(update={"task_id": task_id, "reason": verdicts[task_id].reason if task_id in verdicts else ""})
            for task_id, (label, groups) in labels.items()
        ]
        for judge_id, verdicts in sorted(verdicts_by_task.items())
    }


def pair_of(human: str, judge: str | None, groups: Mapping[str, str], where: str) -> LabelledVerdict:
    """Both verdicts of one row; `judge` is `None` without a verdict. Raises `ConfigError` for an unknown label."""
    label, judge_word = human.strip().lower(), None if judge is None else judge.strip().lower()
    if label in _NO_LABEL:
        return LabelledVerdict(excluded="not_executable", groups=dict(groups))
    if label == UNDECIDED:
        return LabelledVerdict(excluded=UNDECIDED, groups=dict(groups))
    if not label:
        return LabelledVerdict(excluded="unlabelled", groups=dict(groups))
    if label not in _WORDS:
        raise ConfigError(f"{where}: human is {printable(human)}", remedy="write 1, 0, 'undecided' or 'not executable'")
    if judge_word is None or judge_word in _NO_VERDICT:
        return LabelledVerdict(excluded="no_verdict" if judge_word is None else "unscored", groups=dict(groups))
    if judge_word not in _WORDS:
        raise ConfigError(f"{where}: judge is {printable(judge)}", remedy="write 1, 0 or 'unscored'")
    return LabelledVerdict(human=_WORDS[label], judge=_WORDS[judge_word], groups=dict(groups))


def _others(row: Row, columns: tuple[str, ...]) -> dict[str, str]:
    return {name: value.strip() for name, value in row.items() if name not in columns}


def _csv_rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, Row]]:
    """Line numbers and rows of a CSV, all cells present; separated by commas, semicolons, tabs, or as `sep=` says."""
    with read_errors(path, "give a CSV file in UTF-8"):
        text = read_text(path, max_bytes=_MAX_FILE_BYTES)
    # `newline=""` keeps line breaks in quoted cells unchanged.
    stream = io.StringIO(text, newline="")
    separator = _separator(stream, needed)
    above = text[: stream.tell()].count("\n")
    reader = csv.reader(stream, delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in needed:
            if header.count(name) != 1:
                problem = "no column" if name not in header else "two columns"
                raise ConfigError(
                    f"{path}: {problem} {name!r}; the columns are {', '.join(map(printable, header[:20])) or 'none'}",
                    remedy=f"name the columns in the first line, {','.join(needed)} among them",
                )
        rows: list[tuple[int, Row]] = []
        for cells in reader:
            if cells and len(cells) != len(header):
                raise ConfigError(
                    f"{path}: line {above + reader.line_num}: {counted(len(cells), 'cell')}, "
                    f"but {counted(len(header), 'column')}",
                    remedy=f"quote cells that hold {_SEPARATORS.get(separator, separator)}",
                )
            if cells:
                rows.append((above + reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise ConfigError(
            f"{path}: line {above + reader.line_num}: not CSV: {error}", remedy="correct that line"
        ) from None
    if not rows:
        raise ConfigError(f"{path}: no rows", remedy="add a line for each trajectory")
    return rows


def _separator(stream: io.StringIO, needed: tuple[str, ...]) -> str:
    """What separates the cells of a CSV; the stream is then at the line with the columns' names.

    Spreadsheets in some languages write semicolons, and a first line `sep=;` that says so.
    """
    first = stream.readline()
    if declared := _DECLARED.fullmatch(first.strip("\ufeff\r\n")):
        return declared[1]
    stream.seek(0)
    columns = {each: _names_in(first, each) for each in _SEPARATORS}
    fitting = [each for each in columns if all(name in columns[each] for name in needed)]
    return fitting[0] if fitting else max(columns, key=lambda each: len(columns[each]))


def _names_in(line: str, separator: str) -> list[str]:
    """The names of a CSV's columns; none for a line that is not CSV, which reading the file reports."""
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def _json_rows(path: Path, column: str) -> tuple[str, list[tuple[int, Row]]]:
    """The column of labels, and the rows with their numbers."""
    with read_errors(path, "give a file of labels"):
        try:
            value = read_json(path, max_bytes=_MAX_FILE_BYTES)
        except json.JSONDecodeError as error:
            why = f"line {error.lineno}: not JSON: {error.msg}"
            raise ConfigError(f"{path}: {why}", remedy="correct that line") from None
    items = [{"task_id": key, column: label} for key, label in value.items()] if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        raise ConfigError(f"{path}: no labels", remedy=_JSON_REMEDY)
    column = _label_column(path, items[0], column)
    rows: list[tuple[int, Row]] = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict) or not isinstance(item.get("task_id"), str) or column not in item:
            raise ConfigError(
                f"{path}: label {number} has no task_id or no {column}", remedy="write both, or give --label-column"
            )
        if isinstance(item[column], dict | list):
            raise ConfigError(
                f"{path}: not labels: {printable(item['task_id'])} has no single value", remedy=_JSON_REMEDY
            )
        rows.append((number, {str(key): "" if cell is None else str(cell) for key, cell in item.items()}))
    return column, rows


def _label_column(path: Path, first: object, column: str) -> str:
    """The column of labels, in Online-Mind2Web's file its only agent's."""
    agents = [str(key) for key in first if str(key).endswith(_OTHER_LABELS)] if isinstance(first, dict) else []
    if not agents or not isinstance(first, dict) or column in first:
        return column
    if f"{column}{_OTHER_LABELS}" in agents:
        return f"{column}{_OTHER_LABELS}"
    if column == _HUMAN and len(agents) == 1:
        return agents[0]
    raise ConfigError(
        f"{path}: labels of {counted(len(agents), 'agent')}: {', '.join(map(printable, agents[:20]))}",
        remedy=f"choose one, such as --label-column {agents[0]}",
    )


def facts_of(folder: Path) -> dict[str, str]:
    """A task's level, website and metadata, if its result has them."""
    try:
        result = read_result(folder)
    except TrajectoryError:
        return {}
    website = result.get("website")
    facts = {"level": result.get("level"), "website": site_of(website) if isinstance(website, str) else None}
    metadata = {key: shown(value) for key, value in metadata_in(result.get("metadata") or {}).items()}
    return metadata | {name: value for name, value in facts.items() if isinstance(value, str)}


def names_in(folders: Iterable[Path], judge_ids: Iterable[str]) -> dict[str, JudgeName]:
    """The names of judges that gave verdicts on the tasks in these folders."""
    names = dict.fromkeys(judge_ids, "")
    for folder in folders:
        for judge_id in [judge_id for judge_id, name in names.items() if not name]:
            # A verdict that cannot be read is reported where it is needed.
            if (verdict := TaskStore(folder).read_verdict(judge_id)) is not None:
                names[judge_id] = name_in(verdict, judge_id)
        if all(names.values()):
            break
    return judge_names({judge_id: name or judge_id for judge_id, name in names.items()})
