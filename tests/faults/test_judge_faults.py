"""The judge's own side: the disk fills up, the clock moves, runs are cancelled, clients vanish, two run at once."""

import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import (
    FAST,
    LiveJudge,
    ParticipantTurn,
    finish,
    participant,
    ref,
    some_tasks,
    to_the_goal,
    tool_call,
)
from helpers.ports import free_port
from helpers.runner.commands import BIN
from judge.runner.follow import RunOutcome, request_assessment
from shared.a2a.client import AssessmentClient


@asynccontextmanager
async def judge_process(folder: Path, browser_files: Path, port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """`wabe serve` as a process of its own."""
    command = [str(BIN / "wabe"), "serve", "--port", str(port), "--output-dir", str(folder)]
    places = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(browser_files), "HOME": str(browser_files)}
    environ = {**places, "WABE_TRUST_CONFIG": "1"}
    with (folder / "judge.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stderr=log, stdout=log)
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                assert process.poll() is None, (folder / "judge.log").read_text()
                await asyncio.sleep(0.05)
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 30)


def failure_of_request(url: str, tasks: list[dict[str, Any]], **config: Any) -> str:
    checked = [{**task, "checks": [{"kind": "page", "url": "/"}]} for task in tasks]
    settings = {**FAST, "judge_model": "offline", **config, "tasks": checked}
    return json.dumps({"participants": {"white_agent": url}, "config": settings})


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux's")
@pytest.mark.e2e
async def test_a_full_disk_loses_the_tasks_it_hits_and_says_so(
    tmp_path: Path, browser_files: Path, dice: random.Random
) -> None:
    port, strike = free_port(), dice.randrange(1, 3)
    tab = tool_call("browser_press_key", key="Tab")

    async with judge_process(tmp_path, browser_files, port) as process:

        def script(turn: ParticipantTurn) -> str:
            if turn.episode == 1 and turn.n == strike:
                # From here on no file of the judge may grow: every write fails as on a full disk.
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return tab if turn.episode == 1 and turn.n <= strike else finish()

        with hostile_site() as site:
            async with participant(script) as url:
                request = failure_of_request(url, some_tasks(site.url, 3), run_id="full")
                outcome: RunOutcome = await request_assessment(f"http://127.0.0.1:{port}/", request, lambda _: None)
    assert outcome.state == "completed", outcome
    detail = outcome.results[0]["detail"]
    verdicts = [task["verdict"] for task in detail["tasks"]]
    assert verdicts[0] == "success"
    assert verdicts[1:] == ["aborted", "aborted"]
    assert all(
        "File too large" in task["error"] and task["error"].startswith("internal: ") for task in detail["tasks"][1:]
    )
    assert detail["total_tasks"] == 3
    assert detail["aborted_tasks"] == 2
    content = json.loads((tmp_path / "runs" / "full" / "results" / "t0" / "result.json").read_text())
    assert content["verdict"] == verdicts[0]


