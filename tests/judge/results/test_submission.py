import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JUDGE, a_result, a_step, a_submission, a_verdict
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS, Verdict
from judge.results.entries import counts_of
from judge.results.submission import Submission, TaskSummary, result_text
from judge.trajectory.record import Attempt

SHARED = Path(__file__).parents[4] / "shared" / "data"
TASK_KEYS = ["task_id", "task_id_with_timestamp", "website", "task_description", "level", "success", "steps_taken"]
TASK_KEYS += ["max_steps", "thoughts", "action_history", "screenshots", "error", "verdict", "stop_reason"]
DETAIL_KEYS = ["success_rate", "successful_tasks", "completed_tasks", "total_tasks", "judged_successes", "scored_tasks"]
DETAIL_KEYS += ["unscored_tasks", "aborted_tasks", "success_rate_of_all", "is_complete", "by_level"]
DETAIL_KEYS += "confidence_interval_95 judge cost_usd provenance tasks by_truth attempts scored_attempts".split()


def seventeen() -> list[Attempt]:
    """6 judged successes among 16 that the participant ended, and one over its steps."""
    verdicts = ["success"] * 6 + ["failure"] * 10
    results = [a_result(f"t{n}", verdict=a_verdict(verdict)) for n, verdict in enumerate(verdicts)]
    return [*results, a_result("t16", stop_reason="max_steps")]


def detail(submission: Submission) -> dict[str, Any]:
    value = submission["results"][0]["detail"]
    assert isinstance(value, dict)
    return value


def test_a_submission_has_the_keys_of_the_contract_in_order() -> None:
    submission = a_submission()
    assert submission["participants"] == {"white_agent": "id-1"}
    assert list(submission["results"][0]) == ["winner", "detail"]
    assert list(detail(submission)) == DETAIL_KEYS
    assert list(detail(submission)["tasks"][0])[: len(TASK_KEYS)] == TASK_KEYS


def test_the_example_of_the_contract_comes_out() -> None:
    values = detail(a_submission(*seventeen()))
    assert (values["success_rate"], values["successful_tasks"], values["total_tasks"]) == (35.3, 16, 17)
    assert (values["completed_tasks"], values["judged_successes"], values["scored_tasks"]) == (16, 6, 17)
    assert (values["success_rate_of_all"], values["is_complete"]) == (35.3, True)
    assert values["confidence_interval_95"] == [16.6, 59.4]
    assert values["judge"] == JUDGE.model_dump()


def test_unscored_and_aborted_tasks_are_counted_and_rate_nothing() -> None:
    values = detail(
        a_submission(
            a_result("a"),
            a_result("b", verdict=a_verdict("unscored")),
            a_result("c", stop_reason="environment_fault", error="gone", blame="browser"),
        )
    )
    assert (values["success_rate"], values["scored_tasks"]) == (100.0, 1)
    assert (values["unscored_tasks"], values["aborted_tasks"]) == (1, 1)
    assert [task["verdict"] for task in values["tasks"]] == ["success", "unscored", "aborted"]
    assert [task["error"] for task in values["tasks"]] == [None, "judge model: because", "browser: gone"]


def test_nothing_scored_is_a_rate_of_zero_with_the_widest_interval() -> None:
    values = detail(a_submission(a_result(verdict=None)))
    assert (values["success_rate"], values["confidence_interval_95"]) == (0.0, [0.0, 100.0])
    assert json.dumps(values["success_rate"]) == "0.0"


def test_levels_are_counted_apart() -> None:
    values = detail(a_submission(a_result("a", level="hard"), a_result("b", level=None, stop_reason="max_steps")))
    assert list(values["by_level"]) == ["hard", "unknown"]
    assert values["by_level"]["hard"]["success_rate"] == 100.0
    assert values["by_level"]["unknown"]["scored_tasks"] == 1


def test_cost_is_summed_and_unknown_when_one_is_unknown() -> None:
    assert detail(a_submission(a_result("a"), a_result("b")))["cost_usd"] == 0.5
    assert detail(a_submission(a_result("a"), a_result("b", verdict=a_verdict(cost_usd=None))))["cost_usd"] is None


def test_the_artifact_text_is_the_result_with_whole_numbers_whole() -> None:
    text = result_text(a_submission())
    assert set(json.loads(text)) == {"winner", "detail"}
    assert '"total_tasks": 1,' in text


def test_a_role_without_an_id_is_still_named() -> None:
    assert a_submission(role="purple", participant_ids={})["participants"] == {"purple": ""}


def test_what_a_participant_writes_cannot_swell_a_submission() -> None:
    loud = tuple(a_step(n, thought="\ud800" * 20_000, line="x" * 20_000) for n in range(15))
    submission = a_submission(*(a_result(f"t{n}", steps=loud) for n in range(300)))
    assert len(json.dumps(submission, ensure_ascii=False)) < 4_000_000


