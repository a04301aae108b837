"""Excluded tasks in what is made from a run: its submission, verify, resume, merge, tables, rows."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.json_files import edit
from helpers.plugins import leaderboard_rows, merge, verify_run
from helpers.results import a_finished_run, a_result, a_submission, a_verdict
from judge.config import RunConfig
from judge.results.run_record import newest_unfinished, require_same_exclusions, totals_of
from judge.results.submission import TaskSummary, incomplete_note
from judge.results.tables import TableAttempt, csv_of, left_out_rows, markdown, table_of
from judge.scenario.models import Launch
from judge.store.layout import RunStore
from judge.trajectory.record import Attempt
from shared.errors import ConfigError

REASON = "closed in winter"
BY_SCENARIO = {"task_id": "old", "reason": "the page is gone", "by": "scenario"}


def excluded(task_id: str = "t2", reason: str = REASON) -> Attempt:
    return a_result(task_id, "excluded", steps=(), error=reason)


def detail(submission: dict[str, Any]) -> dict[str, Any]:
    return dict(submission["results"][0]["detail"])


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A run of two tasks, one of them excluded."""
    config = RunConfig(judge_model="offline", exclude={"t2": REASON})
    return a_finished_run(tmp_path, a_result("t1"), excluded(), config=config)


def problems(store: RunStore) -> list[str]:
    """What is wrong about exclusions: the test's verdict comes from other code than the installed one."""
    return [line for line in verify_run(store).mismatches if "excluded" in line]


def test_a_submission_lists_what_the_scenario_and_the_run_exclude() -> None:
    submission = a_submission(a_result("t1"), excluded(), excluded=[BY_SCENARIO])
    result = detail(submission)
    assert result["excluded"] == [BY_SCENARIO, {"task_id": "t2", "reason": REASON, "by": "run"}]
    assert result["total_tasks"] == 2
    assert incomplete_note(result) == "incomplete: 1 of 2 tasks aborted or unscored (1 task excluded)"


def test_a_run_with_an_excluded_task_matches(store: RunStore) -> None:
    assert problems(store) == []


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("run.json", lambda v: v["config"]["exclude"].pop("t2")),
        ("run.json", lambda v: v["config"]["exclude"].update(t1="too hard")),
        ("run.json", lambda v: v.update(excluded=[BY_SCENARIO])),
        ("results.json", lambda v: v["results"][0]["detail"].pop("excluded")),
        ("results.json", lambda v: v["results"][0]["detail"]["excluded"][0].update(reason="nobody knows")),
    ],
)
def test_verify_reports_a_changed_exclusion(store: RunStore, file: str, change: Callable[[Any], Any]) -> None:
    edit(store.folder / file, change)
    assert problems(store)


def test_a_run_of_which_only_excluded_tasks_are_open_is_finished(store: RunStore) -> None:
    launch = Launch(scenario_name="s", scenario_path="/s", scenario_sha256="00")
    edit(store.folder / "run.json", lambda v: v.update(scenario={"path": "/s", "sha256": "00"}))
    assert newest_unfinished(store.output_dir, launch) is None


@pytest.mark.parametrize(
    ("exclude", "problem"),
    [
        ({"t2": REASON, "t1": "too hard"}, "--exclude t1: run run-1 began without it, and it was played"),
        ({"t2": REASON, "t9": "x"}, "exclusions are fixed before the first attempt"),
        ({"t2": "other"}, f'has another reason, "{REASON}"'),
        ({}, "run run-1 excludes t2, which --resume would play"),
    ],
)
def test_exclusions_are_fixed_when_a_run_begins(store: RunStore, exclude: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        require_same_exclusions(store, exclude)
    assert problem in str(caught.value)


def test_merged_files_keep_their_exclusions() -> None:
    first = a_submission(a_result("t1"), excluded=[BY_SCENARIO])
    second = a_submission(excluded(), excluded=[BY_SCENARIO])
    assert detail(merge([first, second]))["excluded"] == [BY_SCENARIO, {"task_id": "t2", "reason": REASON, "by": "run"}]


def test_a_task_that_was_played_cannot_be_excluded_by_merging() -> None:
    submission = a_submission(a_result("t2", verdict=a_verdict("failure")))
    with pytest.raises(ConfigError, match="task 't2' is excluded in only one of this file"):
        merge([submission, a_submission(excluded())])
    by_scenario = a_submission(a_result("t1"), excluded=[{**BY_SCENARIO, "task_id": "t2"}])
    with pytest.raises(ConfigError, match="task 't2' is excluded by the scenario, and played in"):
        merge([submission, by_scenario])


def test_tables_name_the_reason(store: RunStore) -> None:
    table_row = [each.row for each in table_of(store) if isinstance(each, TableAttempt)]
    assert [row.excluded for row in table_row] == [None, REASON]
    assert list(csv.DictReader(csv_of(table_row).splitlines()))[-1]["excluded"] == REASON
    text = markdown(table_row, left_out=[BY_SCENARIO])
    assert f"Excluded by this run: `t2`: `{REASON}`" in text
    assert "Excluded by the scenario: `old`: `the page is gone`" in text
    assert f"| `t2` | easy | 0 | 10.2 | `excluded: {REASON}` |" in text


def test_leaderboard_rows_name_the_reasons(tmp_path: Path) -> None:
    plain = a_submission(a_result("t1"), a_result("t2"))
    for name, submission in (("a", a_submission(a_result("t1"), excluded(), excluded=[BY_SCENARIO])), ("b", plain)):
        (tmp_path / f"{name}.json").write_text(json.dumps(submission))
    columns, table_rows = leaderboard_rows([tmp_path / "a.json", tmp_path / "b.json"])
    values = [row[columns.index("Excluded")] for row in table_rows]
    # Incomplete, so last.
    assert values == [None, f"old (by the scenario): the page is gone; t2 (by the run): {REASON}"]


def test_a_task_that_the_scenario_excludes_is_a_row_without_an_attempt(store: RunStore) -> None:
    edit(store.folder / "run.json", lambda v: v.update(excluded=[BY_SCENARIO]))
    (row,) = left_out_rows(store.run_id, store.read_run() or {})
    assert (row.task_id, row.verdict, row.excluded, row.success) == ("old", "excluded", "the page is gone", None)
    assert (row.attempt, row.steps, row.website) == (0, 0, "")


def test_nothing_decided_an_excluded_task(store: RunStore) -> None:
    summaries = [TaskSummary.of(a_result("t1")), TaskSummary.of(excluded())]
    assert totals_of(summaries)["decided_by"] == {"judge": 1}
    for recorded, is_wrong in ({"judge": 1}, False), ({"judge": 2}, True):
        record = json.loads((store.folder / "run.json").read_text())
        (store.folder / "run.json").write_text(json.dumps({**record, "decided_by": recorded}))
        assert any("decided_by" in line for line in verify_run(store).mismatches) is is_wrong
