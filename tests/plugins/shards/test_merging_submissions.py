import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.results import JUDGE, a_result, a_submission, a_verdict
from judge.commands.app import app
from judge.plugins.shards.merging_submissions import merge
from judge.records.tasks import Task
from judge.results.submission import Submission, TaskSummary
from judge.trajectory.record import Attempt
from shared.errors import ConfigError

SHARED = Path(__file__).parents[4] / "shared" / "data"


def mixed() -> list[Attempt]:
    verdicts = ["success"] * 6 + ["failure"] * 10
    results = [a_result(f"t{n}", verdict=a_verdict(verdict)) for n, verdict in enumerate(verdicts)]
    return [*results, a_result("t16", stop_reason="max_steps")]


def detail(submission: Submission) -> dict[str, Any]:
    value = submission["results"][0]["detail"]
    assert isinstance(value, dict)
    return value


def test_merged_shards_equal_the_whole_run() -> None:
    results = mixed()
    whole = detail(a_submission(*results))
    merged = detail(merge([a_submission(*results[:9]), a_submission(*results[9:])]))
    assert merged["provenance"].pop("shards") == [{"package_version": "0.1.0"}] * 2
    assert merged == whole


def test_provenance_that_differs_between_shards_is_kept_per_shard() -> None:
    shards = [a_submission(a_result(f"t{n}"), provenance={"run_id": str(n), "version": "1"}) for n in range(2)]
    provenance = detail(merge(shards))["provenance"]
    assert provenance["version"] == "1"
    assert [shard["run_id"] for shard in provenance["shards"]] == ["0", "1"]
    assert "run_id" not in provenance


def test_the_same_task_twice_counts_once() -> None:
    shards = [a_submission(provenance={"run_id": str(n)}) for n in range(2)]
    assert detail(merge(shards))["total_tasks"] == 1


def test_a_file_that_is_given_twice_was_paid_for_once() -> None:
    assert detail(merge([a_submission(), a_submission()]))["cost_usd"] == detail(a_submission())["cost_usd"]


def test_results_that_the_platform_put_side_by_side_are_shards() -> None:
    halves = [a_submission(*mixed()[:9]), a_submission(*mixed()[9:])]
    joined = {"status": "completed", **halves[0], "results": [half["results"][0] for half in halves]}
    assert merge([joined]) == merge(halves)


NOTHING_TO_JUDGE = [(), (a_result("x", stop_reason="max_steps"), a_result("y", stop_reason="environment_fault"))]


@pytest.mark.parametrize("results", NOTHING_TO_JUDGE)
@pytest.mark.parametrize("first", [True, False])
def test_a_shard_in_which_nothing_was_judged_merges_with_any_judge(results: tuple[Attempt, ...], first: bool) -> None:
    silent = a_submission(judge=None, results=tuple(map(TaskSummary.of, results)))
    merged = detail(merge([silent, a_submission()] if first else [a_submission(), silent]))
    assert merged["judge"] == JUDGE.model_dump()
    assert (merged["total_tasks"], merged["judged_successes"]) == (1 + len(results), 1)


def test_a_rate_that_its_own_tasks_do_not_give_is_refused() -> None:
    claimed = a_submission()
    detail(claimed)["success_rate"] = 0.0
    with pytest.raises(ConfigError, match=r"^a\.json: its success_rate is 0, its tasks give 100 \(leave this file out"):
        merge([claimed], ["a.json"])


def test_older_keys_for_success_and_end_are_counted() -> None:
    tasks = [{"task_id": f"t{n}", "passed": n == 0, "finished": n < 2, "action_history": []} for n in range(3)]
    older = {"participants": {}, "results": [{"winner": "w", "detail": {"success_rate": 100 / 3, "tasks": tasks}}]}
    merged = detail(merge([older]))
    assert (merged["success_rate"], merged["successful_tasks"], merged["total_tasks"]) == (33.3, 2, 3)


def test_a_published_file_is_merged_alone() -> None:
    path = SHARED / "leaderboard_results_example.json"
    if not path.exists():
        pytest.skip("the published example is not on this machine")
    assert detail(merge([json.loads(path.read_text())]))["judged_successes"] == 3


