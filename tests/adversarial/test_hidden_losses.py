"""Aborted and unscored tasks cannot improve what is shown of a participant."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from helpers.plugins import leaderboard_rows, merge
from helpers.results import a_result, a_submission, a_verdict
from judge.results.entries import counts_of
from judge.results.rates import CountedAttempt, Rate
from judge.results.submission import Submission
from judge.runner.terminal import print_summary
from judge.store.layout import RunStore
from judge.trajectory.record import Attempt

OUTCOMES = ("success", "failure", "unscored", "aborted")
LOST_OUTCOMES = ("unscored", "aborted")


def a_task(task_id: str, outcome: str) -> Attempt:
    if outcome == "aborted":
        return a_result(task_id, "environment_fault", verdict=None, error="the page hung", blame="site")
    return a_result(task_id, verdict=a_verdict(outcome))


def submission_of(*outcomes: str, player: str = "id-1") -> Submission:
    tasks = [a_task(f"t{number}", outcome) for number, outcome in enumerate(outcomes)]
    return a_submission(*tasks, participant_ids={"white_agent": player})


def detail_of(submission: Submission) -> dict[str, Any]:
    detail = submission["results"][0]["detail"]
    assert isinstance(detail, dict)
    return detail


def board_rows(folder: Path, *submissions: Submission, query: str | None = None) -> list[dict[str, Any]]:
    paths = [folder / f"{number}.json" for number in range(len(submissions))]
    for path, submission in zip(paths, submissions, strict=True):
        path.write_text(json.dumps(submission))
    columns, table_rows = leaderboard_rows(paths, query)
    return [dict(zip(columns, row, strict=True)) for row in table_rows]


@pytest.mark.parametrize("outcome", LOST_OUTCOMES)
def test_losing_every_task_but_the_one_that_succeeded_wins_no_rank(tmp_path: Path, outcome: str) -> None:
    honest = submission_of(*["success"] * 4, *["failure"] * 6, player="honest")
    hiding = submission_of("success", *[outcome] * 9, player="hiding")
    result = board_rows(tmp_path, hiding, honest)
    assert [row["id"] for row in result] == ["honest", "hiding"]
    assert (result[1]["Success Rate"], result[1]["Success Rate of All"], result[1]["Complete"]) == (100.0, 10.0, False)


def check_mix(outcomes: Sequence[str], dice: random.Random) -> None:
    """Whatever the mix, and whichever failures are lost instead, nothing gets better."""
    counts = counts_of({"verdict": outcome} for outcome in outcomes)
    assert counts["total_tasks"] == counts["scored_tasks"] + counts["unscored_tasks"] + counts["aborted_tasks"]
    assert counts["judged_successes"] <= counts["scored_tasks"]
    assert counts["success_rate_of_all"] <= counts["success_rate"] <= 100
    hidden = counts_of(
        {"verdict": dice.choice(LOST_OUTCOMES) if outcome == "failure" and dice.random() < 0.5 else outcome}
        for outcome in outcomes
    )
    assert hidden["success_rate_of_all"] == counts["success_rate_of_all"]
    assert hidden["is_complete"] <= counts["is_complete"]
    spoilt = counts_of({"verdict": dice.choice((outcome, *LOST_OUTCOMES))} for outcome in outcomes)
    assert spoilt["success_rate_of_all"] <= counts["success_rate_of_all"]
    report = Rate.of(CountedAttempt(str(number), outcome) for number, outcome in enumerate(outcomes))
    assert round(report.rate_of_all, 1) == counts["success_rate_of_all"]
    assert report.is_complete is counts["is_complete"]


def test_in_any_mix_of_outcomes_losing_a_task_never_raises_the_rate_of_all() -> None:
    sizes: list[int] = []

    @given(st.lists(st.sampled_from(OUTCOMES), max_size=60), st.randoms(use_true_random=False))
    def check(outcomes: Sequence[str], dice: random.Random) -> None:
        sizes.append(len(outcomes))
        check_mix(outcomes, dice)

    check()


@pytest.mark.parametrize(
    ("total", "lost_count", "complete"),
    [(20, 1, True), (20, 2, False), (19, 1, False), (100, 5, True), (100, 6, False)],
)
def test_more_than_five_percent_lost_is_incomplete(total: int, lost_count: int, complete: bool) -> None:
    detail = detail_of(submission_of(*["success"] * (total - lost_count), *["aborted"] * lost_count))
    assert detail["is_complete"] is complete


def test_a_run_without_a_task_is_not_complete() -> None:
    counts = counts_of([])
    assert (counts["success_rate_of_all"], counts["is_complete"]) == (0.0, False)


def test_a_file_that_claims_more_than_its_tasks_show_is_not_believed(tmp_path: Path) -> None:
    claiming = submission_of("success", *["aborted"] * 3)
    detail_of(claiming).update(success_rate_of_all=100.0, is_complete=True, aborted_tasks=0)
    [row] = board_rows(tmp_path, claiming)
    assert (row["Success Rate of All"], row["Complete"]) == (25.0, False)


def test_a_stated_success_rate_is_at_most_what_the_tasks_show(tmp_path: Path) -> None:
    claiming = submission_of("success", *["failure"] * 3)
    detail_of(claiming).update(success_rate=100.0)
    [row] = board_rows(tmp_path, claiming)
    assert row["Success Rate"] == 25.0


@pytest.mark.parametrize("query", ["by_level", "by_truth"])
def test_a_task_that_is_marked_as_a_success_against_its_verdict_is_none(tmp_path: Path, query: str) -> None:
    claiming = submission_of("success", "failure")
    for entry in detail_of(claiming)["tasks"]:
        entry["success"] = True
    assert [row["Successes"] for row in board_rows(tmp_path, claiming, query=query)] == [1]


@pytest.mark.parametrize("left_out", ["the new keys", "every key but the tasks and the rate"])
def test_an_older_file_cannot_hide_its_losses_by_not_counting_them(tmp_path: Path, left_out: str) -> None:
    older = submission_of("success", "failure", "unscored", "aborted")
    remaining = {"success_rate", "total_tasks", "tasks"}
    new = {"completed_tasks", "success_rate_of_all", "is_complete"}
    detail = detail_of(older)
    for key in [key for key in detail if (key in new if left_out == "the new keys" else key not in remaining)]:
        del detail[key]
    [row] = board_rows(tmp_path, older)
    assert (row["Success Rate"], row["Success Rate of All"], row["Complete"]) == (50.0, 25.0, False)


def test_a_shard_full_of_lost_tasks_is_counted_in_the_merged_run() -> None:
    tasks = [a_task(f"t{number}", "success" if number < 10 else "aborted") for number in range(20)]
    shards = [a_submission(*tasks[:10]), a_submission(*tasks[10:])]
    detail_of(shards[1]).update(success_rate_of_all=100.0, is_complete=True)
    merged, whole = detail_of(merge(shards)), detail_of(a_submission(*tasks))
    names = ("success_rate", "success_rate_of_all", "is_complete")
    assert {name: merged[name] for name in names} == {name: whole[name] for name in names}
    assert (merged["success_rate_of_all"], merged["is_complete"]) == (50.0, False)


def test_a_level_whose_tasks_were_all_lost_stays_on_the_page(tmp_path: Path) -> None:
    tasks = [a_result("t1", level="easy"), a_result("t2", "environment_fault", level="hard", verdict=None)]
    result = board_rows(tmp_path, a_submission(*tasks), query="by_level")
    assert [(row["Level"], row["Success Rate of All"], row["Complete"]) for row in result] == [
        ("easy", 100.0, True),
        ("hard", 0.0, False),
    ]


def test_the_terminal_names_the_loss_beside_a_perfect_rate(tmp_path: Path) -> None:
    text = io.StringIO()
    code = print_summary(
        Console(file=text, width=160), submission_of("success", "aborted", "unscored"), RunStore(tmp_path, "r")
    )
    lines = [line for line in text.getvalue().splitlines() if "success rate" in line or line.startswith("incomplete")]
    assert "of all tasks (3): 33.3 %" in lines[0]
    assert lines[1:] == ["incomplete: 2 of 3 tasks aborted or unscored"]
    assert code == 1
