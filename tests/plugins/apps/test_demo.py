"""Two of the real applications, where `wabe apps install` has installed them; `benchmarks/apps.py` plays on all."""

from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from judge.plugins.apps import apps_folder, is_installed, load_apps
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create
from shared.settings import Settings

APPS = ROOT / "scenarios" / "apps"
# A whole application is `test_hire.py` in the suite.
pytestmark = [pytest.mark.e2e, pytest.mark.nightly]


@pytest.mark.parametrize(("scripts", "verdict"), [("replay.toml", "success"), ("wrong.toml", "failure")])
@pytest.mark.parametrize("name", ["datasette", "widgets"])
async def test_right_scripts_succeed_and_subtly_wrong_ones_fail(
    name: str, scripts: str, verdict: str, tmp_path: Path
) -> None:
    settings = Settings.from_environ()
    if not is_installed(load_apps(settings.scenarios_folder)[name], apps_folder(settings.cache_folder) / name):
        pytest.skip(f"{name} is not installed: wabe apps install {name}")
    scenario = load_scenario(APPS / "scenario.toml")
    (site,) = (site for site in scenario.sites if site.name == name)
    tasks = [task for task in scenario.tasks if task.website.startswith(site.endpoint)]
    script = create(ParticipantOptions(script=str(APPS / scripts)))
    outcome = await play_scenario(scenario.model_copy(update={"sites": (site,)}), script, tmp_path, tasks)
    verdicts = {task["task_id"]: task["verdict"] for task in outcome.results[0]["detail"]["tasks"]}
    assert verdicts == {task.task_id: verdict for task in tasks}
