"""The row of an attempt, and the views of it: a name means the same in all of them."""

from pathlib import Path
from typing import Any

import pytest

from helpers.results import a_finished_run, a_result, a_step, a_submission, a_verdict
from judge.records.steps import Outcome
from judge.report.data import RunView, TaskRow, read_run, read_task
from judge.report.pages import Renderer
from judge.report.totals import totals_of
from judge.results.columns import RowSource
from judge.results.rows import COLUMNS, ENTRY_COLUMNS, MAX_TEXT_CHARS, AttemptRow
from judge.results.tables import TableAttempt, table_of
from judge.trajectory.record import Attempt

NOT_DOCUMENTED = ["epoch", "decided_by", "reason", "flags", "duration_s", "not_executed", "settle", "task_sha256"]
CONTRACT = 14
ATTEMPTS = (
    a_result("judged", steps=(a_step(0, flags=("off_site",)), a_step(1)), final_answer="80"),
    a_result("failed", verdict=a_verdict("failure", reason_code="withheld_evidence")),
    a_result("unscored", verdict=a_verdict("unscored"), level=None),
    a_result("aborted", "environment_fault", error="the browser died", blame="browser"),
    a_result("late", "task_timeout", error="used all of its 300 s", blame="participant", self_recorded=True),
    a_result("closed", "excluded", steps=(), error="closed in winter"),
    a_result("listed", steps=(a_step(0), a_step(1, reply_index=0), a_step(2, reply_index=1)), max_actions=3),
)


def entry_of(attempt: Attempt) -> dict[str, Any]:
    return dict(a_submission(attempt)["results"][0]["detail"]["tasks"][0])


def row_of(attempt: Attempt, **options: Any) -> AttemptRow:
    return AttemptRow.of(RowSource(attempt, attempt.task.task_id, attempt.epoch, attempt.verdict), **options)


def test_an_entry_has_the_contracts_keys_and_then_these() -> None:
    assert list(entry_of(ATTEMPTS[0]))[CONTRACT:] == NOT_DOCUMENTED


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.task.task_id)
def test_a_column_has_the_same_value_in_an_entry_and_in_a_row(attempt: Attempt) -> None:
    entry, row = entry_of(attempt), row_of(attempt).values()
    for column in ENTRY_COLUMNS:
        expected = column.missing if row[column.name] is None else row[column.name]
        result = entry.get(column.entry)
        assert (tuple(result) if isinstance(result, list) else result) == expected, column.name


def test_a_column_has_the_same_value_in_a_table_and_in_the_report(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, *ATTEMPTS)
    run = read_run(store)
    tabled = {each.row.task_id: each.row.values() for each in table_of(store) if isinstance(each, TableAttempt)}
    reported = {name: read_task(store.task(name), run).row.values() for name in run.task_ids}
    assert reported == tabled
    assert len(reported) == len(ATTEMPTS)


def test_where_replies_have_several_actions_steps_are_replies_and_actions_are_counted_beside_them() -> None:
    row, entry = row_of(ATTEMPTS[-1]), entry_of(ATTEMPTS[-1])
    assert (row.steps, row.actions, row.max_actions) == (2, 3, 3)
    assert (entry["steps_taken"], entry["actions_taken"], entry["max_actions"]) == (2, 3, 3)
    assert {"actions_taken", "max_actions"}.isdisjoint(entry_of(ATTEMPTS[0]))


def test_why_no_verdict_decided_is_the_error_and_not_the_reason() -> None:
    row = row_of(ATTEMPTS[3])
    assert (row.reason, row.error, row.blame) == (None, "browser: the browser died", "browser")


def test_texts_are_cut_where_sizes_must_be_bounded() -> None:
    attempt = a_result(final_answer="x" * (MAX_TEXT_CHARS + 1))
    assert len(row_of(attempt).answer or "") == MAX_TEXT_CHARS + 1
    assert len(row_of(attempt, max_chars=MAX_TEXT_CHARS).answer or "") == MAX_TEXT_CHARS


def test_a_row_without_an_attempt_has_every_column() -> None:
    row = AttemptRow.without_attempt(task_id="t1", verdict="unfinished")
    assert list(row.values()) == [column.name for column in COLUMNS]
    assert (row.task_id, row.steps, row.level, row.flags, row.categories) == ("t1", 0, None, (), {})


def test_replies_without_an_executed_action_are_counted_and_shown_where_there_are_any() -> None:
    failed = a_step(1).model_copy(update={"outcome": Outcome(ok=False, message="no such element")})
    attempt = a_result(steps=(a_step(0), failed, a_step(2).model_copy(update={"outcome": None})))
    assert row_of(attempt).not_executed == 1
    rows = [TaskRow.of(RowSource(each, "t1", epoch, each.verdict)) for epoch, each in ((1, attempt), (2, a_result()))]
    page = Renderer().index(RunView("r", {}, "p", ("t1",), epochs=2), totals_of(rows), rows)
    assert ("Not executed" in page, '<td class="num" data-v="0.5">0.5</td>' in page) == (True, True)
    assert "Not executed" not in Renderer().index(RunView("r", {}, "p", ("t1",)), totals_of(rows[1:]), rows[1:])
