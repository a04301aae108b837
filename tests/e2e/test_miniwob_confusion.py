"""A MiniWoB++ task from its import to its verdicts, played right and subtly wrong (one of many)."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.miniwob.scripts import participant
from helpers.participants import serving_participant
from helpers.runner.commands import run_command
from helpers.scenario.copies import on_free_ports
from judge.commands.app import app
from participants.base import Observation, Reply

pytestmark = pytest.mark.e2e


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    path = tmp_path / "miniwob.toml"
    chosen = ["--tasks", "find-greatest", "--seeds", "0:2"]
    result = CliRunner().invoke(app, ["tasks", "import", "miniwob", *chosen, "--output", str(path)])
    assert result.exit_code == 0, result.output
    return path


async def test_a_right_attempt_succeeds_and_one_with_a_slip_fails(imported: Path, tmp_path: Path) -> None:
    right, wrong = participant(is_wrong=False), participant(is_wrong=True)

    async def decide(observation: Observation) -> Reply:
        # The slip is the second greatest number, which is worth a tenth of the reward.
        return await (wrong if observation.website.endswith("seed=1") else right)(observation)

    async with serving_participant(decide) as url:
        text = on_free_ports(imported.read_text())
        ours = re.sub(r'(role = "white_agent"\nendpoint = ).*\ncmd = .*', rf'\g<1>"{url}"', text)
        imported.write_text(ours)
        ended = await asyncio.to_thread(
            run_command, tmp_path / "tmp", "wabe", "run", imported, "--output-dir", tmp_path / "out"
        )
    assert ended.code == 0, ended.stdout + ended.stderr
    (results,) = (tmp_path / "out" / "runs").glob("*/results.json")
    tasks = json.loads(results.read_text())["results"][0]["detail"]["tasks"]
    assert [(task["task_id"], task["verdict"], task["stop_reason"]) for task in tasks] == [
        ("find-greatest_0", "success", "ended_by_page"),
        ("find-greatest_1", "failure", "ended_by_page"),
    ]
    assert ended.left_processes == {}