@pytest.mark.usefixtures("text_browser")
async def test_a_clock_that_is_set_back_changes_no_duration_and_no_outcome(
    judge: LiveJudge, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike, real = dice.randrange(3), time.time
    shift = dice.choice((-86_400.0, 86_400.0, -1e9))

    def script(turn: ParticipantTurn) -> str:
        if turn.n == strike:
            monkeypatch.setattr(time, "time", lambda: real() + shift)
        return to_the_goal(turn)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("success", "finished")
    times = assessed.result()["times"]
    assert 0 < times["duration_s"] < 60
    assert times["started_at"] < times["ended_at"]
    assert all(min(step["timings"].values()) >= 0 for step in assessed.result()["steps"])
    run = json.loads((assessed.folder / "run.json").read_text())
    assert run["ended_at"] >= run["started_at"]


def for_ever(turn: ParticipantTurn) -> str:
    return tool_call("browser_press_key", key="Tab")


async def until(path: Path, lines: int = 1) -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        await asyncio.sleep(0.01)


@pytest.mark.e2e
async def test_cancelling_over_a2a_stops_the_run_and_closes_its_browsers(judge: LiveJudge, dice: random.Random) -> None:
    steps = judge.output_dir / "runs" / "cancelled" / "results" / "t0" / "steps.jsonl"
    states: list[Any] = []
    with hostile_site() as site:
        async with participant(for_ever) as url:
            request = judge.request(url, some_tasks(site.url, 2), run_id="cancelled", max_steps=500)
            async with AssessmentClient(judge.url) as client:

                async def follow() -> None:
                    async with aclosing(client.run(request)) as events:
                        states.extend([event async for event in events])

                following = asyncio.create_task(follow())
                await until(steps, dice.randrange(1, 5))
                await client.cancel()
                await following
    await judge.is_clean()
    assert states[-1].state == "canceled"
    assert json.loads((judge.output_dir / "runs" / "cancelled" / "run.json").read_text())["state"] == "cancelled"
    assert not (steps.parent / "result.json").exists()


@pytest.mark.usefixtures("text_browser")
async def test_a_cancelled_run_is_finished_by_asking_for_it_again(judge: LiveJudge) -> None:
    results = judge.output_dir / "runs" / "twice" / "results"
    slow = asyncio.Event()

    async def script(turn: ParticipantTurn) -> str:
        if turn.episode == 1 and not slow.is_set():
            slow.set()
            await asyncio.sleep(30)
        return to_the_goal(turn)

    with hostile_site() as site:
        async with participant(script) as url:
            request = judge.request(url, some_tasks(site.url, 2), run_id="twice")
            async with AssessmentClient(judge.url) as client:

                async def follow() -> None:
                    async with aclosing(client.run(request)) as events:
                        _ = [event async for event in events]

                following = asyncio.create_task(follow())
                await slow.wait()
                await client.cancel()
                await following
            first = (results / "t0" / "result.json").read_bytes()
            assessed = await judge.ask(url, some_tasks(site.url, 2), run_id="twice")
    assessed.check()
    await judge.is_clean()
    assert (results / "t0" / "result.json").read_bytes() == first
    assert assessed.detail["judged_successes"] == 2


@pytest.mark.usefixtures("text_browser")
async def test_two_assessments_at_once_do_not_mix(judge: LiveJudge) -> None:
    def player(mark: str) -> Any:
        def script(turn: ParticipantTurn) -> str:
            if turn.n == 0:
                return tool_call("browser_type", ref=ref(turn, 'textbox "Field"'), text=mark, thought=mark)
            return to_the_goal(turn) if turn.n < 4 else tool_call("finish", answer=mark)

        return script

    with hostile_site() as site, hostile_site() as other:
        async with participant(player("first")) as one, participant(player("second")) as two:
            first, second = await asyncio.gather(
                judge.ask(one, some_tasks(site.url, 2), run_id="one", max_parallel=2, max_steps=4),
                judge.ask(two, some_tasks(other.url, 2), run_id="two", max_parallel=2, max_steps=4),
            )
    for assessed, mark, foreign, port in (
        (first, "first", "second", other.server_port),
        (second, "second", "first", site.server_port),
    ):
        assessed.check()
        text = json.dumps([assessed.result("t0"), assessed.result("t1")])
        assert f"TYPE: {mark}" in text
        assert foreign not in text
        # With its host: a bare number may be part of a digest or of a time.
        assert f"127.0.0.1:{port}" not in text
    await judge.is_clean()


@pytest.mark.usefixtures("text_browser")
async def test_the_same_run_twice_at_once_is_refused(judge: LiveJudge) -> None:
    playing, refused = asyncio.Event(), asyncio.Event()

    async def script(turn: ParticipantTurn) -> str:
        playing.set()
        await refused.wait()
        return to_the_goal(turn)

    with hostile_site() as site:
        async with participant(script) as url:
            first = asyncio.create_task(judge.ask(url, some_tasks(site.url), run_id="same"))
            await playing.wait()
            second = await judge.ask(url, some_tasks(site.url), run_id="same")
            refused.set()
            assessed = await first
    assert (second.outcome.state, second.outcome.results) == ("rejected", ())
    assessed.check()
    assert assessed.verdict == ("success", "finished")
