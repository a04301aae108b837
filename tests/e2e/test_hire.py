"""The single-page application, live: right scripts succeed, and wrong ones fail."""

import json
from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create

HIRE = ROOT / "scenarios" / "hire"


@pytest.mark.e2e
@pytest.mark.parametrize(("script", "verdict"), [("replay.toml", "success"), ("wrong.toml", "failure")])
async def test_every_script_gets_its_verdict(script: str, verdict: str, tmp_path: Path) -> None:
    scenario = load_scenario(scenario_on_free_ports("hire", tmp_path))
    outcome = await play_scenario(scenario, create(ParticipantOptions(script=str(HIRE / script))), tmp_path)
    tasks = outcome.results[0]["detail"]["tasks"]
    assert {task["task_id"]: task["verdict"] for task in tasks} == {task.task_id: verdict for task in scenario.tasks}
    # Each wrong script does one thing wrong, to its end.
    for path in tmp_path.glob("runs/*/results/*/result.json"):
        steps = json.loads(path.read_text())["steps"]
        assert [step for step in steps if (step.get("outcome") or {}).get("ok") is False] == []
