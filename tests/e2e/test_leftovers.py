"""However a run ends, nothing of it is left: no process, no port, no temporary file."""

import json
import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from helpers.runner.commands import FinishedCommand, RunningCommand, command, listening
from helpers.scenario.copies import ports_of, scenario_on_free_ports

pytestmark = pytest.mark.e2e
TASK = "oak_desks"


def assert_nothing_left(ended: FinishedCommand, scenario: Path) -> None:
    assert ended.left_processes == {}
    assert ended.left_files == []
    assert [port for port in ports_of(scenario) if listening(port)] == []


def start(folder: Path, scenario: Path) -> AbstractContextManager[RunningCommand]:
    return command(
        folder / "tmp", "agentbeats-run", scenario, "--task", TASK, "--output-dir", folder / "out", env={"TERM": "dumb"}
    )


def wait_for_step(running: RunningCommand, folder: Path, step: int) -> None:
    running.wait_for_file(folder / "out", f"runs/*/results/{TASK}/snapshots/step_{step:03d}.yaml")


@pytest.mark.parametrize("step", [0, 5])
def test_ctrl_c_at_any_step_stops_everything_and_says_how_to_go_on(tmp_path: Path, step: int) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        wait_for_step(running, tmp_path, step)
        running.interrupt()
        ended = running.end()
    assert ended.code == 130
    assert "--resume" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert_nothing_left(ended, scenario)


def test_ctrl_c_before_anything_is_up_stops_everything(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        running.wait_for_file(tmp_path / "out", "runs/*/logs/shop.log")
        running.interrupt()
        ended = running.end()
    assert ended.code == 130
    assert_nothing_left(ended, scenario)


def test_a_killed_participant_is_scored_0_with_its_cause_and_leaves_nothing(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        wait_for_step(running, tmp_path, 1)
        for pid in running.descendants("participant replay"):
            os.kill(pid, signal.SIGKILL)
        ended = running.end()
    assert ended.code == 0, ended.stdout + ended.stderr
    result = json.loads((tmp_path / "out" / "results" / TASK / "result.json").read_text())
    assert (result["verdict"], result["stop_reason"], result["blame"]) == (
        "failure",
        "participant_error",
        "participant",
    )
    assert_nothing_left(ended, scenario)


def test_a_killed_browser_is_noticed_and_named_and_the_task_is_tried_again(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        wait_for_step(running, tmp_path, 1)
        for pid in running.descendants("--type=renderer") + running.descendants("--remote-debugging-pipe"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended = running.end()
    assert ended.code == 0, ended.stdout + ended.stderr
    result = json.loads((tmp_path / "out" / "results" / TASK / "result.json").read_text())
    assert (result["verdict"], result["attempt"]) == ("success", 2)
    assert (tmp_path / "out" / "results" / TASK / "attempts" / "001" / "steps.jsonl").exists()
    assert_nothing_left(ended, scenario)


def test_sigterm_ends_a_run_like_ctrl_c(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        wait_for_step(running, tmp_path, 1)
        running.process.terminate()
        ended = running.end()
    assert ended.code == 130
    assert_nothing_left(ended, scenario)


def test_a_runner_that_is_killed_takes_its_children_with_it(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    with start(tmp_path, scenario) as running:
        wait_for_step(running, tmp_path, 1)
        running.process.kill()
        running.process.wait()
        ended = running.end()
    assert_nothing_left(ended, scenario)
