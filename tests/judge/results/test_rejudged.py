"""A later verdict of a run's own judge goes into the run's results; nobody else's does."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import verify_run
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, verdict_of_checks, write_verdict_on
from judge.judges.code import code_checksum
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS
from judge.results.progress import with_verdict
from judge.results.rejudged import take_over
from judge.results.run_record import settings_checksum
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.files import write_json

# The offline judge has no prompts: its code stands for both.
OWN = JUDGE.model_copy(update={"code_checksum": code_checksum(), "prompt_checksum": code_checksum()})
UNSCORED = a_verdict("unscored", reason="the model is down", judge=OWN, key_points=(), image_judge_record=())


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A finished run: one success, one task that the judge model gave no verdict on, one that was aborted."""
    return a_finished_run(
        tmp_path,
        a_result("t1", verdict=a_verdict(judge=OWN)),
        a_result("t2", verdict=UNSCORED),
        a_result("t3", "environment_fault", steps=(), error="gone", blame="browser"),
    )


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def detail(store: RunStore) -> dict[str, Any]:
    results: dict[str, Any] = read(store.folder / "results.json")["results"][0]["detail"]
    return results


def everything(store: RunStore) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(store.folder.rglob("*")) if path.is_file()}


def test_a_verdict_on_an_unscored_task_is_counted(store: RunStore) -> None:
    write_verdict_on(store.task("t2"), "webjudge-1", a_verdict("failure", judge=OWN))
    assert take_over(store) == ("t2",)
    counts = detail(store)
    assert (counts["success_rate"], counts["scored_tasks"], counts["unscored_tasks"]) == (50.0, 2, 0)
    assert read(store.task("t2").folder / "result.json")["verdict"] == "failure"
    assert read(store.folder / "run.json")["outcomes"]["unscored"] == 0


def test_the_run_still_verifies(store: RunStore) -> None:
    write_verdict_on(store.task("t2"), "webjudge-1", a_verdict("failure", judge=OWN))
    assert verify_run(store).mismatches
    take_over(store)
    assert verify_run(store).mismatches == ()


def test_another_judges_verdict_changes_nothing(store: RunStore) -> None:
    write_verdict_on(store.task("t2"), "rubric-9", a_verdict("success"))
    before = everything(store)
    assert take_over(store) == ()
    assert everything(store) == before


def test_tasks_without_news_keep_their_results_byte_for_byte(store: RunStore) -> None:
    path = store.task("t1").folder / "result.json"
    before = path.read_bytes()
    write_verdict_on(store.task("t2"), "webjudge-1", a_verdict("failure", judge=OWN))
    take_over(store)
    assert path.read_bytes() == before


def test_an_aborted_task_stays_aborted_despite_a_verdict_file(store: RunStore) -> None:
    write_verdict_on(store.task("t3"), "webjudge-1", a_verdict("success"))
    assert take_over(store) == ()
    assert detail(store)["aborted_tasks"] == 1


def test_what_a_kill_left_half_done_is_finished_by_the_next_call(store: RunStore) -> None:
    submission = (store.folder / "results.json").read_bytes()
    write_verdict_on(store.task("t2"), "webjudge-1", a_verdict("failure", judge=OWN))
    take_over(store)
    (store.folder / "results.json").write_bytes(submission)
    assert take_over(store) == ("t2",)
    assert detail(store)["unscored_tasks"] == 0


def test_a_run_that_is_not_finished_is_left_to_resume(store: RunStore) -> None:
    (store.folder / "results.json").unlink()
    write_verdict_on(store.task("t2"), "webjudge-1", a_verdict("failure"))
    before = everything(store)
    assert take_over(store) == ()
    assert everything(store) == before


@pytest.mark.parametrize("broken", ["{}", "[]", "{", '{"results": [{"detail": {"tasks": [1]}}]}'])
def test_a_submission_that_cannot_be_read_is_named(store: RunStore, broken: str) -> None:
    (store.folder / "results.json").write_text(broken)
    with pytest.raises(ConfigError, match=r"results\.json: the verdicts are kept"):
        take_over(store)


