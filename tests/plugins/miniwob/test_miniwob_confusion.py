"""A MiniWoB++ task from its import to its verdicts, played right and subtly wrong (one of many)."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.episode.offline_judge import play_scenario
from helpers.scenario.copies import on_free_ports
from judge.commands.app import app
from judge.scenario.toml import load_scenario
from participants.base import Observation, Reply
from plugins.miniwob.scripts import participant

pytestmark = pytest.mark.e2e


@pytest.fixture
def imported(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "miniwob.toml"
    seeds, success = getattr(request, "param", ("0:2", "exact"))
    chosen = ["--tasks", "find-greatest", "--seeds", seeds, "--success", success]
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
    assert [(task["task_id"], task["verdict"], task["stop_reason"], task["reward"]) for task in tasks] == [
        ("find-greatest_0", "success", "ended_by_page", 1.0),
        ("find-greatest_1", "failure", "ended_by_page", 0.1),
    ]
    assert {task["success_rule"] for task in tasks} == {"exact"}


@pytest.mark.parametrize("imported", [("1", "positive")], indirect=True)
async def test_a_slip_with_a_positive_reward_is_a_success_where_that_is_the_rule(
    imported: Path, tmp_path: Path
) -> None:
    outcome = await play_scenario(load_scenario(imported), participant(is_wrong=True), tmp_path)
    (task,) = outcome.results[0]["detail"]["tasks"]
    assert (task["verdict"], task["reward"], task["success_rule"]) == ("success", 0.1, "positive")
