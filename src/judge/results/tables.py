"""A run as a table of attempts, for files, Markdown and Python; docs/export.md describes its columns."""

import csv
import io
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, get_args

from judge.evaluators.base import assertions_in
from judge.records.tasks import key_of
from judge.records.verdicts import JudgeInfo
from judge.results.folders import FoundTask
from judge.results.identity import identity_in, player
from judge.results.rewards import reward_of
from judge.results.run_record import excluded_by_scenario, judge_id_of
from judge.results.submission import EXCLUDED, counts_of, decided_by, incomplete_note, rate_text
from judge.scenario.miniwob.rewards import success_rule
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import read_result
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError
from shared.imports import optional_package
from shared.models import Record
from shared.text import counted, one_line, show_hidden, without_surrogates

# Spreadsheets treat cells beginning with one of these as formulas. A leading apostrophe is the usual defence.
_FORMULA_STARTS = tuple("=+-@＝＋－＠")
_SQL_TYPES: Mapping[type, str] = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}

# The order of outcomes in the summary.
_ORDER = ("failure", "aborted", "unscored", "success")
_MAX_WHY_CHARS = 200
# Continuous integration services refuse job summaries of more than a megabyte.
_MAX_ROWS = 1000


class AttemptRow(Record):
    """The attempt that counts for one task in one epoch. The order of the columns is part of the format."""

    run_id: str
    task_id: str
    epoch: int
    attempt: int
    website: str
    level: str | None
    reference_length: int | None
    task: str
    verdict: str
    success: bool | None
    decided_by: str
    reason: str | None
    reason_code: str | None
    failed_check: str | None
    stop_reason: str
    error: str | None
    blame: str | None
    flags: str
    steps: int
    max_steps: int
    answer: str | None
    started_at: str
    ended_at: str
    duration_s: float
    observe_s: float
    reply_s: float
    act_s: float
    judge_s: float | None
    judge_method: str | None
    judge_model: str | None
    judge_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    participant: str
    name: str | None
    agent: str | None
    agent_version: str | None
    model: str | None
    agentbeats_id: str | None
    scenario: str | None
    revision: str | None
    trajectory_sha256: str | None
    excluded: str | None
    reward: float | None
    success_rule: str | None


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


class Tabled(NamedTuple):
    """An attempt with its row and its checks, in the order of the task's declaration."""

    row: AttemptRow
    checks: tuple[CheckRow, ...]
    attempt: Attempt


class Unreadable(NamedTuple):
    """A task whose record is damaged, with the reason."""

    task_id: str
    reason: str


def table_of(store: RunStore) -> Iterator[Tabled | Unreadable]:
    """The attempts of a run, or of another tool's folder. Unfinished tasks are left out."""
    record = store.read_run() or {}
    for task in store.tasks():
        if not isinstance(task, FoundTask) and not (task.folder / "result.json").exists():
            continue
        try:
            yield _tabled(store.run_id, record, task)
        except TrajectoryError as error:
            yield Unreadable(task.name, error.message)


def _tabled(run_id: str, record: Mapping[str, Any], task: TaskStore) -> Tabled:
    if isinstance(task, FoundTask):
        attempt, sha256, judge_id = task.attempt(), None, task.judge_id or ""
    else:
        result = read_result(task.folder)
        attempt = Attempt.from_json(result, source=str(task.folder / "result.json"))
        sha256, judge_id = result.get("trajectory_sha256"), judge_id_of(record, task.name, task.epoch)
    checks = tuple(_checks(run_id, task, attempt, sha256, judge_id))
    verdict, usage, played = attempt.verdict, attempt.token_usage, attempt.task
    judge: JudgeInfo | None = verdict.judge if verdict else None
    timings = [step.timings for step in attempt.steps]
    identity = identity_in(record)
    row = AttemptRow(
        run_id=run_id,
        task_id=played.task_id,
        epoch=task.epoch,
        attempt=attempt.number,
        website=played.website,
        level=played.level,
        reference_length=played.reference_length,
        task=played.task,
        verdict=attempt.outcome,
        success={"success": True, "failure": False}.get(attempt.outcome),
        decided_by=decided_by(attempt, judge_id or None),
        reason=verdict.reason if verdict else attempt.cause,
        reason_code=verdict.reason_code if verdict else None,
        failed_check="; ".join(each.description for each in checks if each.passed is False) or None,
        stop_reason=attempt.stop_reason,
        error=attempt.error,
        blame=attempt.blame,
        flags=" ".join(attempt.flags),
        steps=attempt.steps_taken,
        max_steps=attempt.max_steps,
        answer=attempt.final_answer,
        started_at=_time(attempt.started_at),
        ended_at=_time(attempt.ended_at),
        duration_s=round(attempt.ended_at - attempt.started_at, 3),
        observe_s=round(sum(each.observe_s for each in timings), 3),
        reply_s=round(sum(each.reply_s for each in timings), 3),
        act_s=round(sum(each.act_s for each in timings), 3),
        judge_s=attempt.judge_s,
        judge_method=judge.method if judge else None,
        judge_model=judge.model if judge else None,
        judge_calls=usage.calls,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        reasoning_tokens=usage.reasoning,
        cost_usd=attempt.cost_usd,
        participant=str(next(iter(record.get("participants") or ()), "")),
        name=identity["name"],
        agent=identity["card_name"],
        agent_version=identity["card_version"],
        model=identity["model"],
        agentbeats_id=identity["agentbeats_id"],
        scenario=identity["scenario"],
        revision=identity["revision"],
        trajectory_sha256=sha256,
        excluded=attempt.excluded,
        reward=reward_of(attempt),
        success_rule=success_rule(played.checks),
    )
    return Tabled(row, checks, attempt)


