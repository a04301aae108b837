"""Browser, tab and MCP server die, at random steps."""

import asyncio
import contextlib
import os
import random
import signal

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import (
    LiveJudge,
    ParticipantTurn,
    kill,
    participant,
    processes_of,
    some_tasks,
    to_the_goal,
)
from judge.trajectory.network import read_har

pytestmark = pytest.mark.e2e


async def test_a_run_without_faults_is_a_success(judge: LiveJudge) -> None:
    with hostile_site() as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.verdict == ("success", "finished"), assessed.entry


@pytest.mark.parametrize("what", ["browser", "server", "renderer"])
async def test_a_kill_is_retried_with_a_fresh_browser(judge: LiveJudge, dice: random.Random, what: str) -> None:
    strike = dice.randrange(3)

    def script(turn: ParticipantTurn) -> str:
        if turn.episode == 0 and turn.n == strike:
            assert kill(judge.browser_files, what) > 0
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_task_retries=1)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert assessed.result()["attempt"] == 2
    first = (assessed.folder / "results" / "t0" / "attempts" / "001" / "steps.jsonl").read_text().splitlines()
    assert len(first) == strike + 1


@pytest.mark.parametrize("what", ["browser", "server", "renderer"])
async def test_kills_in_every_attempt_abort_the_task(judge: LiveJudge, dice: random.Random, what: str) -> None:
    strike = dice.randrange(3)

    def script(turn: ParticipantTurn) -> str:
        if turn.n == strike:
            kill(judge.browser_files, what)
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_task_retries=1)
    assert assessed.verdict == ("aborted", "environment_fault")
    assert assessed.entry["error"].startswith("browser: ")
    assert assessed.detail["scored_tasks"] == 0
    assert assessed.detail["success_rate"] == 0.0


@pytest.mark.parametrize("seed", range(3))
async def test_kills_at_any_moment_lose_no_task_and_invent_no_success(judge: LiveJudge, seed: int) -> None:
    """While browsers start, load, act and are looked at, not only between steps; of several, one at a time."""
    dice, struck = random.Random(seed), list[str]()

    def strike() -> None:
        what = dice.choice(["browser", "server", "renderer"])
        if pids := sorted(processes_of(judge.browser_files, what)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(pids), signal.SIGKILL)
            struck.append(what)
        if len(struck) < 4:
            asyncio.get_running_loop().call_later(dice.uniform(0.1, 1.5), strike)

    with hostile_site() as site:
        async with participant(to_the_goal) as url:
            tasks = some_tasks(site.url, 4)
            playing = asyncio.create_task(judge.ask(url, tasks, max_parallel=2, max_task_retries=4))
            asyncio.get_running_loop().call_soon(strike)
            assessed = await playing
        reached = site.seen.count("/goal")
    assessed.check()
    await judge.is_clean()
    assert struck
    assert [entry["verdict"] for entry in assessed.detail["tasks"]] == ["success"] * 4, assessed.detail["tasks"]
    assert reached >= 4


@pytest.mark.parametrize("seed", range(3))
async def test_the_trace_of_an_attempt_killed_at_any_moment_is_reported_as_lost(judge: LiveJudge, seed: int) -> None:
    dice = random.Random(seed)
    strike, delay_s, what = dice.randrange(3), dice.uniform(0, 0.3), dice.choice(["browser", "server"])

    def script(turn: ParticipantTurn) -> str:
        if turn.n == strike:
            asyncio.get_running_loop().call_later(delay_s, kill, judge.browser_files, what)
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("aborted", "environment_fault"), assessed.entry
    assert assessed.entry["error"].startswith("browser: ")
    assert assessed.entry["error"].endswith("its network trace is lost")
    result = assessed.result()
    assert result["network"] is None
    assert "its network trace is lost" in result["network_missing"]
    assert not list((assessed.folder / "results" / "t0").glob("*.har"))


async def test_a_tab_that_crashes_leaves_the_trace_of_what_it_did(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        kill(judge.browser_files, "renderer")
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("aborted", "environment_fault")
    (first, *_) = read_har(assessed.folder / "results" / "t0" / "network.har").entries
    assert first.url == site.url
