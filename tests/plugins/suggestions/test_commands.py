"""`wabe tasks script` and `wabe tasks record`: what they refuse before anything is played. Plays are in tests/e2e."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result
from judge.commands.app import app
from judge.records.tasks import Task
from judge.runner.boundary import Interrupted
from judge.scenario.sources import scenario_toml
from judge.store.layout import RunStore
from shared.errors import ConfigError

TASK = Task(task_id="t1", website="https://example.org/", task="Find it.")


def a_scenario(folder: Path, task: Task = TASK) -> Path:
    path = folder / "mine.toml"
    path.write_text(scenario_toml([task], participant="replay"))
    return path


def a_run(folder: Path, scenario: Path | None) -> RunStore:
    store = a_finished_run(folder / "out", a_result("t1"))
    known: dict[str, Any] = {"scenario": {"path": str(scenario)}} if scenario else {"scenario": None}
    store.write_run({**(store.read_run() or {}), **known})
    return store


def refusal_of(*arguments: str | Path) -> str:
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(app, ["tasks", *map(str, arguments)], catch_exceptions=False)
    return str(caught.value)


@pytest.mark.parametrize(
    ("recorded", "problem"), [("gone.toml", "gone.toml does not exist"), (None, "its scenario file is not known here")]
)
def test_a_run_whose_scenario_is_gone_says_how_to_name_it(tmp_path: Path, recorded: str | None, problem: str) -> None:
    store = a_run(tmp_path, tmp_path / recorded if recorded else None)
    completed = refusal_of("script", store.folder, "--task", "t1")
    assert problem in completed
    assert "--scenario FILE" in completed


def test_a_scenario_with_another_text_is_not_that_of_the_attempt(tmp_path: Path) -> None:
    other = a_scenario(tmp_path, TASK.model_copy(update={"task": "Find another one."}))
    completed = refusal_of("script", a_run(tmp_path, other).folder, "--task", "t1")
    assert "has no task 't1' with this text" in completed


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[[scripts]]\ntask = " Find  it."\nsteps = [{ say = "a" }]\n', "has a script for this task already"),
        ("not TOML", "choose another file"),
    ],
)
def test_a_file_with_a_script_for_the_task_is_not_touched(tmp_path: Path, content: str, problem: str) -> None:
    store, output = a_run(tmp_path, a_scenario(tmp_path)), tmp_path / "replay.toml"
    output.write_text(content)
    assert problem in refusal_of("script", store.folder, "--task", "t1", "-o", output)
    assert output.read_text() == content


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ftp://example.org/", "--task", "Do it."), "is not an address"),
        (("https://example.org/",), "no task (give --task"),
        (("https://example.org/", "--task", "Do it.", "-o", "taken"), "taken exists already"),
    ],
)
def test_a_recording_begins_only_with_an_address_a_task_and_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], problem: str
) -> None:
    pytest.importorskip("judge.plugins.play_page")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    assert problem in refusal_of("record", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_recording_that_came_to_nothing_begins_again_with_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("judge.plugins.play_page")

    async def interrupted(*_: object) -> int:
        raise Interrupted("interrupted, everything is stopped", remedy="resume with: wabe run gone/scenario.toml")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("judge.plugins.suggestions.record_command.player_of", lambda _: interrupted)
    words = ["tasks", "record", "https://example.org/", "--task", "Find it.", "--id", "t1", "--output", "mine"]
    for _ in range(2):
        with pytest.raises(Interrupted, match=re.escape(f"(show it again: {shlex.join(['wabe', *words])})")):
            CliRunner().invoke(app, words, catch_exceptions=False)
        assert [path.name for path in (tmp_path / "mine").iterdir()] == ["scenario.toml"]
    (tmp_path / "mine" / "scenario.toml").write_text("edited")
    assert "mine exists already" in refusal_of(*words[1:])