def left_out_rows(run_id: str, record: Mapping[str, Any]) -> list[AttemptRow]:
    """A row without an attempt, of the verdict `excluded`, for each task that the run's scenario excludes."""
    empty: dict[str, Any] = {
        name: None if type(None) in get_args(field.annotation) else field.annotation()
        for name, field in AttemptRow.model_fields.items()
        if field.annotation is not None
    }
    return [
        AttemptRow.model_validate(
            {
                **empty,
                "run_id": run_id,
                "task_id": str(each.get("task_id")),
                "verdict": EXCLUDED,
                "excluded": str(each.get("reason")),
            }
        )
        for each in excluded_by_scenario(record)
    ]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _checks(run_id: str, task: TaskStore, attempt: Attempt, sha256: str | None, judge_id: str) -> Iterator[CheckRow]:
    """The results of the checks, if they decided the attempt; only the verdict's own file has them."""
    verdict = task.read_verdict(judge_id)
    # Ignore a verdict on another trajectory.
    if verdict is None or attempt.verdict is None or (sha256 and verdict.trajectory_sha256 != sha256):
        return
    for number, each in enumerate(assertions_in(verdict), 1):
        of_task = {"run_id": run_id, "task_id": attempt.task.task_id, "epoch": task.epoch, "number": number}
        yield CheckRow.model_validate(of_task | each.model_dump(include=set(CheckRow.model_fields)))


def csv_of(rows: Iterable[AttemptRow]) -> str:
    """The rows as CSV with a header. No cell is read as a formula by a spreadsheet."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(AttemptRow.model_fields)
    writer.writerows((_cell(value) for _, value in row) for row in rows)
    return stream.getvalue()


def jsonl_of(rows: Iterable[AttemptRow]) -> str:
    """The rows as JSON lines: one object with every column per line, in ASCII."""
    plain = (
        {name: without_surrogates(value) if isinstance(value, str) else value for name, value in row} for row in rows
    )
    return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in plain)


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
    columns = ", ".join(f"{name} {_sql_type(field.annotation)}" for name, field in AttemptRow.model_fields.items())
    marks = ", ".join("?" * len(AttemptRow.model_fields))
    values = [[without_surrogates(value) if isinstance(value, str) else value for _, value in row] for row in rows]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        path = Path(folder, "attempts.parquet")
        connection.execute(f"CREATE TABLE attempts ({columns})")
        if values:
            connection.executemany(f"INSERT INTO attempts VALUES ({marks})", values)
        connection.execute("COPY attempts TO '{}' (FORMAT parquet)".format(str(path).replace("'", "''")))
        return path.read_bytes()


def _sql_type(annotation: Any) -> str:
    return _SQL_TYPES[(get_args(annotation) or (annotation,))[0]]


def markdown(
    rows: Sequence[AttemptRow],
    missing: Collection[tuple[str, int]] = (),
    left_out: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The participant and scenario, the success rate, and a table of the attempts, failures first.

    `missing` are the run's tasks and epochs without a result, which count as failures in the rate of all tasks.
    `left_out` are the tasks that the scenario excludes, which do not.
    """
    entries = [row.model_dump(include={"task_id", "epoch", "verdict", "stop_reason"}) for row in rows]
    counts = counts_of(entries + [{"task_id": task, "epoch": epoch, "verdict": "aborted"} for task, epoch in missing])
    lines = ["### WABE: " + (_code(rows[0].scenario or rows[0].run_id) if rows else "no results"), ""]
    if rows:
        first = rows[0]
        known = {"name": first.name, "card_name": first.agent, "card_version": first.agent_version}
        lines += [f"Participant: {_code(player({**known, 'model': first.model}, first.participant))}", ""]
    note = incomplete_note(counts)
    of_all = f"of all tasks: {counts['success_rate_of_all']} %"
    lines += [f"**{rate_text(counts)}**; {of_all}{f' ({note})' if note else ''}", ""]
    if missing:
        lines += [f"{len(missing)} of {counted(counts['attempts'], 'attempt')} without a result: see the run.", ""]
    excluded = {row.task_id: row.excluded for row in rows if row.excluded is not None}
    for by, reasons in (
        ("this run", excluded),
        ("the scenario", {str(each.get("task_id")): str(each.get("reason")) for each in left_out}),
    ):
        if reasons:
            named = "; ".join(f"{_code(task_id)}: {_code(reason)}" for task_id, reason in reasons.items())
            lines += [f"Excluded by {by}: {named}", ""]
    lines += ["| verdict | task | level | steps | seconds | why |", "|---|---|---|--:|--:|---|"]
    for row in sorted(rows, key=lambda row: _ORDER.index(row.verdict))[:_MAX_ROWS]:
        reason = f"excluded: {row.excluded}" if row.excluded is not None else row.reason or row.stop_reason
        why = "" if row.verdict == "success" else _code(reason)
        cells = (
            row.verdict,
            _code(key_of(row.task_id, row.epoch)),
            row.level or "",
            row.steps,
            f"{row.duration_s:.1f}",
            why,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [f"\n… {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else []
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """The text as a code span, so that links, images, mentions or HTML from a participant or page have no effect."""
    # Escaping a bar does not work: after a backslash in the text it would still end the cell.
    shown = one_line(without_surrogates(text), _MAX_WHY_CHARS).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown else ""