EVALUATOR = OWN.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS})


def with_truth(store: RunStore, truth: str) -> None:
    record = read(store.folder / "run.json")
    record["config"]["truth"] = truth
    # As a run with this setting would have recorded it.
    record["config_checksum"] = settings_checksum(record["config"])
    write_json(store.folder / "run.json", record)
    submission = read(store.folder / "results.json")
    submission["results"][0]["detail"]["provenance"]["config_checksum"] = record["config_checksum"]
    write_json(store.folder / "results.json", submission)


def test_a_verdict_of_webarena_verified_counts_before_a_judge_models(store: RunStore) -> None:
    write_verdict_on(store.task("t1"), "webarena_verified-1", a_verdict("failure", judge=EVALUATOR))
    assert take_over(store) == ("t1",)
    assert (detail(store)["success_rate"], detail(store)["by_truth"]["webarena_verified"]["total_tasks"]) == (0.0, 1)
    run = read(store.folder / "run.json")
    assert (run["judge_ids"], run["decided_by"]) == (
        {"t1": "webarena_verified-1"},
        {"webarena_verified": 1, "judge": 2},
    )
    assert verify_run(store).mismatches == ()


def test_the_newest_verdict_of_webarena_verified_counts(store: RunStore) -> None:
    for name, outcome in (("2", "failure"), ("1", "success")):
        write_verdict_on(store.task("t2"), f"webarena_verified-{name}", a_verdict(outcome, judge=EVALUATOR))
    take_over(store)
    assert read(store.folder / "run.json")["judge_ids"] == {"t2": "webarena_verified-1"}
    assert detail(store)["success_rate"] == 100.0


def test_with_the_judge_as_truth_it_changes_nothing(store: RunStore) -> None:
    with_truth(store, "judge")
    write_verdict_on(store.task("t1"), "webarena_verified-1", a_verdict("failure", judge=EVALUATOR))
    before = everything(store)
    assert take_over(store) == ()
    assert everything(store) == before


@pytest.mark.parametrize(("truth", "rate"), [("checks", 100.0), ("webarena_verified", 0.0)])
def test_checks_count_before_webarena_verified_unless_that_is_the_truth(
    tmp_path: Path, truth: str, rate: float
) -> None:
    task = {"task_id": "t1", "website": "https://example.org/", "task": "x", "checks": [{"kind": "page", "url": "/*"}]}
    attempt = a_result("t1", task=Task.model_validate(task))
    attempt = with_verdict(attempt, verdict_of_checks(attempt))
    store = a_finished_run(tmp_path, attempt, judge_id="checks-1")
    with_truth(store, truth)
    write_verdict_on(store.task("t1"), "webarena_verified-1", a_verdict("failure", judge=EVALUATOR))
    take_over(store)
    assert detail(store)["success_rate"] == rate
    assert verify_run(store).mismatches == ()


def test_a_verdict_on_one_epoch_counts_for_that_epoch(tmp_path: Path) -> None:
    first = a_result("t1", verdict=a_verdict(judge=OWN))
    store = a_finished_run(tmp_path, first, first.model_copy(update={"epoch": 2, "verdict": UNSCORED}))
    write_verdict_on(store.task("t1", 2), "webjudge-1", a_verdict("failure", judge=OWN))
    assert take_over(store) == ("t1.2",)
    assert detail(store)["success_rate"] == 50.0
    assert verify_run(store).mismatches == ()


def test_a_judge_that_decides_one_epoch_only_is_named_for_it(tmp_path: Path) -> None:
    first = a_result("t1", verdict=a_verdict(judge=OWN))
    store = a_finished_run(tmp_path, first, first.model_copy(update={"epoch": 2}))
    truth = a_verdict("failure", judge=OWN.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS}))
    write_verdict_on(store.task("t1"), "webarena_verified-1", truth)
    assert take_over(store) == ("t1",)
    assert read(store.folder / "run.json")["judge_ids"] == {"t1": "webarena_verified-1", "t1.2": "webjudge-1"}
    assert take_over(store) == ()
