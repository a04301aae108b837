"""A MiniWoB++ task from its import to its verdicts, played right and subtly wrong (one of many)."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.episode.offline_judge import play_scenario
from helpers.miniwob.scripts import participant
from helpers.scenario.copies import on_free_ports
from judge.commands.app import app
from judge.scenario.toml import load_scenario
from participants.base import Observation, Reply

pytestmark = pytest.mark.e2e


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    path = tmp_path / "miniwob.toml"
    chosen = ["--tasks", "find-greatest", "--seeds", "0:2"]
    result = CliRunner().invoke(app, ["tasks", "import", "miniwob", *chosen, "--output", str(path)])
    assert result.exit_code == 0, result.output
    path.write_text(on_free_ports(path.read_text()))
    return path


async def test_a_right_attempt_succeeds_and_one_with_a_slip_fails(imported: Path, tmp_path: Path) -> None:
    right, wrong = participant(is_wrong=False), participant(is_wrong=True)

    async def decide(observation: Observation) -> Reply:
        # The slip is the second greatest number, which is worth a tenth of the reward.
        return await (wrong if str(observation.website).endswith("seed=1") else right)(observation)

    outcome = await play_scenario(load_scenario(imported), decide, tmp_path)
    tasks = outcome.results[0]["detail"]["tasks"]
    assert [(task["task_id"], task["verdict"], task["stop_reason"]) for task in tasks] == [
        ("find-greatest_0", "success", "ended_by_page"),
        ("find-greatest_1", "failure", "ended_by_page"),
    ]
