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

from helpers_assessment import FAST, Lab, Look, lab, participant, ref, say, some_tasks, to_the_goal
from helpers_browser import free_port
from helpers_hostile_site import hostile_site
from helpers_model_servers import ModelServer
from helpers_runs_cli import BIN
from judge.runner.follow import RunOutcome, request_assessment
from shared.a2a.client import AssessmentClient, StatusText

pytestmark = pytest.mark.e2e


@asynccontextmanager
async def judge_process(folder: Path, place: Path, port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """`wabe serve` as a process of its own."""
    command = [str(BIN / "wabe"), "serve", "--port", str(port), "--output-dir", str(folder)]
    places = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(place), "HOME": str(place)}
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


def asked(url: str, tasks: list[dict[str, Any]], **config: Any) -> str:
    checked = [{**task, "checks": [{"kind": "page", "url": "/goal"}]} for task in tasks]
    settings = {**FAST, "judge_model": "offline", **config, "tasks": checked}
    return json.dumps({"participants": {"white_agent": url}, "config": settings})


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux's")
async def test_a_full_disk_loses_the_tasks_it_hits_and_says_so(
    tmp_path: Path, place: Path, dice: random.Random
) -> None:
    port, strike = free_port(), dice.randrange(1, 3)

    async with judge_process(tmp_path, place, port) as process:

        def script(look: Look) -> str:
            if look.episode == 1 and look.n == strike:
                # From here on no file of the judge may grow: every write fails as on a full disk.
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return to_the_goal(look)

        with hostile_site() as site:
            async with participant(script) as url:
                request = asked(url, some_tasks(site.url, 3), run_id="full")
                outcome: RunOutcome = await request_assessment(f"http://127.0.0.1:{port}/", request, lambda _: None)
    assert outcome.state == "completed", outcome
    detail = outcome.results[0]["detail"]
    verdicts = [task["verdict"] for task in detail["tasks"]]
    assert verdicts[0] in ("success", "failure")
    assert verdicts[1:] == ["aborted", "aborted"]
    assert all(
        "File too large" in task["error"] and task["error"].startswith("internal: ") for task in detail["tasks"][1:]
    )
    assert detail["total_tasks"] == 3
    assert detail["aborted_tasks"] == 2
    kept = json.loads((tmp_path / "runs" / "full" / "results" / "t0" / "result.json").read_text())
    assert kept["verdict"] == verdicts[0]


async def test_a_device_without_space_aborts_the_task_that_needs_it(judge: Lab, dice: random.Random) -> None:
    strike = dice.randrange(1, 3)

    def script(look: Look) -> str:
        if look.n == strike:
            steps = judge.output_dir / "runs" / "nospace" / "results" / "t0" / "steps.jsonl"
            steps.unlink()
            steps.symlink_to("/dev/full")
        return to_the_goal(look)

    with hostile_site() as site:
        async with participant(script) as url:
            books = await judge.ask(url, some_tasks(site.url), run_id="nospace")
    assert books.verdict == ("aborted", "environment_fault")
    assert "No space left on device" in books.entry["error"]
    assert books.detail["success_rate"] == 0.0
    await judge.is_clean()


