"""The single-page application, live: right scripts succeed, and wrong ones fail."""

import json
from itertools import product
from pathlib import Path

import pytest

from helpers.cases import each
from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create

HIRE = ROOT / "scenarios" / "hire"
ALL = tuple(task.task_id for task in load_scenario(HIRE / "scenario.toml").tasks)
# Together their checks are of every kind and way of comparing that this scenario has.
EACH_KIND = ("hire_price", "hire_safety", "hire_packing", "hire_order")
SCRIPTS = {"replay.toml": "success", "wrong.toml": "failure"}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("script", "names"), each(product(SCRIPTS, (EACH_KIND, ALL)), suite=[("replay.toml", EACH_KIND)])
)
async def test_every_script_gets_its_verdict(script: str, names: tuple[str, ...], tmp_path: Path) -> None:
    scenario = load_scenario(scenario_on_free_ports("hire", tmp_path))
    selection = [task for task in scenario.tasks if task.task_id in names]
    outcome = await play_scenario(scenario, create(ParticipantOptions(script=str(HIRE / script))), tmp_path, selection)
    tasks = outcome.results[0]["detail"]["tasks"]
    assert {task["task_id"]: task["verdict"] for task in tasks} == dict.fromkeys(names, SCRIPTS[script])
    # Each wrong script does one thing wrong, to its end.
    for path in tmp_path.glob("runs/*/results/*/result.json"):
        steps = json.loads(path.read_text())["steps"]
        assert [step for step in steps if (step.get("outcome") or {}).get("ok") is False] == []