def test_a_very_long_attempt_is_cut_in_a_submission() -> None:
    steps = tuple(a_step(n) for n in range(500))
    task = detail(a_submission(a_result(steps=steps)))["tasks"][0]
    assert task["steps_taken"] == 500
    assert {len(task[key]) for key in ("thoughts", "action_history", "screenshots")} == {100}


def test_the_entries_of_a_very_large_run_share_the_room_and_keep_their_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judge.results.submission.MAX_ENTRIES_BYTES", 40 * 1_500)
    steps = tuple(a_step(n, thought="\ud800" * 400) for n in range(15))
    submission = a_submission(*(a_result(f"t{n}", steps=steps) for n in range(39)), a_result("short", steps=steps[:1]))
    *long, short = detail(submission)["tasks"]
    text = json.dumps(submission, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    assert len(text) < 41 * 1_500 + 4_000
    assert {(entry["verdict"], entry["steps_taken"], entry["reason"]) for entry in long} == {("success", 15, "because")}
    assert all(len(entry["action_history"]) < 15 for entry in long)
    assert len(short["screenshots"]) == 1


def test_published_tasks_without_the_newer_keys_are_counted() -> None:
    path = SHARED / "leaderboard_results_example.json"
    if not path.exists():
        pytest.skip("the published example is not on this machine")
    published = json.loads(path.read_text())
    values = published["results"][0]["detail"]
    counts = counts_of(values["tasks"])
    assert all(counts[key] == values[key] for key in ("success_rate", "successful_tasks", "total_tasks"))


ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "verdict": st.sampled_from(["success", "failure", "unscored", "aborted", "odd", None, 3]),
        "success": st.booleans() | st.none() | st.text(max_size=3),
        "stop_reason": st.sampled_from(["finished", "max_steps", None]),
        "action_history": st.lists(st.sampled_from(["<page> -> FINISH", "x"]), max_size=2) | st.none(),
        "level": st.sampled_from(["easy", "odd", None, 3]),
    },
)


@given(st.lists(ENTRIES, max_size=12))
def test_counts_of_any_entries_add_up(entries: list[dict[str, Any]]) -> None:
    counts = counts_of(entries)
    assert counts["total_tasks"] == counts["scored_tasks"] + counts["unscored_tasks"] + counts["aborted_tasks"]
    assert 0 <= counts["judged_successes"] <= counts["scored_tasks"]
    assert 0 <= counts["successful_tasks"] == counts["completed_tasks"] <= counts["total_tasks"]
    low, high = counts["confidence_interval_95"]
    assert low <= counts["success_rate"] <= high or not counts["scored_tasks"]


CHECKED = Task.model_validate(
    {"task_id": "c", "website": "https://example.org/", "task": "x", "checks": [{"kind": "page", "url": "/*"}]}
)


def by(method: str, outcome: str = "success") -> Verdict:
    prompts = {} if method == "webjudge" else {"prompt_set": NO_PROMPTS}
    return a_verdict(outcome, judge=JUDGE.model_copy(update={"method": method, **prompts}))


def test_a_mixed_run_has_a_rate_for_each_kind_of_verdict_and_one_over_all() -> None:
    values = detail(
        a_submission(
            a_result("a", task=CHECKED, verdict=by("checks", "failure")),
            a_result("b", verdict=by("webarena_verified")),
            a_result("d"),
            a_result("e", verdict=a_verdict("unscored")),
        )
    )
    rates = {truth: (counts["success_rate"], counts["total_tasks"]) for truth, counts in values["by_truth"].items()}
    assert rates == {"checks": (0.0, 1), "webarena_verified": (100.0, 1), "judge": (100.0, 2)}
    assert (values["success_rate"], values["total_tasks"]) == (66.7, 4)


@pytest.mark.parametrize(
    ("attempt", "judge_id", "expected"),
    [
        (a_result(task=CHECKED, verdict=by("checks")), None, "checks"),
        (a_result(task=CHECKED, verdict=by("webjudge")), "checks-1", "judge"),
        (a_result(verdict=by("webarena_verified")), None, "webarena_verified"),
        (a_result(task=CHECKED, stop_reason="environment_fault"), "checks-1", "checks"),
        (a_result(task=CHECKED, stop_reason="environment_fault"), "webjudge-1", "judge"),
        # The judge of an offline run is the checks' judge for every task.
        (a_result(verdict=by("checks", "unscored")), "checks-1", "judge"),
    ],
)
def test_what_decides_a_task_is_its_verdict_or_the_judge_that_will_give_it(
    attempt: Attempt, judge_id: str | None, expected: str
) -> None:
    assert TaskSummary.of(attempt, judge_id).entry["decided_by"] == expected
