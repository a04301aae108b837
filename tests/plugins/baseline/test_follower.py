"""A run against an earlier one: what was lost, and when that fails the run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.results import a_finished_run, a_result, a_submission, a_verdict
from helpers.runner.concluded import concluded
from judge.plugins.baseline.follower import Against, Baseline, BaselineComparison, compared, read_baseline
from judge.records.tasks import Task
from judge.results.entries import read_entries
from judge.runner.options import RunOptions
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.files import write_json


def entries(**outcomes: str) -> list[dict[str, Any]]:
    """One entry per task; of several attempts if the outcomes are separated by spaces."""
    return [
        {"task_id": task, "task_description": f"Do {task}.", "website": "w", "verdict": outcome, "epoch": epoch}
        for task, listed in outcomes.items()
        for epoch, outcome in enumerate(listed.split(), 1)
    ]


def against(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> BaselineComparison:
    return compared(Baseline("b", read_entries(before)), {"results": [{"detail": {"tasks": after}}]})


def test_tasks_that_only_the_baseline_solved_are_lost() -> None:
    comparison = against(
        entries(a="success", b="success", c="failure", d="failure"),
        entries(a="failure", b="success", c="success", d="failure"),
    )
    assert (comparison.paired, comparison.lost, comparison.gained, comparison.undecided) == (4, ("a",), ("c",), ())
    assert comparison.p == 1
    assert comparison.is_worse(None)


@pytest.mark.parametrize("outcome", ["aborted", "unscored"])
def test_a_solved_task_without_a_verdict_now_is_not_passed_over(outcome: str) -> None:
    comparison = against(entries(a="success", b="failure", c="success"), entries(a=outcome, b=outcome, c="success"))
    assert (comparison.lost, comparison.undecided) == ((), ("a",))
    assert comparison.is_worse(None)
    assert not comparison.is_worse(0.05)


def test_a_task_that_was_excluded_on_purpose_is_named_and_not_lost() -> None:
    left_out = {**entries(a="aborted")[0], "excluded": "sold out"}
    comparison = against(entries(a="success", b="success"), [left_out, *entries(b="success")])
    assert (comparison.undecided, comparison.excluded) == ((), ("a",))
    assert "  excluded here, so not compared: a" in comparison.lines()
    assert not comparison.is_worse(None)


def test_a_run_that_lost_nothing_passes_though_other_tasks_fail() -> None:
    assert not against(entries(a="failure", b="success"), entries(a="failure", b="success", c="failure")).is_worse(None)


def test_a_task_is_lost_if_it_is_solved_less_often() -> None:
    comparison = against(entries(a="success success", b="success failure"), entries(a="success failure", b="success"))
    assert (comparison.lost, comparison.gained) == (("a",), ("b",))


@pytest.mark.parametrize(("count", "is_worse"), [(4, False), (5, False), (6, True)])
def test_with_a_threshold_the_paired_test_decides(count: int, is_worse: bool) -> None:
    tasks = [f"t{number}" for number in range(count)]
    comparison = against(entries(**dict.fromkeys(tasks, "success")), entries(**dict.fromkeys(tasks, "failure")))
    # Six tosses that all fall on one side have a two-sided probability of 2/64.
    assert comparison.p == 2 / 2**count
    assert comparison.is_worse(0.05) is is_worse


def test_more_gains_than_losses_are_never_worse_with_a_threshold() -> None:
    before = entries(a="success", **dict.fromkeys("bcdefghij", "failure"))
    after = entries(a="failure", **dict.fromkeys("bcdefghij", "success"))
    assert against(before, after).p < 0.05
    assert not against(before, after).is_worse(0.05)
    assert against(before, after).is_worse(None)


@pytest.mark.parametrize("max_p", [None, 0.05])
def test_without_a_common_task_the_run_fails(max_p: float | None) -> None:
    comparison = against(entries(a="success"), entries(b="success"))
    assert (comparison.paired, comparison.missing) == (0, 1)
    assert comparison.is_worse(max_p)


def test_a_task_with_another_text_is_named_and_not_compared() -> None:
    changed = [entry | {"task_description": "Do something else."} for entry in entries(a="failure")]
    comparison = against(entries(a="success", b="success"), [*changed, *entries(b="success")])
    assert (comparison.changed, comparison.lost, comparison.undecided) == (("a",), (), ())
    assert "  not compared, because text or website differ: a" in comparison.lines()


def test_an_older_baseline_without_texts_is_compared_by_id() -> None:
    comparison = against([{"task_id": "a", "success": True}], entries(a="failure"))
    assert comparison.lost == ("a",)


def test_the_numbers_and_the_names_are_told() -> None:
    comparison = against(
        entries(a="success", b="success", c="success", d="success"), entries(a="failure", b="aborted", d="success")
    )
    assert comparison.lines() == [
        "Baseline b: 2 tasks scored in both runs, 0 gained, 1 lost, p = 1 (McNemar's exact test)",
        "  lost: a",
        "  solved there, without a verdict here: b",
        "  not in this run: 1 task of the baseline",
    ]


@pytest.mark.parametrize("argument", ["run-1", "latest", "{folder}", "{folder}/results.json"])
def test_a_baseline_is_a_run_or_a_submission(tmp_path: Path, argument: str) -> None:
    store = a_finished_run(tmp_path, a_result("t1", verdict=a_verdict()))
    write_json(store.folder / "results.json", a_submission(a_result("t1", verdict=a_verdict())))
    result = read_baseline(argument.format(folder=store.folder), tmp_path)
    assert [entry.task_id for entry in result.entries] == ["t1"]
    assert Path(result.name).name in ("run-1", "results.json")


def test_a_baseline_without_results_is_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "r1")
    store.create()
    write_json(store.folder / "run.json", {"schema_version": 1})
    with pytest.raises(ConfigError, match=r"--baseline r1: run r1 has no results\.json"):
        read_baseline("r1", tmp_path)


def test_a_file_that_is_not_a_submission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_baseline(str(tmp_path / "x.json"), tmp_path)


def test_an_own_attempt_is_compared_with_its_own_text(tmp_path: Path) -> None:
    one = a_result("t1", verdict=a_verdict())
    other = one.model_copy(update={"task": Task(task_id="t1", website=one.task.website, task="Another task.")})
    submission = a_submission(other)
    comparison = compared(Baseline("b", read_entries(a_submission(one)["results"][0]["detail"]["tasks"])), submission)
    assert comparison.changed == ("t1",)


def solved_before(*tasks: str) -> Callable[[RunOptions], Against]:
    submission = a_submission(*map(a_result, tasks))
    return lambda options: Against(options, Baseline("r0", read_entries(submission["results"][0]["detail"]["tasks"])))


@pytest.mark.parametrize(
    ("solved", "max_p", "code"), [(("rugs",), None, 0), (("lamps",), None, 1), (("lamps",), 0.05, 0)]
)
def test_a_task_that_the_baseline_solved_and_this_run_did_not_fails_the_run(
    tmp_path: Path, solved: tuple[str, ...], max_p: float | None, code: int
) -> None:
    result, text = concluded(tmp_path, followers=[solved_before(*solved)], baseline="r0", baseline_p=max_p)
    assert result == code
    assert "Baseline r0: 1 task scored in both runs" in text
    assert ("lost: lamps" in text) == (solved == ("lamps",))


def test_a_lost_task_is_reported_even_where_nothing_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert concluded(tmp_path, followers=[solved_before("lamps")], baseline="r0", display="none") == (1, "")
    assert "  lost: lamps" in capsys.readouterr().err


def test_the_last_json_line_has_the_comparison_with_the_baseline(tmp_path: Path) -> None:
    _, text = concluded(tmp_path, followers=[solved_before("lamps")], baseline="r0", display="json")
    document = json.loads(text.splitlines()[-1])["baseline"]
    assert (document["baseline"], document["lost"], document["p"]) == ("r0", ["lamps"], 1.0)


@pytest.mark.parametrize("options", [{"baseline_p": 0.05}, {"baseline": "r1", "baseline_p": 2.0}])
def test_a_p_value_that_cannot_be_used_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"--baseline-p {options['baseline_p']:g} is not usable"):
        Against.of(RunOptions(scenario=tmp_path, **options))
