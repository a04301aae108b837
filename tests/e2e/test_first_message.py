"""Express, and so the JavaScript SDK, refuses bodies of more than 100 kB unless configured otherwise."""

import base64
import json
from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from participants.base import Observation, Reply
from shared.models import Action

pytestmark = pytest.mark.e2e


async def test_the_first_message_of_the_demos_largest_page_is_small_enough_for_express(tmp_path: Path) -> None:
    sizes: list[int] = []

    async def decide(observation: Observation) -> Reply:
        assert observation.page.screenshot is not None
        picture = base64.b64encode(observation.page.screenshot)
        sizes.append(len(json.dumps(observation.text)) + len(picture))
        return Action(tool="finish", params={"answer": ""})

    scenario = load_scenario(scenario_on_free_ports("demo", tmp_path))
    tasks = [task for task in scenario.tasks if task.task_id == "everything_in_the_shop"]
    await play_scenario(scenario, decide, tmp_path, tasks)
    [size] = sizes
    # The envelope has less than a kilobyte.
    assert 50_000 < size < 99_000
