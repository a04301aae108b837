"""The bundled sets: walks that do something else besides fail, and right walks in other orders succeed."""

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from helpers.cases import each
from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.scenario.copies import scenario_on_free_ports
from judge.records.tasks import Task
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from participants.base import Decide, Observation, Reply, per_attempt
from participants.replay import Player, find_script, parse_scripts
from shared.settings import Settings
from shared.text import plain


# Several scripts for each task of a scenario: each is played on a copy of its task.
def walks(scenario: Scenario, scripts: str, task_ids: Sequence[str] = ()) -> tuple[Scenario, Decide]:
    """The scenario with a task for each of these scripts (of `task_ids` only), and the participant that plays them."""
    by_text = {plain(task.task): task for task in scenario.tasks}
    tasks: list[Task] = []
    book = {}
    for number, script in enumerate(parse_scripts(scripts, "scripts"), 1):
        task = by_text[plain(script.task)]
        if task_ids and task.task_id not in task_ids:
            continue
        # The texts differ, since a participant finds its script by the text.
        text = f"{task.task} ({number})"
        tasks.append(task.model_copy(update={"task_id": f"{task.task_id}-{number}", "task": text}))
        numbered = script.model_copy(update={"task": text})
        book[numbered.key] = numbered

    def begin(first: Observation) -> Decide:
        script = find_script(book, first.instruction, first.website)
        assert script is not None, first.instruction
        player = Player(script)

        async def decide(observation: Observation) -> Reply:
            return player.reply(observation.page.snapshot, observation.feedback, executed=observation.executed)

        return decide

    # Each begins on the sites as they were.
    config = scenario.config.model_copy(update={"site_resets": scenario.resets})
    ids = tuple(task.task_id for task in tasks)
    played = scenario.model_copy(update={"tasks": tuple(tasks), "task_ids": ids, "config": config})
    return played, per_attempt(begin)


def not_installed() -> set[str]:
    """See the plug-in `apps`."""
    settings, plugin = Settings.from_environ(), pytest.importorskip("judge.plugins.apps")
    folder = plugin.apps_folder(settings.cache_folder)
    apps = plugin.load_apps(settings.scenarios_folder)
    return {name for name in apps if not plugin.is_installed(apps[name], folder / name)}


def with_sites(scenario: Scenario, missing: Collection[str]) -> Scenario:
    """The scenario with the sites of its tasks only, without missing ones."""
    sites = [site for site in scenario.sites if site.name not in missing]
    tasks = [task for task in scenario.tasks if any(task.website.startswith(site.endpoint) for site in sites)]
    needed = [site for site in sites if any(task.website.startswith(site.endpoint) for task in tasks)]
    if not tasks:
        pytest.skip("none of the applications is installed: wabe apps install")
    ids = tuple(task.task_id for task in tasks)
    return scenario.model_copy(update={"sites": tuple(needed), "tasks": tuple(tasks), "task_ids": ids})


pytestmark = pytest.mark.e2e
# Two of the ways in which something else is closed out: a write, and the whole state.
HIRE = ("hire_cancel", "hire_date")
SUITE = [("hire", "near-misses.toml", "failure", HIRE), ("hire", "detours.toml", "success", HIRE)]
ALL = [
    (name, *case)
    for name in ("demo", "hire", "apps")
    for case in (("near-misses.toml", "failure", ()), ("detours.toml", "success", ()))
]


@pytest.mark.parametrize(("name", "scripts", "verdict", "task_ids"), each([*SUITE, *ALL], suite=SUITE))
async def test_what_is_done_besides_fails_and_a_detour_does_not(
    name: str, scripts: str, verdict: str, task_ids: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NiceGUI waits for a test of its own where it finds it.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    path = ROOT / "scenarios/apps/scenario.toml" if name == "apps" else scenario_on_free_ports(name, tmp_path)
    scenario = load_scenario(path)
    text = (ROOT / "scenarios" / name / scripts).read_text(encoding="utf-8")
    if name != "apps":
        text = re.sub(r"http://127\.0\.0\.1:\d+", scenario.sites[0].endpoint, text)
    scenario, decide = walks(scenario, text, task_ids)
    scenario = with_sites(scenario, not_installed() if name == "apps" else ())
    outcome = await play_scenario(scenario, decide, tmp_path)
    verdicts = {task["task_id"]: task["verdict"] for task in outcome.results[0]["detail"]["tasks"]}
    assert verdicts == {task.task_id: verdict for task in scenario.tasks}
    # Each goes on to its end.
    for path in tmp_path.glob("runs/*/results/*/result.json"):
        record = json.loads(path.read_text())
        assert record["stop_reason"] == "finished", path
        assert "could not find" not in (record["agent_final_answer"] or ""), path
