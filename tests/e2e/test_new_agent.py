"""`wabe new-agent`, then `wabe run`: the agent plays at once, and the checks decide."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.runner.commands import run_command
from helpers.scenario.copies import on_free_ports
from judge.commands.app import app

pytestmark = pytest.mark.e2e


def test_a_new_agent_completes_tasks_of_the_demo_without_a_model(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["new-agent", str(tmp_path / "my agent")]).exit_code == 0
    scenario = tmp_path / "my agent" / "scenario.toml"
    scenario.write_text(on_free_ports(scenario.read_text()))
    ended = run_command(tmp_path / "tmp", "wabe", "run", scenario, "--output-dir", tmp_path / "out")
    assert ended.code == 0, ended.stdout + ended.stderr
    results = json.loads(next((tmp_path / "out" / "runs").glob("*/results.json")).read_text())
    detail = results["results"][0]["detail"]
    assert {task["task_id"]: task["verdict"] for task in detail["tasks"]} == {
        "deal_of_the_day": "success",
        "oak_care": "success",
        # It follows links and types nothing: this one is for the model.
        "invoice_article": "failure",
    }
    assert ended.left_processes == {}
