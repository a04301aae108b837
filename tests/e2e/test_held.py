"""The scenario with held orders: they are judged by what would have been sent, and the shop is sent none."""

from pathlib import Path

import pytest
import tomli

from helpers.browser.sessions import left_behind
from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.plugins import verify_run
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore
from judge.trajectory.network import read_har
from participants.base import ParticipantOptions
from participants.replay import create

HELD_SCENARIO = ROOT / "scenarios" / "held"


@pytest.mark.e2e
async def test_orders_are_judged_by_what_would_have_been_sent(tmp_path: Path, browser_files: Path) -> None:
    scenario = load_scenario(scenario_on_free_ports("held", tmp_path))
    outcome = await play_scenario(
        scenario, create(ParticipantOptions(script=str(HELD_SCENARIO / "replay.toml"))), tmp_path
    )
    tasks = outcome.results[0]["detail"]["tasks"]
    expected = tomli.loads((HELD_SCENARIO / "expected.toml").read_text())
    assert {task["task_id"]: task["verdict"] for task in tasks} == {k: v["verdict"] for k, v in expected.items()}
    assert {task["stop_reason"] for task in tasks} == {"ended_by_page"}
    (run,) = (tmp_path / "runs").iterdir()
    for name in expected:
        entries = read_har(run / "results" / name / "network.har").entries
        posts = [(entry.request.url.rpartition("/")[2], entry.is_held) for entry in entries if entry.request.body]
        # What goes into the cart is sent.
        assert posts == [("add", False), ("checkout", True)]
    assert verify_run(RunStore(tmp_path, run.name)).mismatches == ()
    assert left_behind(browser_files) == []
