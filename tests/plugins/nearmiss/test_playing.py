"""What is played and kept: walks on the list of things to pack, without a browser."""

import json
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.results import digested
from judge.commands.app import app
from judge.plugins.nearmiss import playing
from judge.plugins.nearmiss.recordings import recorded
from judge.records.tasks import Task
from judge.scenario.sources import toml_value
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Attempt, Trajectory
from shared.files import write_json
from shared.toml_text import parse_toml

from .packing import play
from .test_command import ADDED, a_scenario

pytestmark = pytest.mark.slow


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario whose walks are played on the list, as a browser would."""
    scripts = list[Path]()

    @asynccontextmanager
    async def played(
        _scenario: Any, tasks: Sequence[Task], *_: Any, ended: Callable[[Trajectory], None], **_more: Any
    ) -> AsyncIterator[None]:
        steps = {each["task"]: each["steps"] for each in parse_toml(scripts[-1].read_text())["scripts"]}
        for task in tasks:
            folder = tmp_path / "run" / task.task_id
            (folder / "trajectory").mkdir(parents=True, exist_ok=True)
            trajectory, _ = play(folder, steps[task.task])
            for step in trajectory.steps:
                (folder / str(step.screenshot)).write_bytes(b"\xff\xd8\xff\xe0" + task.task_id.encode())
            result = digested(folder, trajectory.attempt.model_copy(update={"task": task}).to_json())
            write_json(folder / "result.json", result)
            attempt = Attempt.from_json(result, source="")
            ended(Trajectory(folder=folder, attempt=attempt, network=trajectory.network))
        yield

    monkeypatch.setattr(playing, "played", played)
    monkeypatch.setattr(playing, "walker_of", lambda _tasks, folder: scripts.append(folder / "walks.toml"))
    path = a_scenario(tmp_path, ADDED)
    site = '[[sites]]\nname = "list"\nendpoint = "http://shop.test"\nreset_url = "/reset"\n'
    path.write_text(f"{path.read_text()}\n{site}")
    return path


def invoked(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_what_was_played_is_kept_and_not_played_again(scenario: Path) -> None:
    options = ("--operator", "also", "--operator", "twice")
    assert "let through 3 of 4: 2 twice, 1 also" in invoked("tasks", "mutate", scenario, *options)
    kept = list(recorded(scenario.parent / "near-misses"))
    assert {each.walk.operator for each in kept} == {"right", "also", "twice"}
    assert not list((scenario.parent / "near-misses").rglob("*.jpg"))
    shutil.rmtree(scenario.parent / "run")
    assert "let through 3 of 4" in invoked("tasks", "mutate", scenario, *options)
    assert not (scenario.parent / "run").exists()


def test_a_task_is_played_again_if_the_judge_asks_its_site_for_more(scenario: Path) -> None:
    invoked("tasks", "mutate", scenario, "--operator", "twice")
    shutil.rmtree(scenario.parent / "run")
    more = {"kind": "fetch", "url": "/state", "response": "*"}
    scenario.write_text(scenario.read_text().replace("checks = [", f"checks = [{toml_value(more)}, "))
    # The list answers nothing there, so that the reference cannot pass.
    CliRunner().invoke(app, ["tasks", "mutate", str(scenario), "--operator", "twice"])
    assert {each.name for each in (scenario.parent / "run").iterdir()} == {"pack-right-1", "pack-right-2"}


def test_a_reference_that_failed_is_played_again(scenario: Path) -> None:
    gone = {"kind": "page", "url": "/list?done"}
    scenario.write_text(scenario.read_text().replace("checks = [", f"checks = [{toml_value(gone)}, "))
    for _ in range(2):
        result = CliRunner().invoke(app, ["tasks", "mutate", str(scenario)])
        assert "skipped pack: its right walk does not pass" in result.stdout
        assert len(list((scenario.parent / "run").iterdir())) == 2
        shutil.rmtree(scenario.parent / "run")


def test_a_corpus_keeps_attempts_whole_and_nothing_in_them_names_the_walk(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    assert "8 attempts, 4 that did the task, 4 near misses" in invoked("judges", "corpus", scenario, "--output", folder)
    known = json.loads((folder / "corpus.json").read_text())
    assert {each["operator"] for each in known if not each["human"]} >= {"also", "twice"}
    for each in known:
        attempt = load_trajectory(folder / each["task_id"])
        assert attempt.task.task == "Pack it all."
        assert attempt.screenshots
        assert (
            each["operator"] == "right"
            or each["operator"] not in (folder / each["task_id"] / "result.json").read_text()
        )
