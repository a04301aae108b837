"""The demo's tasks by the shop's own tools alone, and by the tool that has a bug."""

from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create

SCRIPT = ROOT / "scenarios" / "demo" / "replay.toml"
# The first three by tools, rightly; the next one by a wrong argument. There is no tool for the last one.
BY_TOOLS = {
    "two_shelves": "success",
    "change_of_mind": "success",
    "express_order": "success",
    "black_floor_lamp": "failure",
    "deal_of_the_day": "failure",
}


@pytest.mark.e2e
@pytest.mark.parametrize("has_bug", [False, True])
async def test_the_demo_is_played_by_the_shops_tools(tmp_path: Path, has_bug: bool) -> None:
    scenario = load_scenario(scenario_on_free_ports("demo", tmp_path, site_tools="only", max_parallel=2))
    if has_bug:
        (shop,) = scenario.sites
        scenario = scenario.model_copy(update={"sites": (shop.model_copy(update={"cmd": f"{shop.cmd} --tool-bug"}),)})
    expected = {"two_shelves": "failure"} if has_bug else BY_TOOLS
    tasks = [task for task in scenario.tasks if task.task_id in expected]
    outcome = await play_scenario(scenario, create(ParticipantOptions(script=str(SCRIPT))), tmp_path / "out", tasks)
    entries = {entry["task_id"]: entry for entry in outcome.results[0]["detail"]["tasks"]}
    assert {name: entry["verdict"] for name, entry in entries.items()} == expected
    assert entries["two_shelves"]["action_history"] == [
        '<site tool "add_to_cart"> -> CALL: {"pieces": 2, "product": "Birch Wall Shelf"}',
        "<page> -> FINISH",
    ]
    assert {entry["site_tools"] for entry in entries.values()} == {"only"}
