"""A run as a table of attempts, for files, Markdown and Python; docs/formats.md describes its columns."""

import csv
import io
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.records.assertions import assertions_in
from judge.records.verdicts import Verdict
from judge.results.attacks import attack_text
from judge.results.columns import RowSource
from judge.results.figures import Figures
from judge.results.folders import FoundTask
from judge.results.identity import player
from judge.results.metering import Metering
from judge.results.part import RunPart, parts_of
from judge.results.policies import policy_text
from judge.results.rates import CountedAttempt
from judge.results.rows import COLUMNS, EXCLUDED, AttemptRow
from judge.results.run_record import excluded_by_scenario, judge_id_of
from judge.results.submission import incomplete_note, rate_text
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import read_result
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError
from shared.imports import optional_package
from shared.models import Record
from shared.text import counted, one_line, show_hidden, without_surrogates

# Spreadsheets treat cells beginning with one of these as formulas. A leading apostrophe is the usual defence.
_FORMULA_STARTS = tuple("=+-@＝＋－＠")
# Texts and lists are of the type VARCHAR.
_SQL_TYPES: Mapping[type, str] = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}

# The order of outcomes in the summary.
_ORDER = ("failure", "aborted", "unscored", "success")
_MAX_WHY_CHARS = 200
# Continuous integration services refuse job summaries of more than a megabyte.
_MAX_ROWS = 1000


class CheckRow(Record):
    """One check of an attempt; `passed` is `None` if it could not be decided, `step` is where it first passed."""

    run_id: str
    task_id: str
    epoch: int
    number: int
    check: str
    description: str
    passed: bool | None
    expected: str
    found: str
    step: int | None


class TableAttempt(NamedTuple):
    """An attempt with its row and its checks, in the order of the task's declaration."""

    row: AttemptRow
    checks: tuple[CheckRow, ...]
    attempt: Attempt


class Unreadable(NamedTuple):
    """A task whose record is damaged, with the reason."""

    task_id: str
    reason: str


def table_of(store: RunStore) -> Iterator[TableAttempt | Unreadable]:
    """The attempts of a run, or of another tool's folder. Unfinished tasks are left out."""
    record = store.read_run() or {}
    metering, parts = Metering.of(store), parts_of(store)
    for task in store.tasks():
        if not isinstance(task, FoundTask) and not (task.folder / "result.json").exists():
            continue
        try:
            yield _tabled(store.run_id, record, task, metering, parts)
        except TrajectoryError as error:
            yield Unreadable(task.name, error.message)


def _tabled(
    run_id: str, record: Mapping[str, Any], task: TaskStore, metering: Metering | None, parts: Sequence[RunPart]
) -> TableAttempt:
    if isinstance(task, FoundTask):
        attempt, sha256, judge_id = task.attempt(), None, task.judge_id or ""
    else:
        result = read_result(task.folder)
        attempt = Attempt.from_json(result, source=str(task.folder / "result.json"))
        sha256, judge_id = result.get("trajectory_sha256"), judge_id_of(record, task.name, task.epoch)
    verdict = task.read_verdict(judge_id)
    # Ignore a verdict on another trajectory.
    if verdict is None or attempt.verdict is None or (sha256 and verdict.trajectory_sha256 != sha256):
        verdict = attempt.verdict
    row = AttemptRow.of(
        RowSource(
            attempt,
            task.name,
            task.epoch,
            verdict,
            metered=metering.of_attempt(attempt) if metering else None,
            judge_id=judge_id,
            sha256=sha256,
            run_id=run_id,
            record=record,
            folder=task.folder,
            parts=parts,
        )
    )
    return TableAttempt(row, tuple(_checks(row, verdict)), attempt)


def left_out_rows(run_id: str, record: Mapping[str, Any]) -> list[AttemptRow]:
    """A row without an attempt, of the verdict `excluded`, for each task that the run's scenario excludes."""
    return [
        AttemptRow.without_attempt(
            # They took no time.
            **dict.fromkeys(("duration_s", "observe_s", "reply_s", "act_s"), 0.0),
            run_id=run_id,
            task_id=str(each.get("task_id")),
            verdict=EXCLUDED,
            excluded=str(each.get("reason")),
        )
        for each in excluded_by_scenario(record)
    ]


def _checks(row: AttemptRow, verdict: Verdict | None) -> Iterator[CheckRow]:
    """The results of the checks, if they decided the attempt; only the verdict's file has them."""
    for number, each in enumerate(assertions_in(verdict), 1):
        of_task = {"run_id": row.run_id, "task_id": row.task_id, "epoch": row.epoch, "number": number}
        yield CheckRow.model_validate(of_task | each.model_dump(include=set(CheckRow.model_fields)))


