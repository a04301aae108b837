"""However a run ends, nothing of it is left: no process, no port, no temporary file."""

import json
import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from helpers.cases import each
from helpers.ports import free_ports
from helpers.runner.commands import FinishedCommand, RunningCommand, command, listening
from helpers.scenario.copies import ports_of

pytestmark = pytest.mark.e2e
# One task, which the participant does not bring to an end.
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "wabe serve --port {judge}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{participant}"
cmd = "wabe participant replay --script {{scenario_dir}}/replay.toml --port {participant}"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:{site}"
static = true
cmd = "python -m http.server {site} --bind 127.0.0.1 --directory {{scenario_dir}}/site"
[config]
max_steps = 1000
judge_model = "offline"
[[tasks]]
task_id = "endless"
website = "http://127.0.0.1:{site}/"
task = "Scroll to the end."
checks = [{{ kind = "page", url = "/end" }}]
"""
SCRIPT = """
[[scripts]]
task = "Scroll to the end."
steps = [{ tool = "browser_scroll", params = { direction = "down", amount = 300 }, repeat = true }]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    judge, participant, site = free_ports(3)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>Shop</title><h1>Shop</h1>")
    (tmp_path / "replay.toml").write_text(SCRIPT)
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO.format(judge=judge, participant=participant, site=site))
    return path


def assert_nothing_left(completed: FinishedCommand, scenario: Path) -> None:
    assert completed.left_processes == {}
    assert completed.left_files == []
    assert [port for port in ports_of(scenario) if listening(port)] == []


def start(scenario: Path) -> AbstractContextManager[RunningCommand]:
    folder = scenario.parent
    return command(folder / "tmp", "agentbeats-run", scenario, "--output-dir", folder / "out", env={"TERM": "dumb"})


def wait_for_step(running: RunningCommand, scenario: Path, step: int) -> None:
    running.wait_for_file(scenario.parent / "out", f"runs/*/results/endless/snapshots/step_{step:03d}.yaml")


def test_ctrl_c_stops_everything_and_says_how_to_resume(scenario: Path) -> None:
    with start(scenario) as running:
        wait_for_step(running, scenario, 1)
        running.interrupt()
        completed = running.end()
    assert completed.code == 130
    assert "--resume" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert_nothing_left(completed, scenario)


@pytest.mark.parametrize("number", each([signal.SIGINT, signal.SIGTERM], suite=[signal.SIGTERM]))
def test_ctrl_c_and_sigterm_stop_everything_before_it_is_up(scenario: Path, number: signal.Signals) -> None:
    with start(scenario) as running:
        running.wait_for_file(scenario.parent / "out", "runs/*/logs/shop.log")
        running.process.send_signal(number)
        completed = running.end()
    assert completed.code == 130
    assert_nothing_left(completed, scenario)


@pytest.mark.nightly
def test_a_killed_participant_is_scored_0_with_its_cause_and_leaves_nothing(scenario: Path) -> None:
    with start(scenario) as running:
        wait_for_step(running, scenario, 1)
        (participant,) = running.descendants("participant replay")
        os.kill(participant, signal.SIGKILL)
        completed = running.end()
    assert completed.code == 0, completed.stdout + completed.stderr
    result = json.loads((scenario.parent / "out" / "results" / "endless" / "result.json").read_text())
    actual = (result["verdict"], result["stop_reason"], result["blame"])
    assert actual == ("failure", "participant_error", "participant")
    assert_nothing_left(completed, scenario)


def test_a_killed_judge_ends_the_run_which_leaves_nothing_and_says_how_to_resume(scenario: Path) -> None:
    with start(scenario) as running:
        wait_for_step(running, scenario, 1)
        (judge,) = running.descendants("wabe serve")
        os.kill(judge, signal.SIGKILL)
        completed = running.end()
    assert completed.code == 1
    assert "Resume with: " in completed.stdout
    assert_nothing_left(completed, scenario)


def test_a_runner_that_is_killed_takes_its_children_with_it(scenario: Path) -> None:
    with start(scenario) as running:
        wait_for_step(running, scenario, 0)
        running.process.kill()
        running.process.wait()
        completed = running.end()
    assert_nothing_left(completed, scenario)
