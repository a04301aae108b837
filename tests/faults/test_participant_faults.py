"""The participant is killed, hangs, or goes away: scored 0 with the cause, at random steps.

Which answers are an error of the participant, `shared/a2a/test_client.py` shows.
"""

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from helpers.a2a.raw_agent import Answer, RawAgent, RawRequest, message, raw_agent
from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import AssessedRun, LiveJudge, ParticipantTurn, finish, some_tasks, tool_call
from helpers.paths import ROOT
from helpers.ports import free_port

pytestmark = pytest.mark.usefixtures("text_browser")

PRESS = tool_call("browser_press_key", key="Tab")


async def play_raw(judge: LiveJudge, answer: Answer, **config: Any) -> AssessedRun:
    """One assessment of a raw participant, its books checked."""
    with hostile_site() as site:
        async with raw_agent(answer) as agent:
            assessed = await judge.ask(agent.url, some_tasks(site.url), **config)
    assessed.check()
    await judge.is_clean()
    return assessed


def blames_the_participant(assessed: AssessedRun) -> str:
    assert assessed.verdict == ("failure", "participant_error"), assessed.entry
    assert assessed.detail["scored_tasks"] == 1
    assert assessed.detail["success_rate"] == 0.0
    assert judge_was_not_asked_for(assessed)
    error = str(assessed.entry["error"])
    assert error.startswith("participant: ")
    return error


def judge_was_not_asked_for(assessed: AssessedRun) -> bool:
    return bool(assessed.result()["token_usage"]["calls"] == 0)


@asynccontextmanager
async def participant_process(port: int, replies: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A participant in a process of its own, which presses keys, and does not answer after so many replies."""
    code = (
        "import asyncio\n"
        "from participants.base import Action, serve\n"
        "async def decide(observation):\n"
        f"    if observation.step == {replies}: await asyncio.Event().wait()\n"
        "    return Action(tool='browser_press_key', params={'key': 'Tab'})\n"
        f"serve(decide, name='p', port={port})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT / "src", stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                assert process.poll() is None
                await asyncio.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_a_participant_that_is_killed_is_scored_zero(judge: LiveJudge, dice: random.Random) -> None:
    port, strike = free_port(), dice.randrange(1, 4)
    with hostile_site() as site:
        async with participant_process(port, strike) as process:
            request = judge.ask(f"http://127.0.0.1:{port}/", some_tasks(site.url), run_id="killed")
            steps = judge.output_dir / "runs" / "killed" / "results" / "t0" / "steps.jsonl"

            async def strike_at() -> None:
                while not steps.exists() or steps.read_bytes().count(b"\n") < strike:
                    await asyncio.sleep(0.01)
                process.send_signal(signal.SIGKILL)

            async with asyncio.timeout(120):
                assessed, _ = await asyncio.gather(request, strike_at())
    assessed.check()
    await judge.is_clean()
    assert "connection to the agent failed" in blames_the_participant(assessed)


async def test_a_participant_that_was_never_there_is_scored_zero(judge: LiveJudge) -> None:
    with hostile_site() as site:
        assessed = await judge.ask(f"http://127.0.0.1:{free_port()}/", some_tasks(site.url))
    assessed.check(on_disk=False)
    assert assessed.verdict == ("failure", "participant_error")


async def test_a_participant_that_hangs_is_scored_zero_after_the_reply_timeout(
    judge: LiveJudge, dice: random.Random
) -> None:
    strike = dice.randrange(3)

    async def answer(request: RawRequest) -> bytes | None:
        if request.number == strike:
            await asyncio.sleep(60)
        return message(request, PRESS)

    assessed = await play_raw(judge, answer, reply_timeout_s=0.5)
    assert "no reply within 0.5 s" in blames_the_participant(assessed)


async def test_a_slow_participant_within_the_limit_is_waited_for(judge: LiveJudge) -> None:
    async def answer(request: RawRequest) -> bytes:
        await asyncio.sleep(0.5)
        return message(request, PRESS if request.number < 1 else finish())

    assessed = await play_raw(judge, answer, reply_timeout_s=5)
    assert assessed.verdict == ("success", "finished")


async def test_a_task_over_its_time_is_scored_zero(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_wait_for", time=0.5)

    with hostile_site() as site:
        # The waits alone take longer than the task may.
        limits: dict[str, Any] = {
            "task_timeout_s": 2,
            "step_timeout_s": 1.9,
            "call_timeout_s": 1.8,
            "navigation_timeout_s": 1.7,
            "action_timeout_s": 1.6,
            "reply_timeout_s": 1.8,
        }
        assessed = await judge.play(script, site.url, **limits)
    assert assessed.verdict == ("failure", "task_timeout")


async def test_replies_that_cannot_be_read_end_the_episode_after_three(judge: LiveJudge, dice: random.Random) -> None:
    start = dice.randrange(2)

    def answer(request: RawRequest) -> bytes:
        return message(request, PRESS if request.number < start else "I would rather talk about the weather.")

    assessed = await play_raw(judge, answer)
    assert assessed.verdict == ("failure", "unreadable_replies")
    assert assessed.entry["steps_taken"] == start + 3
    assert judge_was_not_asked_for(assessed)


async def test_a_participant_that_goes_away_between_steps_is_scored_zero(judge: LiveJudge, dice: random.Random) -> None:
    strike = dice.randrange(1, 3)
    agents: list[RawAgent] = []

    def answer(request: RawRequest) -> bytes:
        if request.number == strike:
            agents[0].vanish()
        return message(request, PRESS)

    with hostile_site() as site:
        async with raw_agent(answer) as agent:
            agents.append(agent)
            assessed = await judge.ask(agent.url, some_tasks(site.url))
    assessed.check()
    blames_the_participant(assessed)
    assert assessed.entry["steps_taken"] == strike + 2