async def test_a_clock_that_is_set_back_changes_no_duration_and_no_outcome(
    judge: Lab, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike, real = dice.randrange(3), time.time
    shift = dice.choice((-86_400.0, 86_400.0, -1e9))

    def script(look: Look) -> str:
        if look.n == strike:
            monkeypatch.setattr(time, "time", lambda: real() + shift)
        return to_the_goal(look)

    with hostile_site() as site:
        books = await judge.play(script, site.url)
    assert books.verdict == ("success", "finished")
    times = books.result()["times"]
    assert 0 < times["duration_s"] < 60
    assert times["started_at"] < times["ended_at"]
    assert all(min(step["timings"].values()) >= 0 for step in books.result()["steps"])
    run = json.loads((books.folder / "run.json").read_text())
    assert run["ended_at"] >= run["started_at"]


def for_ever(look: Look) -> str:
    return say("browser_press_key", key="Tab")


async def until(path: Path, lines: int = 1) -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        await asyncio.sleep(0.01)


async def test_cancelling_over_a2a_stops_the_run_and_closes_its_browsers(judge: Lab, dice: random.Random) -> None:
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


async def test_a_cancelled_run_is_finished_by_asking_for_it_again(judge: Lab) -> None:
    results = judge.output_dir / "runs" / "twice" / "results"
    slow = asyncio.Event()

    async def script(look: Look) -> str:
        if look.episode == 1 and not slow.is_set():
            slow.set()
            await asyncio.sleep(30)
        return to_the_goal(look)

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
            books = await judge.ask(url, some_tasks(site.url, 2), run_id="twice")
    books.check()
    await judge.is_clean()
    assert (results / "t0" / "result.json").read_bytes() == first
    assert books.detail["judged_successes"] == 2


async def test_a_client_that_vanishes_does_not_stop_the_run(judge: Lab) -> None:
    with hostile_site() as site:
        async with participant(to_the_goal) as url:
            request = judge.request(url, some_tasks(site.url, 2), run_id="vanished")
            async with AssessmentClient(judge.url) as client, aclosing(client.run(request)) as events:
                async for event in events:
                    if isinstance(event, StatusText):
                        break
            results = judge.output_dir / "runs" / "vanished" / "results.json"
            while not results.exists():
                await asyncio.sleep(0.02)
    await judge.is_clean()
    detail = json.loads(results.read_text())["results"][0]["detail"]
    assert [task["verdict"] for task in detail["tasks"]] == ["success", "success"]


async def test_two_assessments_at_once_do_not_mix(judge: Lab) -> None:
    def player(mark: str) -> Any:
        def script(look: Look) -> str:
            if look.n == 0:
                return say("browser_type", ref=ref(look, 'textbox "Field"'), text=mark, thought=mark)
            return to_the_goal(look) if look.n < 4 else say("finish", answer=mark)

        return script

    with hostile_site() as site, hostile_site() as other:
        async with participant(player("first")) as one, participant(player("second")) as two:
            first, second = await asyncio.gather(
                judge.ask(one, some_tasks(site.url, 2), run_id="one", max_parallel=2, max_steps=4),
                judge.ask(two, some_tasks(other.url, 2), run_id="two", max_parallel=2, max_steps=4),
            )
    for books, mark, foreign, port in (
        (first, "first", "second", other.server_port),
        (second, "second", "first", site.server_port),
    ):
        books.check()
        text = json.dumps([books.result("t0"), books.result("t1")])
        assert f"TYPE: {mark}" in text
        assert foreign not in text
        assert str(port) not in text
    await judge.is_clean()


async def test_the_same_run_twice_at_once_is_refused(judge: Lab) -> None:
    steps = judge.output_dir / "runs" / "same" / "results" / "t0" / "steps.jsonl"
    with hostile_site() as site:
        async with participant(to_the_goal) as url:
            first = asyncio.create_task(judge.ask(url, some_tasks(site.url), run_id="same"))
            await until(steps)
            second = await judge.ask(url, some_tasks(site.url), run_id="same")
            books = await first
    assert (second.outcome.state, second.outcome.results) == ("rejected", ())
    books.check()
    assert books.verdict == ("success", "finished")


async def test_the_judge_outlives_every_fault(tmp_path: Path, place: Path, model: ModelServer) -> None:
    async with lab(tmp_path, place, model) as judge:
        before = {task for task in asyncio.all_tasks() if not task.done()}
        for website in (f"http://127.0.0.1:{free_port()}/", "http://127.0.0.1:1/"):
            books = await judge.play(to_the_goal, website)
            assert books.verdict == ("aborted", "environment_fault")
        with hostile_site() as site:
            assert (await judge.play(to_the_goal, site.url)).verdict == ("success", "finished")
        await asyncio.sleep(0)
        assert len({task for task in asyncio.all_tasks() if not task.done()} - before) < 10
