"""A judge that is stopped in the middle of assessments, and started again on the same folder."""

import asyncio
import json
import logging
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import FAST, ParticipantTurn, participant, served, some_tasks, to_the_goal
from judge.records.events import BUSY_KEY, CONTINUES_KEY, RESUME_TOKEN_KEY, RUN_ID_KEY, Event, TaskRetried
from judge.runner.follow import request_assessment
from judge.server import running as running_module
from judge.server.limits import ServiceLimits
from judge.server.service import JudgeService
from shared.a2a.client import AssessmentClient, Final
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, listen
from shared.settings import Settings

SECRET = "planted-0b7d44e1"


@asynccontextmanager
async def a_judge(
    folder: Path, port: int = 0, task_db: Path | None = None, **limits: Any
) -> AsyncIterator[tuple[str, JudgeService]]:
    """A judge to which every client is a stranger; stopped at the end as by SIGTERM."""
    sock = listen("127.0.0.1", port)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    service = JudgeService(Settings(browser_path=sys.executable), folder, ServiceLimits(**limits), own_address=url)
    app = build_app(
        service,
        name="judge",
        description="judge",
        version="1",
        card_url=url,
        skills=[Skill(id="j", name="j", description="j", tags=("j",))],
        task_db=task_db,
        update_interval_s=0.02,
        note_on_stop=service.note_on_stop,
        secret_metadata=(RESUME_TOKEN_KEY,),
        serving=service.serving,
    )
    stop = app.state.stop

    async def draining() -> None:
        service.drain()
        await stop()

    app.state.stop = draining
    async with served(app, sock):
        yield url, service


def a_request(url: str, website: str, **config: Any) -> str:
    tasks = [{**task, "checks": [{"kind": "page", "url": "/goal"}]} for task in some_tasks(website, 2)]
    # Long replies, because the participant here pauses while a judge is started again.
    settings = {**FAST, "reply_timeout_s": 24, "judge_model": "offline", **config, "tasks": tasks}
    return json.dumps({"participants": {"white_agent": url}, "config": settings})


class Pausing:
    """Plays to the goal, but pauses in the second conversation until it may go on; counts the conversations."""

    def __init__(self) -> None:
        self.has_come, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.finished: list[int] = []

    async def __call__(self, turn: ParticipantTurn) -> str:
        if turn.episode >= 1 and not self.may_go_on.is_set():
            self.has_come.set()
            await self.may_go_on.wait()
        reply = to_the_goal(turn)
        if '"finish"' in reply:
            self.finished.append(turn.episode)
        return reply


async def first_update(client: AssessmentClient, request: str) -> tuple[str, str]:
    """The run's id and token; the client then hangs up."""
    async with aclosing(client.run(request)) as events:
        async for _ in events:
            if RUN_ID_KEY in client.metadata:
                break
    return client.metadata[RUN_ID_KEY], client.metadata[RESUME_TOKEN_KEY]


async def completed(folder: Path) -> dict[str, Any]:
    while True:
        if (folder / "results.json").exists():
            detail: dict[str, Any] = json.loads((folder / "results.json").read_text())["results"][0]["detail"]
            return detail
        await asyncio.sleep(0.02)


def settled(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("results/t0/**/*") if path.is_file()
    }