def test_a_task_with_two_results_is_refused_with_both_names() -> None:
    other = a_submission(a_result(verdict=a_verdict("failure")))
    with pytest.raises(ConfigError, match=r"^b\.json: task 't1' differs from the one in a\.json"):
        merge([a_submission(), other], ["a.json", "b.json"])


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (a_submission(role="purple"), "participants"),
        (a_submission(judge=None), "judge"),
        ({"participants": {}, "results": []}, "'results' is not a list of results"),
        ({}, "'results' is not a list of results"),
        ({"results": [{"winner": "x"}]}, "'detail.tasks' is missing"),
        ({"results": [{"winner": "x", "detail": {"tasks": [{}]}}]}, "tasks #1 has no task_id"),
    ],
)
def test_what_does_not_belong_together_is_not_merged(other: Submission, expected: str) -> None:
    with pytest.raises(ConfigError, match=rf"^submission 2: .*{expected}"):
        merge([a_submission(), other])


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(ConfigError, match="nothing to merge"):
        merge([])


def test_a_shard_of_checked_tasks_alone_fits_one_with_a_judge_model() -> None:
    task = {"task_id": "c", "website": "https://example.org/", "task": "x", "checks": [{"kind": "page", "url": "/*"}]}
    checks = JUDGE.model_copy(update={"method": "checks"})
    checked = a_result("c", task=Task.model_validate(task), verdict=a_verdict("failure", judge=checks))
    shards = [a_submission(checked, judge=checks), a_submission(a_result("j"))]
    merged = detail(merge(shards))
    assert (merged["judge"]["method"], list(merged["by_truth"])) == ("webjudge", ["checks", "judge"])
    of_other_code = a_submission(checked, judge=checks.model_copy(update={"code_checksum": "other"}))
    with pytest.raises(ConfigError, match="its judge is not that of"):
        merge([of_other_code, shards[1]])


def repeated(task_id: str, *outcomes: str) -> list[Attempt]:
    return [a_result(task_id, epoch=n, verdict=a_verdict(outcome)) for n, outcome in enumerate(outcomes, 1)]


def test_shards_of_several_epochs_have_all_attempts_of_their_tasks() -> None:
    first, second = repeated("a", "success", "failure"), repeated("b", "success", "success")
    merged = detail(merge([a_submission(*first), a_submission(*second)]))
    whole = detail(a_submission(*first, *second))
    merged["provenance"].pop("shards")
    assert merged == whole
    assert (whole["success_rate"], whole["total_tasks"], whole["attempts"]) == (75.0, 2, 4)


def test_shards_that_were_repeated_differently_often_are_refused() -> None:
    shards = [a_submission(*repeated("a", "success", "failure")), a_submission(*repeated("b", "success"))]
    with pytest.raises(ConfigError, match="number of epochs"):
        merge(shards)


def metered(task_id: str, cost_usd: float | None) -> Submission:
    submission = a_submission(a_result(task_id))
    usage = {
        "basis": "metered, lower bound",
        "calls": 2,
        "input_tokens": 10,
        "models": [task_id],
        "price_date": "2026-11-03",
    }
    detail(submission).update(
        {"participant_usage": usage} | ({} if cost_usd is None else {"participant_cost_usd": cost_usd})
    )
    return submission


def test_what_was_metered_in_all_files_is_added_up() -> None:
    pytest.importorskip("judge.plugins.metering.part")
    merged = detail(merge([metered("t1", 0.25), metered("t2", 0.5)]))
    assert merged["participant_cost_usd"] == 0.75
    assert merged["participant_usage"] == {
        "basis": "metered, lower bound",
        "calls": 4,
        "input_tokens": 20,
        "models": ["t1", "t2"],
        "price_date": "2026-11-03",
    }
    assert "participant_cost_usd" not in detail(merge([metered("t1", 0.25), metered("t2", None)]))


def test_what_was_metered_in_some_files_only_is_not_passed_off_as_everything(tmp_path: Path) -> None:
    files = [metered("t1", 0.25), a_submission(a_result("t2"))]
    assert not {"participant_cost_usd", "participant_usage"} & detail(merge(files)).keys()
    paths = [tmp_path / f"{place}.json" for place in range(2)]
    for path, submission in zip(paths, files, strict=True):
        path.write_text(json.dumps(submission))
    completed = CliRunner().invoke(app, ["merge", *map(str, paths)])
    assert completed.exit_code == 0, completed.output
    assert "note: only 1 of 2 files says what the participant's model used" in completed.stderr
