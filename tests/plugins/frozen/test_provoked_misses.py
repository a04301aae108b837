"""A participant that provokes misses to escape a loss gains nothing: the attempt counts as any other."""

from pathlib import Path
from typing import Any

import pytest

from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.episode.offline_judge import play_scenario
from helpers.network.served_sites import Addresses, Authority
from judge.results.entries import counts_of
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from participants.base import Decide, Observation, Reply
from participants.replay import Script, ScriptStep
from plugins.frozen.archives import Recorder, recording
from plugins.frozen.hard import temptations
from plugins.frozen.hard.case import Step, Walk
from plugins.frozen.hard.playing import scripted
from plugins.frozen.hard.site import addresses, ports_of, running, stopped
from plugins.frozen.hard.walks import Walker, policy_for, task_for, wrong
from shared.models import Action
from shared.replies import FINISH

pytestmark = pytest.mark.e2e
_SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"

[[sites]]
name = "harbour"
endpoint = "{own}"
archive = "harbour.wacz"

[config]
max_steps = 12
max_parallel = 3
judge_model = "offline"
"""
_TASK = """
[[tasks]]
task_id = "{name}"
website = "{own}/temptations/"
task = "{task} Way {name}."
checks = [{check}]
"""
_CHECK = f"{{ kind = \"element\", element = '{temptations.DONE}' }}"
# What a page that the archive itself writes would pass, or would no longer fail. The participant opens one.
_FAKED = {
    "address": '{ kind = "page", url = "/temptations/nowhere?thing=anchor" }',
    "title": '{ kind = "page", title = "Not in the archive" }',
    "text": '{ kind = "text", contains = "anchor" }',
    "nothing": '{ kind = "element", element = "alert", not = true }',
    "elsewhere": '{ kind = "page", url = "/temptations/prices", not = true }',
    "probe": '{ kind = "probe", expression = "document.querySelectorAll(\'input\').length", expected = 0 }',
    "fetch": '{ kind = "fetch", url = "/temptations/stock", response = "*out*", not = true }',
    # As the frame of a page of the site.
    "frame": '{ kind = "text", contains = "temptations/around" }',
}


async def recorded_site(places: Addresses, authority: Authority, folder: Path) -> None:
    recorder, case = Recorder(), temptations.CASE
    async with browser_pool(browser_settings()) as pool:
        with running(places, authority, [case]):
            async with recording(pool, policy_for(places), recorder, task_for(places, case.path)) as browser:
                assert wrong(await Walker(browser, places).walk([(case, case.recorded[0])])) == []
    recorder.saved(folder / "harbour.wacz")


def a_scenario(places: Addresses, folder: Path, names: list[str]) -> Scenario:
    values = {"own": places.own, "task": temptations.TASK}
    tasks = "".join(_TASK.format(name=name, check=_FAKED.get(name, _CHECK), **values) for name in names)
    path = folder / "scenario.toml"
    path.write_text(_SCENARIO.format(own=places.own) + tasks, encoding="utf-8")
    return on_archives(load_scenario(path))


def script_of(steps: Walk) -> Script:
    task_ids = [ScriptStep(tool=step.tool, role=step.role, name=step.name, params=dict(step.params)) for step in steps]
    return Script(task="way", steps=(*task_ids, ScriptStep(tool=FINISH, params={"answer": "The archive is broken."})))


def playing(ways: dict[str, Walk]) -> Decide:
    """Plays for each task the way that its text names."""
    players: dict[str, Decide] = {}

    async def decide(observation: Observation) -> Reply:
        name = observation.instruction.rpartition(" ")[2].rstrip(".")
        if observation.step == 0:
            players[observation.context_id] = scripted(script_of(ways[name]))
        player = players.get(observation.context_id)
        return await player(observation) if player else Action(tool=FINISH, params={"answer": "Lost."})

    return decide


@pytest.mark.nightly
async def test_misses_in_many_ways_are_losses_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places, authority = addresses(), Authority.made_in(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    await recorded_site(places, authority, tmp_path)
    by_text = temptations.ways(places.own, places.other)
    assert len(by_text) >= 10
    ways = {f"w{number}": steps for number, steps in enumerate(by_text.values())}
    honest: dict[str, Walk] = {"loses": (), "wins": (Step("browser_click", "", "button", "Add the anchor"),)}
    nowhere = Step("browser_navigate", "", params={"url": f"{places.own}/temptations/nowhere?thing=anchor"})
    ways |= dict.fromkeys(_FAKED, (nowhere,))
    ways["frame"] = (Step("browser_click", "", "button", "Look around"),)
    scenario = a_scenario(places, tmp_path, [*honest, *ways])
    with stopped(ports_of(places)) as wire:
        outcome = await play_scenario(scenario, playing({**ways, **honest}), tmp_path / "runs")
    detail = outcome.results[0]["detail"]
    results: dict[str, dict[str, Any]] = {task["task_id"]: task for task in detail["tasks"]}
    assert results["wins"]["verdict"] == "success"
    assert {name for name in _FAKED if results[name]["verdict"] == "success"} == set()
    losses = {name: (results[name]["verdict"], results[name].get("reason_code")) for name in ["loses", *ways]}
    assert set(losses.values()) == {losses["loses"]}
    assert losses["loses"][0] == "failure"
    # Nothing was left out or played again, so that the rate is what it is for those who simply lose.
    assert counts_of(results.values())["scored_tasks"] == len(scenario.tasks)
    assert detail["success_rate"] == pytest.approx(100 / len(scenario.tasks), abs=0.1)
    task_ids = [path.parent.name for path in (tmp_path / "runs").rglob("result.json")]
    assert sorted(task_ids) == sorted(task.task_id for task in scenario.tasks)
    assert wire.touched == 0
    # The ways are ways: at least ten of them left the archive.
    assert sum(results[name].get("coverage") == "off_archive" for name in ways) >= 10