@pytest.mark.usefixtures("text_browser")
@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_run_without_secrets_goes_on_by_itself_and_its_client_can_follow_again(
    how: str, tmp_path: Path
) -> None:
    script, home = Pausing(), tmp_path / "first"
    async with AsyncExitStack() as stack:
        site = stack.enter_context(hostile_site())
        url = await stack.enter_async_context(participant(script))
        request = a_request(url, site.url)
        database = tmp_path / "tasks.sqlite"
        async with a_judge(home, task_db=database) as (judge, _), AssessmentClient(judge) as client:
            run_id, token = await first_update(client, request)
            await script.has_come.wait()
            before = settled(home / "runs" / run_id)
            if how == "killed":
                # What SIGKILL leaves: the folder as it is now.
                home = Path(shutil.copytree(home, tmp_path / "second"))
        folder = home / "runs" / run_id
        assert (json.loads((folder / "run.json").read_text())["state"] == "stopped") == (how == "stopped")
        assert before
        async with a_judge(home) as (judge, service):
            # Another token, and this one with another request, are refused while the run goes on.
            for text, why in (
                (json.loads(request) | {"resume_token": f"{run_id}.guessed"}, "belongs to no run of this judge"),
                (json.loads(a_request(url, site.url, max_steps=5)) | {"resume_token": token}, "max_steps: 6 → 5"),
            ):
                refused = await request_assessment(judge, json.dumps(text), lambda _: None)
                assert (refused.state, why in refused.message) == ("rejected", True), refused
            again = json.dumps(json.loads(request) | {"resume_token": token})
            following = asyncio.create_task(request_assessment(judge, again, lambda _: None))
            while not service._running[run_id].followers:
                await asyncio.sleep(0.02)
            script.may_go_on.set()
            outcome = await following
            metrics = service.metrics.text().decode()
        detail = outcome.results[0]["detail"]
    for counted in ('attempts_total{outcome="success"} 1.0', 'attempts_total{outcome="retried"} 1.0'):
        assert f"wabe_{counted}" in metrics
    assert 'wabe_errors_total{blame="internal"} 1.0' in metrics
    assert (outcome.state, outcome.run_id, detail["judged_successes"]) == ("completed", run_id, 2)
    assert settled(folder) == before, "a finished attempt is left alone"
    assert len(script.finished) == 2
    assert json.loads((folder / "results" / "t1" / "result.json").read_text())["attempt"] == 2
    assert run_id.encode() in database.read_bytes()
    assert token.rpartition(".")[2].encode() not in database.read_bytes()


@pytest.mark.usefixtures("text_browser")
async def test_a_run_with_a_secret_waits_for_its_client_which_repeats_by_itself(tmp_path: Path) -> None:
    script, events = Pausing(), list[Event]()
    async with AsyncExitStack() as stack:
        site = stack.enter_context(hostile_site())
        url = await stack.enter_async_context(participant(script))
        request = a_request(url, site.url, secrets=[SECRET])
        async with a_judge(tmp_path) as (judge, _):
            port = int(judge.rstrip("/").rpartition(":")[2])
            following = asyncio.create_task(request_assessment(judge, request, events.append, patience_s=60))
            await script.has_come.wait()
        script.may_go_on.set()
        async with a_judge(tmp_path, port):
            outcome = await following
    assert outcome.state == "completed", outcome
    assert outcome.results[0]["detail"]["judged_successes"] == 2
    retried = [event for event in events if isinstance(event, TaskRetried)]
    assert [(event.task_id, event.cause) for event in retried] == [("t1", "the judge was stopped during the attempt")]
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.usefixtures("text_browser")
async def test_the_task_of_a_killed_judge_ends_as_failed_and_says_how_to_continue(tmp_path: Path) -> None:
    script = Pausing()
    async with AsyncExitStack() as stack:
        site = stack.enter_context(hostile_site())
        url = await stack.enter_async_context(participant(script))
        database = tmp_path / "tasks.sqlite"
        async with a_judge(tmp_path, task_db=database) as (judge, _), AssessmentClient(judge) as client:
            port = int(judge.rstrip("/").rpartition(":")[2])
            events = client.run(a_request(url, site.url, secrets=[SECRET]))
            while RUN_ID_KEY not in client.metadata:
                await anext(events)
            await script.has_come.wait()
            # What SIGKILL leaves: the task as it is now in the database.
            killed = tmp_path / "killed.sqlite"
            killed.write_bytes(database.read_bytes())
            await events.aclose()
        async with a_judge(tmp_path, port, task_db=killed):
            task = (await called(judge, "GetTask", {"id": client._task_id}))["result"]
    run_id = client.metadata[RUN_ID_KEY]
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    text = task["status"]["message"]["parts"][0]["text"]
    assert text.startswith(f"The agent was restarted before the work was done. Continue run {run_id}: send")
    assert task["metadata"][CONTINUES_KEY] == "on request"