def csv_of(rows: Iterable[AttemptRow]) -> str:
    """The rows as CSV with a header. No cell is read as a formula by a spreadsheet."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.name for column in COLUMNS)
    writer.writerows(map(_cell, row.cells().values()) for row in rows)
    return stream.getvalue()


def jsonl_of(rows: Iterable[AttemptRow]) -> str:
    """The rows as JSON lines: one object with every column per line, in ASCII."""
    plain = ({name: _encodable(value) for name, value in row.cells().items()} for row in rows)
    return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in plain)


def json_of(rows: Iterable[AttemptRow]) -> str:
    """The rows as a list of objects; lists stay lists, and each category comes with the fact it was derived from."""
    return json.dumps([row.values() for row in rows], indent=1, allow_nan=False)


def _encodable(value: Any) -> Any:
    return without_surrogates(value) if isinstance(value, str) else value


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return not_a_formula(show_hidden(value)) if isinstance(value, str) else value


def not_a_formula(text: str) -> str:
    """The text for a CSV cell, with an apostrophe before it if a spreadsheet would read it as a formula."""
    # A tab or line break at the beginning is dangerous by itself (OWASP, CSV injection).
    could_be = text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA_STARTS)
    return f"'{text}" if could_be else text


def parquet_of(rows: Iterable[AttemptRow]) -> bytes:
    """The rows as a Parquet file. Raises `ConfigError` when DuckDB is not installed."""
    with optional_package("--format parquet needs DuckDB", "leaderboard"):
        # Imported here because the import is slow.
        import duckdb
    columns = ", ".join(f"{column.name} {_SQL_TYPES.get(column.type, 'VARCHAR')}" for column in COLUMNS)
    marks = ", ".join("?" * len(COLUMNS))
    values = [[_encodable(value) for value in row.cells().values()] for row in rows]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        path = Path(folder, "attempts.parquet")
        connection.execute(f"CREATE TABLE attempts ({columns})")
        if values:
            connection.executemany(f"INSERT INTO attempts VALUES ({marks})", values)
        connection.execute("COPY attempts TO '{}' (FORMAT parquet)".format(str(path).replace("'", "''")))
        return path.read_bytes()


def markdown(
    rows: Sequence[AttemptRow],
    missing: Collection[tuple[str, int]] = (),
    left_out: Sequence[Mapping[str, Any]] = (),
    remarks: Iterable[str] = (),
) -> str:
    """The participant and scenario, the success rate, and a table of the attempts, failures first.

    `missing` are the run's tasks and epochs without a result, which count as failures in the rate of all tasks;
    `left_out`, the tasks that the scenario excludes, do not. `remarks` are lines of the run's parts.
    """
    without = (CountedAttempt(task, "aborted") for task, _ in missing)
    figures = Figures.of([*(row.counted for row in rows), *without])
    counts = figures.all.published()
    lines = ["### WABE: " + (_code(rows[0].scenario or rows[0].run_id) if rows else "no results"), ""]
    if rows:
        first = rows[0]
        known = {"name": first.name, "card_name": first.agent, "card_version": first.agent_version}
        lines += [f"Participant: {_code(player({**known, 'model': first.model}, first.participant))}", ""]
    note = incomplete_note(counts)
    of_all = f"of all tasks: {counts['success_rate_of_all']} %"
    lines += [f"**{rate_text(counts)}**; {of_all}{f' ({note})' if note else ''}", ""]
    lines += [line for each in remarks if each for line in (each, "")]
    if figures.policies:
        lines += [f"{policy_text(figures.policies.published())}", ""]
    if figures.attacks:
        lines += [f"{attack_text(figures.attacks.published())}", ""]
    if missing:
        lines += [f"{len(missing)} of {counted(counts['attempts'], 'attempt')} without a result: see the run.", ""]
    excluded = {row.task_id: row.excluded for row in rows if row.excluded is not None}
    for by, reasons in (
        ("this run", excluded),
        ("the scenario", {str(each.get("task_id")): str(each.get("reason")) for each in left_out}),
    ):
        if reasons:
            reasons_text = "; ".join(f"{_code(task_id)}: {_code(reason)}" for task_id, reason in reasons.items())
            lines += [f"Excluded by {by}: {reasons_text}", ""]
    lines += ["| verdict | task | level | steps | seconds | why |", "|---|---|---|--:|--:|---|"]
    for row in sorted(rows, key=lambda row: _ORDER.index(row.verdict))[:_MAX_ROWS]:
        reason = f"excluded: {row.excluded}" if row.excluded is not None else row.reason or row.error or row.stop_reason
        why = "" if row.verdict == "success" else _code(reason)
        cells = (
            row.verdict,
            _code(row.key),
            row.level or "",
            row.steps,
            "" if row.duration_s is None else f"{row.duration_s:.1f}",
            why,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [f"\n… {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else []
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """The text as a code span, so that links, images, mentions or HTML from a participant or page have no effect."""
    # Escaping a bar does not work: after a backslash in the text it would still end the cell.
    code_text = one_line(without_surrogates(text), _MAX_WHY_CHARS).replace("`", "'").replace("|", "¦")
    return f"`{code_text}`" if code_text else ""
