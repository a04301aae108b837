"""Browser and MCP server die, at random steps."""

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

pytestmark = [pytest.mark.e2e, pytest.mark.own_browser]

KINDS = ("browser", "server")


async def test_kills_in_every_attempt_abort_the_task_and_lose_its_trace(judge: LiveJudge, dice: random.Random) -> None:
    strikes = [dice.randrange(3) for _ in range(2 * len(KINDS))]
    struck = [asyncio.Event() for _ in strikes]

    def strike(episode: int) -> None:
        kill(judge.browser_files, KINDS[episode // 2])
        struck[episode].set()

    async def script(turn: ParticipantTurn) -> str:
        if turn.n == strikes[turn.episode]:
            # At any moment of the step.
            asyncio.get_running_loop().call_later(dice.uniform(0, 0.3), strike, turn.episode)
        elif turn.n > strikes[turn.episode]:
            # The step was over before.
            await struck[turn.episode].wait()
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, tasks=len(KINDS), max_task_retries=1)
    assert assessed.detail["scored_tasks"] == 0
    assert assessed.detail["success_rate"] == 0.0
    for entry, what in zip(assessed.detail["tasks"], KINDS, strict=True):
        assert (entry["verdict"], entry["stop_reason"]) == ("aborted", "environment_fault"), (what, entry)
        assert entry["error"].startswith("browser: "), (what, entry)
        result = assessed.result(entry["task_id"])
        assert result["attempt"] == 2, what
        traces = list((assessed.folder / "results" / entry["task_id"]).glob("*.har"))
        assert entry["error"].endswith("its network trace is lost"), (what, entry)
        assert result["network"] is None
        assert "its network trace is lost" in result["network_missing"]
        assert traces == []


async def test_kills_at_any_moment_lose_no_task_and_invent_no_success(judge: LiveJudge, dice: random.Random) -> None:
    """While browsers start, load, act and are looked at, not only between steps; of several, one at a time."""
    struck, has_struck = list[str](), asyncio.Event()

    def strike() -> None:
        what = dice.choice(KINDS)
        if pids := sorted(processes_of(judge.browser_files, what)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(pids), signal.SIGKILL)
            struck.append(what)
            has_struck.set()
        if len(struck) < 6:
            asyncio.get_running_loop().call_later(dice.uniform(0.1, 1.2), strike)

    async def script(turn: ParticipantTurn) -> str:
        if turn.n:
            await has_struck.wait()
        return to_the_goal(turn)

    with hostile_site() as site:
        async with participant(script) as url:
            tasks = some_tasks(site.url, 4)
            playing = asyncio.create_task(judge.ask(url, tasks, max_parallel=2, max_task_retries=6))
            asyncio.get_running_loop().call_soon(strike)
            assessed = await playing
        reached = site.paths.count("/goal")
    assessed.check()
    await judge.is_clean()
    assert struck
    assert [entry["verdict"] for entry in assessed.detail["tasks"]] == ["success"] * 4, assessed.detail["tasks"]
    assert reached >= 4