@pytest.mark.usefixtures("text_browser")
async def test_runs_are_continued_one_after_the_other_where_there_is_little_room(tmp_path: Path) -> None:
    script = Pausing()
    async with AsyncExitStack() as stack:
        site = stack.enter_context(hostile_site())
        url = await stack.enter_async_context(participant(script))
        async with a_judge(tmp_path) as (judge, service):
            runs = []
            for _ in range(2):
                async with AssessmentClient(judge) as client:
                    runs.append((await first_update(client, a_request(url, site.url)))[0])
        async with a_judge(tmp_path, max_assessments=1) as (judge, service):
            while service.health == "ready":
                await asyncio.sleep(0.02)
            outcome = await request_assessment(judge, a_request(url, site.url), lambda _: None)
            seen = service.health, outcome.state
            script.may_go_on.set()
            details = [await completed(tmp_path / "runs" / run_id) for run_id in runs]
    assert seen == ("full", "rejected")
    assert [detail["judged_successes"] for detail in details] == [2, 2]


@pytest.mark.usefixtures("text_browser")
async def test_a_judge_that_stops_takes_no_further_request(tmp_path: Path) -> None:
    async with a_judge(tmp_path) as (judge, service), AssessmentClient(judge) as client:
        service.drain()
        events = [event async for event in client.run(a_request("http://127.0.0.1:1/", "https://shop.test/"))]
    assert isinstance(events[-1], Final)
    assert events[-1] == Final("rejected", "this judge is stopping; try again when it has started")
    assert client.metadata[BUSY_KEY]


@pytest.mark.usefixtures("text_browser")
@pytest.mark.parametrize("way", ["stream", "blocking call", "polling"])
async def test_an_assessment_can_end_with_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    monkeypatch.setattr(running_module, "ABSENT_S", 1.5)
    monkeypatch.setattr(running_module, "_POLL_S", 0.05)
    caplog.set_level(logging.INFO, "judge.server.service")
    script = Pausing()
    async with AsyncExitStack() as stack:
        site = stack.enter_context(hostile_site())
        url = await stack.enter_async_context(participant(script))
        judge, service = await stack.enter_async_context(a_judge(tmp_path))
        request = a_request(url, site.url, on_disconnect="cancel")
        await CLIENTS[way](judge, request, script.has_come)
        while service.health != "ready" or service._running:
            await asyncio.sleep(0.02)
    [run] = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/run.json")]
    assert run["state"] == "cancelled"
    assert "assessment cancelled: no client has followed it for 1.5 s" in caplog.messages


async def streaming(judge: str, request: str, has_come: asyncio.Event) -> None:
    async with AssessmentClient(judge) as client, aclosing(client.run(request)) as events:
        await anext(events)
        await has_come.wait()
        # Longer than a client may be absent, while it is there.
        await asyncio.sleep(1.8)


async def blocking(judge: str, request: str, has_come: asyncio.Event) -> None:
    call = asyncio.create_task(posted(judge, request, blocking=True))
    await has_come.wait()
    await asyncio.sleep(1.8)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def polling(judge: str, request: str, has_come: asyncio.Event) -> None:
    task = (await posted(judge, request, blocking=False))["result"]["task"]
    while not has_come.is_set():
        await asyncio.sleep(0.1)
        assert (await called(judge, "GetTask", {"id": task["id"]}))["result"]["status"]["state"].endswith("WORKING")


async def posted(judge: str, request: str, *, blocking: bool) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": request}]}
    return await called(
        judge, "SendMessage", {"message": message, "configuration": {"returnImmediately": not blocking}}
    )


async def called(judge: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await client.post(judge, json=body, headers={"A2A-Version": "1.0"})
        return dict(answer.json())


CLIENTS: dict[str, Callable[[str, str, asyncio.Event], Any]] = {
    "stream": streaming,
    "blocking call": blocking,
    "polling": polling,
}
