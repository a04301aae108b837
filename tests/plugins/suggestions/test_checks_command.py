"""`wabe checks suggest`, as a user runs it."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result, a_verdict
from judge.commands.app import app
from judge.records.tasks import Task
from judge.store.layout import RunStore

WHO = Task.model_validate({"task_id": "t1", "website": "https://example.org/", "task": "Who?"})


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return a_finished_run(tmp_path, a_result("t1"))


def suggest(run: RunStore, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["checks", "suggest", str(run.folder), *arguments])


def test_an_attempt_that_ends_as_it_began_has_nothing_to_propose(run: RunStore) -> None:
    done = suggest(run, "--task", "t1")
    assert done.exit_code == 1
    assert "no check to propose" in done.output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(["--task", "t2"], "--task 't2' is not in run run-1"), (["--task", "t1", "--epoch", "2"], "has no epoch 2")],
)
def test_an_attempt_that_is_not_there_is_one_line(run: RunStore, arguments: list[str], problem: str) -> None:
    assert problem in str(suggest(run, *arguments).exception)


def test_an_attempt_that_nothing_judged_is_proposed_from_with_a_note(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1", verdict=None, final_answer="Ada", task=WHO))
    done = suggest(store, "--task", "t1")
    assert done.exit_code == 0
    assert "Nothing has judged this attempt yet" in done.output
    assert 'contains = "Ada"' in done.output


def test_what_a_wrong_attempt_also_passes_is_not_proposed(tmp_path: Path) -> None:
    right = a_finished_run(tmp_path / "right", a_result("t1", final_answer="Ada", task=WHO))
    wrong = a_finished_run(
        tmp_path / "wrong", a_result("t1", final_answer="Boris", task=WHO, verdict=a_verdict("failure"))
    )
    done = suggest(right, "--task", "t1", "--against", str(wrong.folder))
    assert done.exit_code == 0
    assert 'the wrong attempt fails it: found "Boris"' in done.output


@pytest.mark.parametrize(
    ("task", "outcome", "problem"),
    [("Who?", "success", "t1 succeeded in run run-1"), ("What?", "failure", "played another website or text of t1")],
)
def test_an_attempt_that_is_not_a_wrong_one_of_the_task_is_refused(
    tmp_path: Path, task: str, outcome: str, problem: str
) -> None:
    right = a_finished_run(tmp_path / "right", a_result("t1", task=WHO))
    changed = WHO.model_copy(update={"task": task})
    wrong = a_finished_run(tmp_path / "wrong", a_result("t1", task=changed, verdict=a_verdict(outcome)))
    assert problem in str(suggest(right, "--task", "t1", "--against", str(wrong.folder)).exception)


@pytest.mark.parametrize("option", ["--against", "--also"])
def test_an_attempt_is_not_compared_with_itself(tmp_path: Path, option: str) -> None:
    store = a_finished_run(tmp_path, a_result("t1", task=WHO))
    done = suggest(store, "--task", "t1", option, str(store.folder))
    assert f"{option} names the same attempt" in str(done.exception)


@pytest.mark.parametrize(("outcome", "problem"), [("failure", "t1 did not succeed in run run-1"), ("success", "")])
def test_the_other_right_attempt_must_be_right(tmp_path: Path, outcome: str, problem: str) -> None:
    right = a_finished_run(tmp_path / "right", a_result("t1", task=WHO))
    other = a_finished_run(tmp_path / "other", a_result("t1", task=WHO, verdict=a_verdict(outcome)))
    done = suggest(right, "--task", "t1", "--also", str(other.folder))
    assert problem in str(done.exception) if problem else "no write is named" in done.output


def test_a_failed_attempt_is_proposed_from_only_if_asked(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1", "max_steps"))
    assert "did not succeed" in str(suggest(store, "--task", "t1").exception)
    assert suggest(store, "--task", "t1", "--any").exception.code == 1
