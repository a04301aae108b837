"""Attack success rates, and success clean and under attack: in submissions, merged files, tables and reports."""

from typing import Any

import pytest

from helpers.attacked import attacked
from helpers.plugins import merge
from helpers.results import a_result, a_submission, a_verdict
from judge.results.attacks import attack_text
from judge.results.columns import RowSource
from judge.results.entries import counts_of, read_entries
from judge.results.rows import AttemptRow
from judge.trajectory.record import Attempt


def clean(task_id: str, outcome: str = "success") -> Attempt:
    return a_result(task_id, verdict=a_verdict(outcome))


def detail_of(*attempts: Attempt) -> dict[str, Any]:
    detail: dict[str, Any] = a_submission(*attempts)["results"][0]["detail"]
    return detail


RUN = (
    clean("t1"),
    attacked("t1", True, True, outcome="failure"),
    clean("t2"),
    attacked("t2", True, False, kind="popup"),
    clean("t3", "failure"),
    attacked("t3", False, outcome="failure", is_shown=False),
)


def test_the_success_rate_of_a_run_is_that_of_its_clean_tasks() -> None:
    detail = detail_of(*RUN)
    assert (detail["success_rate"], detail["total_tasks"], detail["judged_successes"]) == (66.7, 3, 2)
    assert (len(detail["tasks"]), detail["is_complete"]) == (6, True)
    assert counts_of(detail["tasks"])["success_rate"] == 66.7


def test_attacks_have_figures_of_their_own() -> None:
    detail = detail_of(*RUN)
    assert detail["attack_success_rate"] == 33.3
    result = detail["attacks"]
    assert {key: result[key] for key in ("attempts", "succeeded", "started", "shown", "left_out", "pairs")} == {
        "attempts": 3,
        "succeeded": 1,
        "started": 2,
        "shown": 2,
        "left_out": 0,
        "pairs": 3,
    }
    assert (result["success_clean"], result["success_under_attack"], result["lost"], result["p"]) == (
        66.7,
        33.3,
        1,
        1.0,
    )
    assert {kind: each["succeeded"] for kind, each in result["by_kind"].items()} == {"insert": 1, "popup": 0}
    assert attack_text(detail).startswith("attack success rate 33.3 %, 1 of 3; started 2, shown 2 of 3; success 66.7 %")


def test_a_pair_is_left_out_only_if_the_reference_walk_does_not_see_the_attack_either() -> None:
    unseen = attacked("t1", False, is_shown=False, is_unseen=True)
    assert detail_of(clean("t1"), unseen)["attacks"]["left_out"] == 1
    assert "attack_success_rate" not in detail_of(clean("t1"), unseen)
    seen = detail_of(clean("t1"), attacked("t1", False, is_shown=True, is_unseen=True))
    assert (seen["attacks"]["left_out"], seen["attack_success_rate"]) == (0, 0.0)


def test_an_undecided_attack_is_in_no_rate() -> None:
    detail = detail_of(clean("t1"), attacked("t1", None, True))
    assert "attack_success_rate" not in detail
    assert (detail["attacks"]["scored"], detail["attacks"]["started"]) == (0, 1)


def test_a_run_without_attacks_has_none_of_the_figures() -> None:
    detail = detail_of(clean("t1"))
    assert not {"attacks", "attack_success_rate"} & detail.keys()
    assert all(entry.is_clean for entry in read_entries(detail["tasks"]))


def test_a_merged_submission_computes_them_from_its_entries() -> None:
    shards = [a_submission(*RUN[:2]), a_submission(*RUN[2:])]
    merged = merge(shards)["results"][0]["detail"]
    assert merged["attacks"] == detail_of(*RUN)["attacks"]
    assert merged["success_rate"] == 66.7


@pytest.mark.parametrize(("attempt", "name"), [(RUN[0], None), (RUN[1], "a")])
def test_tables_name_the_attack_of_an_attempt(attempt: Attempt, name: str | None) -> None:
    row = AttemptRow.of(RowSource(attempt, attempt.task.task_id, 1, attempt.verdict))
    assert row.attack == name
    assert row.attack_succeeded is (None if name is None else True)


def test_the_record_of_an_attempt_keeps_the_attack_and_what_became_of_it() -> None:
    stored = RUN[1].to_json()
    assert (stored["attack"]["name"], stored["scenario_attack"]["of"]) == ("a", "t1")
    parsed = Attempt.from_json(stored, source="result.json")
    assert (parsed.attack, parsed.task.attack) == (RUN[1].attack, RUN[1].task.attack)
    assert not {"attack", "scenario_attack"} & RUN[0].to_json().keys()
