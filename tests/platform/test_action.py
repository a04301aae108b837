"""`action.yml`: valid by the schema of GitHub Actions, and its steps at work as the runner would execute them."""

import json
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import tomli
import yaml
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.runner.commands import BIN, run_command
from helpers.scenario.copies import on_free_ports
from judge.commands.app import app

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def test_it_is_valid_by_the_schema_of_github() -> None:
    schema = resources.files("check_jsonschema.builtin_schemas.vendor") / "github-actions.json"
    jsonschema.Draft7Validator(json.loads(schema.read_text())).validate(ACTION)


def test_a_workflow_of_its_own_uses_it_with_tasks_that_are_solved() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "action.yml").read_text())["jobs"].values()
    (step,) = [step for step in job["steps"] if step.get("uses") == "./"]
    assert set(step["with"]) <= set(ACTION["inputs"])
    words = step["with"]["args"].split()
    expected = tomli.loads((ROOT / "scenarios" / "demo" / "expected.toml").read_text())
    assert [expected[task]["verdict"] for task in words[1::2]] == ["success"] * 2
    assert words[::2] == ["--task"] * 2


@pytest.mark.parametrize("step", SCRIPTS, ids=lambda step: step["name"])
def test_shellcheck_finds_nothing_in_a_step(step: dict[str, Any]) -> None:
    command = [SHELLCHECK, "--shell", step["shell"], "-"]
    completed = subprocess.run(command, input=step["run"], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (0, "")


def test_no_input_becomes_part_of_a_script() -> None:
    """The runner would paste it in, quotes and all: inputs come as variables."""
    assert [step["name"] for step in SCRIPTS if "${{" in step["run"]] == []


class Runner:
    """What a runner gives to the steps of an action, and what they leave. Only scripts are run."""

    def __init__(self, folder: Path, inputs: dict[str, str]) -> None:
        self.folder = folder
        defaults = {name: value.get("default", "") for name, value in ACTION["inputs"].items()}
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        self.values["steps.python.outputs.python-path"] = sys.executable
        self.action = checked_out(folder / "action")
        self.temp = folder / "runner"
        self.temp.mkdir()

    @property
    def summary(self) -> str:
        return (self.folder / "summary").read_text()

    @property
    def results(self) -> Path:
        return Path(self.values["steps.run.outputs.folder"])

    def run(self, step: dict[str, Any]) -> int:
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        ledger_file = self.folder / "output"
        ledger_file.write_text("")
        environ = {
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_OUTPUT": str(ledger_file),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "RUNNER_TEMP": str(self.temp),
            **{name: self._resolved(text) for name, text in step.get("env", {}).items()},
        }
        # As the runner's documentation gives it for `shell: bash`.
        command = ("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
        completed = run_command(self.folder / "tmp", *command, env=environ)
        for line in ledger_file.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        assert completed.left_processes == {}
        return completed.code

    def _resolved(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda match: self.values[match[1]], text)


def checked_out(folder: Path) -> Path:
    """The action's checkout with an environment that is set up already, but for its browser's download."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name != ".venv":
            (folder / path.name).symlink_to(path)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "wabe").symlink_to(BIN / "wabe")
    # The network's boundary: what would be downloaded is written down.
    log_command = f'echo "$@" >>"{folder.parent}/downloads"'
    (programs / "python").write_text(
        f'#!/bin/sh\ncase "$2" in playwright | pip) {log_command} ;; *) exec "{sys.executable}" "$@" ;; esac\n'
    )
    (programs / "python").chmod(0o755)
    made_from = b"".join((ROOT / name).read_bytes() for name in ("requirements.lock",) * 2 + ("pyproject.toml",))
    stamp = subprocess.run(["cksum"], input=made_from, capture_output=True, check=True).stdout
    (folder / ".venv" / "wabe-lock").write_bytes(stamp.replace(b" ", b""))
    return folder


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A runner for the scenario that `wabe new-agent` writes."""
    folder = tmp_path_factory.mktemp("action")
    assert CliRunner().invoke(app, ["new-agent", str(folder / "my agent")]).exit_code == 0
    scenario = folder / "my agent" / "scenario.toml"
    scenario.write_text(on_free_ports(scenario.read_text()))
    return Runner(folder, {"scenario": str(scenario), "args": '--epochs 1 --name "my agent"', "fail-under": "70"})


@pytest.mark.nightly
@pytest.mark.e2e
def test_its_steps_run_a_scenario_and_write_the_summary(runner: Runner) -> None:
    install, chromium, run, summary = SCRIPTS
    assert runner.run(install) == 0
    assert runner.run(chromium) == 0
    assert (runner.folder / "downloads").read_text() == "-m playwright install --with-deps --only-shell chromium\n"
    # Two of three tasks succeed.
    assert runner.run(run) == 1
    assert runner.run(summary) == 0
    assert runner.results.parent == runner.temp
    assert ElementTree.parse(runner.results / "junit.xml").getroot()[0].get("failures") == "1"
    assert runner.summary.startswith("### WABE: `my agent/scenario.toml`\n\nParticipant: `my agent: ")
    assert "| failure | `invoice_article` |" in runner.summary


@pytest.mark.nightly
@pytest.mark.e2e
def test_a_new_agent_completes_tasks_of_the_demo_without_a_model(runner: Runner) -> None:
    detail = json.loads((runner.results / "results.json").read_text())["results"][0]["detail"]
    assert {task["task_id"]: task["verdict"] for task in detail["tasks"]} == {
        "deal_of_the_day": "success",
        "oak_care": "success",
        # It follows links and types nothing: this one is for the model.
        "invoice_article": "failure",
    }
