"""Judge methods against ground truth on the same attempts."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, by_checks, write_verdict_on
from judge.plugins.labels.ground_truth import measure
from judge.records.assertions import Assertion
from judge.records.verdicts import NO_PROMPTS
from judge.scenario.importers import IMPORTERS, ImportedTasks, Importer
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.files import write_json
from shared.seams import Seam

OAK = {"check": "check 1 (element)", "description": "Oak is chosen", "expected": "[checked]", "found": "nothing"}


BY_CODE = JUDGE.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS})


def a_run(folder: Path, *pairs: tuple[str | None, str | None], truth: str = "checks") -> RunStore:
    """A run with one task for each pair of outcomes, of ground truth and of the judge."""
    store = a_finished_run(folder, *(a_result(f"t{n}", verdict=None) for n in range(len(pairs))))
    for n, (known, judged) in enumerate(pairs):
        if known:
            write_verdict_on(
                store.task(f"t{n}"), f"{truth}-1", by_checks(known, *([OAK] if known == "failure" else []))
            )
        if judged:
            write_verdict_on(store.task(f"t{n}"), "webjudge-1", a_verdict(judged, reason="It looks done."))
    return store


def test_the_rates_count_attempts_that_have_both_verdicts(tmp_path: Path) -> None:
    store = a_run(
        tmp_path,
        ("success", "success"),
        ("failure", "success"),
        ("failure", "failure"),
        ("success", None),
        (None, "success"),
    )
    measured = measure(store.results, "checks", run="r")
    assert list(measured) == ["webjudge-1"]
    pairs = measured["webjudge-1"].pairs
    assert [(pair.human, pair.judge) for pair in pairs] == [(True, True), (False, True), (False, False)]
    assert {pair.groups["level"] for pair in pairs} == {"easy"}


def test_a_disagreement_has_both_verdicts_the_failed_check_and_the_judges_reasoning(tmp_path: Path) -> None:
    store = a_run(tmp_path, ("success", "success"), ("failure", "success"))
    (result,) = measure(store.results, "checks", run="r")["webjudge-1"].differences
    assert (result.task_id, result.truth, result.judge, result.reason) == ("t1", "failure", "success", "It looks done.")
    assert result.failed == (Assertion(**OAK, passed=False),)


def test_each_judge_is_measured_and_one_can_be_chosen(tmp_path: Path) -> None:
    store = a_run(tmp_path, ("success", "failure"))
    write_verdict_on(store.task("t0"), "rubric-2", a_verdict("success"))
    assert list(measure(store.results, "checks", run="r")) == ["rubric-2", "webjudge-1"]
    assert list(measure(store.results, "checks", run="r", method="rubric")) == ["rubric-2"]


def test_verdicts_without_a_decision_are_left_out_by_their_reason(tmp_path: Path) -> None:
    store = a_run(tmp_path, ("success", "success"), ("unscored", "success"), ("success", "unscored"))
    pairs = measure(store.results, "checks", run="r")["webjudge-1"].pairs
    assert [pair.excluded for pair in pairs] == [None, "unlabelled", "unscored"]


def test_an_attempt_whose_end_settled_its_score_says_nothing_about_a_judge(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t0", "max_steps"), a_result("t1", verdict=None))
    for task_id in ("t0", "t1"):
        write_verdict_on(store.task(task_id), "checks-1", by_checks("failure"))
        write_verdict_on(store.task(task_id), "webjudge-1", a_verdict("failure"))
    pairs = measure(store.results, "checks", run="r")["webjudge-1"].pairs
    assert [pair.excluded for pair in pairs] == ["settled", None]


def test_a_verdict_on_another_attempt_is_not_compared(tmp_path: Path) -> None:
    store = a_run(tmp_path, ("success", "success"))
    store.task("t0").write_verdict("rubric-1", a_verdict("failure", trajectory_sha256="0" * 64))
    assert list(measure(store.results, "checks", run="r")) == ["webjudge-1"]


def test_another_method_without_a_model_is_ground_truth_as_well(tmp_path: Path) -> None:
    store = a_run(tmp_path, ("failure", "success"), truth="webarena_verified")
    assert len(measure(store.results, "webarena_verified", run="r")["webjudge-1"].differences) == 1


def test_a_judge_model_is_not_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no attempt has ground truth of webjudge"):
        measure(a_run(tmp_path, ("failure", "success")).results, "webjudge", run="r")


def test_only_tasks_with_its_kind_of_check_belong_to_a_source_of_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = Importer(run=lambda request: ImportedTasks([], {}), check_kind="probe")
    store = a_run(tmp_path, ("success", "success"))
    monkeypatch.setattr(Seam, "find", lambda seam, name: games if (seam, name) == (IMPORTERS, "games") else None)
    with pytest.raises(ConfigError, match="no attempt has ground truth of games"):
        measure(store.results, "games", run="r")
    path = store.task("t0").folder / "result.json"
    write_json(path, json.loads(path.read_text()) | {"checks": [{"kind": "probe", "expression": "done"}]})
    assert list(measure(store.results, "games", run="r")) == ["webjudge-1"]


@pytest.mark.parametrize(
    ("pair", "problem", "remedy"),
    [
        ((None, "success"), "no attempt has ground truth of checks", "run wabe score r --model offline"),
        (("success", None), "no attempt with ground truth was judged", "run wabe score r --method webjudge"),
    ],
)
def test_without_a_common_attempt_there_is_nothing_to_compare(
    tmp_path: Path, pair: Any, problem: str, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=f"r: {problem}, so there is nothing to compare") as caught:
        measure(a_run(tmp_path, pair).results, "checks", run="r")
    assert caught.value.remedy == remedy
