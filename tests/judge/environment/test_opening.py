"""Hosts of scenario files: which tasks are on offer, and episodes in a real browser."""

from pathlib import Path

import psutil
import pytest
import tomli

from helpers.plugins import verify_run
from helpers.scenario.copies import scenario_on_free_ports
from judge.environment.errors import EpisodeFault
from judge.environment.host import HostSettings
from judge.environment.opening import open_host
from judge.environment.session import EnvironmentSession
from judge.store.episodes import read_counts
from judge.store.layout import runs_in
from shared.errors import ConfigError

FINISH = {"tool": "finish", "params": {"answer": "done"}}
UNSCORABLE = """
[[tasks]]
task_id = "unscorable"
website = "http://127.0.0.1:9180/"
task = "Look around."

[[tasks]]
task_id = "over"
website = "http://127.0.0.1:9180/"
task = "Find the summer sale."
valid_until = 2020-01-01
checks = [{ kind = "page", url = "/sale" }]
"""


def goes(url: str) -> dict[str, object]:
    return {"tool": "browser_navigate", "params": {"url": url}}


async def play_episode(session: EnvironmentSession, task_id: str, *replies: object) -> float | None:
    answer = await session.reset(task_id)
    for reply in replies:
        assert answer.reward is None
        answer = await session.step(reply)
    assert answer.done
    return answer.reward


@pytest.mark.e2e
async def test_episodes_on_the_demo_shop_in_two_sessions(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    scenario.write_text(scenario.read_text() + on_ports_of(scenario, UNSCORABLE))
    async with open_host(scenario, HostSettings(sessions=2, record=tmp_path / "kept")) as host:
        offered = [task.task_id for task in host.tasks]
        assert "deal_of_the_day" in offered
        assert not {"unscorable", "over"} & {*offered}
        for task_id in ("unscorable", "over"):
            with pytest.raises(ConfigError, match="is not on offer"):
                await host.session().reset(task_id)
        await host.aclose()
        first, second = host.session(), host.session()
        begun = await first.reset("deal_of_the_day")
        assert begun.message is not None
        go = goes(f"{begun.message.website}product/fjord-reading-chair")
        await second.reset("deal_of_the_day")
        assert (await first.step(go)).done is False
        assert (await second.step(FINISH)).reward == 0.0
        assert (await first.step(FINISH)).reward == 1.0
        assert await play_episode(second, "oak_desks", goes("chrome://crash"), FINISH) == 0.0
        await first.reset("deal_of_the_day")
        kill_browsers()
        with pytest.raises(EpisodeFault, match=r"^aborted: browser: "):
            await first.step(go)
        assert await play_episode(first, "deal_of_the_day", go, FINISH) == 1.0
        await first.reset("oak_desks")
    (run,) = runs_in(tmp_path / "kept")
    counts = read_counts(run)
    assert counts is not None
    assert counts.ended == {
        "deal_of_the_day": {"failure": 1, "success": 2, "aborted": 1},
        "oak_desks": {"failure": 1, "aborted": 1},
    }
    assert verify_run(run).mismatches == ()


async def test_a_scenario_without_a_task_that_can_be_scored_is_refused(tmp_path: Path) -> None:
    scenario = scenario_on_free_ports("demo", tmp_path)
    head = scenario.read_text().partition("[[tasks]]")[0]
    scenario.write_text(head + UNSCORABLE)
    with pytest.raises(ConfigError, match="no task can be offered: task unscorable: "):
        async with open_host(scenario):
            pass


async def test_a_sealed_set_is_for_evaluation_only(tmp_path: Path) -> None:
    scenario = tmp_path / "held-out.sealed"
    scenario.write_text('{"wabe_sealed": 1}')
    with pytest.raises(ConfigError, match="a sealed task set is for evaluation only"):
        async with open_host(scenario):
            pass


def on_ports_of(scenario: Path, text: str) -> str:
    site = tomli.loads(scenario.read_text())["sites"][0]["endpoint"]
    return text.replace("http://127.0.0.1:9180", site)


def kill_browsers() -> None:
    for process in psutil.Process().children(recursive=True):
        if "chrom" in process.name() or "headless" in process.name():
            process.kill()
