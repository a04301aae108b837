"""Rewards in rows: entries of submissions, tables, the leaderboard."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import leaderboard_rows, verify_run
from helpers.results import a_finished_run, a_result, a_step, a_submission, verdict_of_checks
from judge.evaluators.kinds.probe import LEAST, ProbeCheck
from judge.records.checks import SuccessRule
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.results.progress import with_verdict
from judge.results.tables import TableAttempt, table_of
from judge.trajectory.record import Attempt


def attempt_with_rewards(*rewards: float | None, rule: SuccessRule = "exact") -> Attempt:
    """An attempt at a task with a reward, with the value that was read at each step."""
    expected: dict[str, Any] = {"expected": 1.0} if rule == "exact" else {"min": LEAST}
    check = ProbeCheck(kind="probe", expression="window.reward", keep="first", ends=True, **expected)
    task = Task(task_id="click-test_3", website="http://127.0.0.1:9182/", task="Click it.", checks=(check,))
    steps = [a_step(n, probes=(ProbeValue(value=reward),)) for n, reward in enumerate(rewards)]
    result = a_result(task=task, steps=tuple(steps), stop_reason="ended_by_page", verdict=None)
    return with_verdict(result, verdict_of_checks(result))


def entry_of(attempt: Attempt) -> dict[str, Any]:
    return dict(a_submission(attempt)["results"][0]["detail"]["tasks"][0])


@pytest.mark.parametrize(("rewards", "reward"), [((None, 0.4, 1), 0.4), ((None, -1), -1.0), ((None,), None)])
def test_the_first_reward_counts(rewards: tuple[float | None, ...], reward: float | None) -> None:
    entry = entry_of(attempt_with_rewards(*rewards))
    assert (entry["reward"], entry["success_rule"]) == (reward, "exact")


def test_other_tasks_have_no_reward() -> None:
    assert not {"reward", "success_rule"} & entry_of(a_result()).keys()


@pytest.mark.parametrize("rule", ["exact", "positive"])
def test_a_leaderboards_row_says_which_rewards_count(tmp_path: Path, rule: SuccessRule) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(a_submission(attempt_with_rewards(None, 0.4, rule=rule))))
    columns, [row] = leaderboard_rows([path])
    assert row[columns.index("Decided By")] == f"checks ({rule} reward)"


def test_a_table_has_the_reward_and_a_run_from_before_there_was_one_still_matches(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, attempt_with_rewards(None, 0.4, rule="positive"))
    (row,) = table_of(store)
    assert isinstance(row, TableAttempt)
    assert (row.row.reward, row.row.success_rule) == (0.4, "positive")
    path = store.folder / "results.json"
    submission = json.loads(path.read_text())
    for entry in submission["results"][0]["detail"]["tasks"]:
        del entry["reward"], entry["success_rule"]
    path.write_text(json.dumps(submission))
    assert [line for line in verify_run(store).mismatches if "reward" in line or "success_rule" in line] == []
