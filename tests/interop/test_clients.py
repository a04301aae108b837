"""Judges that are called by clients on the old SDK and the new: whole assessments."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from helpers.a2a.agents import served
from helpers.browser.text_browser import play_in_text_browsers
from helpers.episode.live_judge import ParticipantTurn, Script, finish, participant, ref, tool_call
from helpers.episode.offline_judge import offline_judge
from helpers.interop.programs import (
    CLIENTS,
    EventRecords,
    ForeignClients,
    assessment,
    calling,
    foreign_agent,
    judge_process,
    website,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("environments")]
ONE_OF_EACH = ("v03 JSON-RPC", "v1 HTTP+JSON")


@pytest.fixture
async def judge(text_browser: None, tmp_path: Path) -> AsyncIterator[str]:
    async with offline_judge(tmp_path) as url:
        yield url


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with website() as url:
        yield url


class Gate(asyncio.Event):
    """While it is not set, a participant that waits for it says nothing. `was_reached`: it was asked something."""

    def __init__(self) -> None:
        super().__init__()
        self.was_reached = asyncio.Event()

    @property
    def script(self) -> Script:
        async def reply(turn: ParticipantTurn) -> str:
            self.was_reached.set()
            await self.wait()
            return finish() if turn.n else tool_call("browser_click", ref=ref(turn, 'link "Goal"'))

        return reply


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def request_text(gate: Gate, site: str) -> AsyncIterator[str]:
    """The request for an assessment of a participant that answers once the gate is open."""
    async with participant(gate.script) as url:
        yield assessment(url, site)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def results_of(event: EventRecords) -> dict[str, Any]:
    """The JSON text of the only artifact."""
    [texts] = event["artifacts"]
    [result] = [json.loads(text) for text in texts if is_json(text)]
    return dict(result)


# --- one assessment, from the card to the result ----------------------------------------------------------------------


class Streamed(NamedTuple):
    """What each client sees of a whole assessment: its card, then every event. Later, two others fetch the task."""

    judge_url: str
    events: dict[str, list[EventRecords]]
    fetched: dict[str, list[EventRecords]]


@pytest.fixture(scope="module")
def streamed(clients: ForeignClients, site: str, tmp_path_factory: pytest.TempPathFactory) -> Streamed:
    """Of a participant on the old SDK."""
    folder = tmp_path_factory.mktemp("streamed")
    is_open = folder / "open"
    is_open.touch()

    def call(judge: str, player: str) -> Streamed:
        event_records = {
            client: clients.call(client, judge, "stream", text=assessment(player, site)) for client in CLIENTS
        }
        fetched = {
            client: [clients.call(other, judge, "get", task=events[-1]["task"])[1] for other in ONE_OF_EACH]
            for client, events in event_records.items()
        }
        return Streamed(judge, event_records, fetched)

    async def run() -> Streamed:
        async with offline_judge(folder) as judge:
            with foreign_agent("v03", gate=is_open) as player:
                return await asyncio.to_thread(call, judge, player)

    with pytest.MonkeyPatch.context() as patch:
        play_in_text_browsers(patch)
        return asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_the_card_is_read_in_the_clients_protocol(streamed: Streamed, client: str) -> None:
    card, *_ = streamed.events[client]
    protocol = "0.3" if client.startswith("v03") else "1.0"
    assert card == {"card": "test agent", "url": streamed.judge_url, "protocol": protocol}


@pytest.mark.parametrize("client", CLIENTS)
def test_it_is_one_task_that_works_and_then_is_completed(streamed: Streamed, client: str) -> None:
    _, *events = streamed.events[client]
    assert len({event["task"] for event in events}) == 1
    assert {event["state"] for event in events[:-1]} == {"working"}
    assert events[-1]["state"] == "completed"


@pytest.mark.parametrize("client", CLIENTS)
def test_progress_is_reported_in_prose(streamed: Streamed, client: str) -> None:
    _, *events = streamed.events[client]
    messages = [text for event in events for text in event["said"]]
    assert len(messages) > 2
    assert not any(is_json(line) for text in messages for line in (text, *text.splitlines()))


@pytest.mark.parametrize("client", CLIENTS)
def test_one_artifact_holds_prose_and_the_result_as_json(streamed: Streamed, client: str) -> None:
    _, *events = streamed.events[client]
    [texts] = events[-1]["artifacts"]
    assert [is_json(text) for text in texts] == [False, True]
    assert set(results_of(events[-1])) == {"winner", "detail"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_result_is_that_of_the_assessment_with_whole_numbers(streamed: Streamed, client: str) -> None:
    _, *events = streamed.events[client]
    result = results_of(events[-1])
    detail = result["detail"]
    assert result["winner"] == "white_agent"
    assert [task["verdict"] for task in detail["tasks"]] == ["success"]
    counts = {name: detail[name] for name in ("total_tasks", "scored_tasks", "judged_successes", "aborted_tasks")}
    assert repr(counts) == "{'total_tasks': 1, 'scored_tasks': 1, 'judged_successes': 1, 'aborted_tasks': 0}"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_task_that_is_done_can_be_fetched_by_any_client(streamed: Streamed, client: str) -> None:
    last = streamed.events[client][-1]
    seen = [(task["state"], task["artifacts"]) for task in streamed.fetched[client]]
    assert seen == [("completed", last["artifacts"])] * 2


# --- other ways to ask ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ONE_OF_EACH)
async def test_a_client_that_does_not_stream_gets_the_finished_task(
    clients: ForeignClients, client: str, judge: str, gate: Gate, request_text: str
) -> None:
    gate.set()
    _, task = await asyncio.to_thread(clients.call, client, judge, "send", text=request_text)
    assert task["state"] == "completed"
    assert results_of(task)["detail"]["judged_successes"] == 1


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_invalid_request_is_rejected_with_the_reason(clients: ForeignClients, client: str, judge: str) -> None:
    _, *events = await asyncio.to_thread(clients.call, client, judge, "stream", text="hello")
    assert events[-1]["state"] == "rejected"
    assert events[-1]["said"] != []
    assert events[-1]["artifacts"] == []


@pytest.mark.parametrize("client", ONE_OF_EACH)
async def test_a_client_that_polls_is_answered_at_once_and_gets_the_result_later(
    clients: ForeignClients, client: str, judge: str, gate: Gate, request_text: str
) -> None:
    _, task = await asyncio.to_thread(clients.call, client, judge, "poll", text=request_text)
    await gate.was_reached.wait()
    later = await fetched(clients, client, judge, task["task"])
    gate.set()
    while (done := await fetched(clients, client, judge, task["task"]))["state"] == "working":
        pass
    assert (later["state"], later["artifacts"]) == ("working", [])
    assert results_of(done)["detail"]["judged_successes"] == 1


async def fetched(clients: ForeignClients, client: str, judge: str, task_id: str) -> EventRecords:
    """The task as a client gets it now."""
    _, task = await asyncio.to_thread(clients.call, client, judge, "get", task=task_id)
    return task


# --- clients that go away ---------------------------------------------------------------------------------------------


def begin_and_leave(client: str, judge: str, text: str) -> str:
    """Start an assessment and be killed at its first word; the task's id."""
    with calling(client, judge, "stream", text=text) as called:
        return next(str(event["task"]) for event in called if event.get("said"))


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_that_was_cut_off_can_follow_the_run_again(
    clients: ForeignClients, client: str, judge: str, gate: Gate, request_text: str
) -> None:
    task_id = await asyncio.to_thread(begin_and_leave, client, judge, request_text)
    events: list[EventRecords] = []

    def follow(loop: asyncio.AbstractEventLoop) -> None:
        for event in clients.events(client, judge, "resubscribe", task=task_id):
            events.append(event)
            if "task" in event:
                loop.call_soon_threadsafe(gate.set)

    await asyncio.to_thread(follow, asyncio.get_running_loop())
    _, first, *_, last = events
    assert (first["task"], first["state"]) == (task_id, "working")
    assert last["state"] == "completed"
    assert results_of(last)["detail"]["judged_successes"] == 1


# --- a judge behind a proxy -------------------------------------------------------------------------------------------


PREFIX = "/judges/wabe"


class Proxy:
    """Passes what comes in under `PREFIX` on to the root of `target`, and keeps count."""

    def __init__(self) -> None:
        self.target = ""
        self.passed: list[str] = []
        self._http = httpx.AsyncClient(timeout=60)
        route = Route(PREFIX + "/{path:path}", self._pass_on, methods=["GET", "POST"])
        self.app = Starlette(routes=[route], lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self._http.aclose()

    async def _pass_on(self, request: Request) -> Response:
        path = request.path_params["path"]
        self.passed.append(f"{request.method} /{path}")
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        url = f"{self.target}/{path}"
        onward = self._http.build_request(request.method, url, headers=headers, content=await request.body())
        answer = await self._http.send(onward, stream=True)
        kind = {"Content-Type": answer.headers["content-type"]}
        return StreamingResponse(answer.aiter_raw(), answer.status_code, kind)


async def test_clients_reach_a_judge_behind_a_proxy_by_the_address_in_its_card(
    clients: ForeignClients, tmp_path: Path
) -> None:
    proxy = Proxy()
    async with served(proxy.app) as outside, offline_judge(tmp_path, f"{outside}{PREFIX}/") as url:
        proxy.target = url.rstrip("/")
        for client in CLIENTS:
            request = (client, f"{outside}{PREFIX}", "stream")
            card, *_, last = await asyncio.to_thread(clients.call, *request, text="no assessment request")
            assert card["url"] == f"{outside}{PREFIX}/", client
            assert last["state"] == "rejected", client
            assert [line.split()[0] for line in proxy.passed] == ["GET", "POST"], client
            proxy.passed.clear()


# --- a judge that is restarted ----------------------------------------------------------------------------------------


class Restarted(NamedTuple):
    """What clients see of a judge's tasks after it was ended and started again."""

    card_url: str
    card: EventRecords
    finished: EventRecords
    """A finished task before the restart, and to each client after it."""
    fetched: list[EventRecords]
    cut_short: list[EventRecords]
    """A task that was under way, to each client that fetches it and to each that follows it."""
    followed: list[EventRecords]


async def start_assessments(
    clients: ForeignClients, judge: str, gate: Gate, text: str
) -> tuple[list[EventRecords], str]:
    """What a client sees of an assessment that is finished, and the id of a task that will not be."""
    gate.set()
    events = await asyncio.to_thread(clients.call, "v03 JSON-RPC", judge, "send", text=text)
    gate.clear()
    gate.was_reached.clear()
    _, task = await asyncio.to_thread(clients.call, "v03 JSON-RPC", judge, "poll", text=text)
    await gate.was_reached.wait()
    return events, task["task"]


async def after(clients: ForeignClients, judge: str, finished: str, cut_short: str) -> tuple[list[EventRecords], ...]:
    def look() -> tuple[list[EventRecords], ...]:
        return (
            [clients.call(client, judge, "get", task=finished)[1] for client in ONE_OF_EACH],
            [clients.call(client, judge, "get", task=cut_short)[1] for client in ONE_OF_EACH],
            [clients.call(client, judge, "resubscribe", task=cut_short)[-1] for client in CLIENTS],
        )

    return await asyncio.to_thread(look)


async def stop_and_restart(clients: ForeignClients, site: str, folder: Path) -> Restarted:
    """A judge that is stopped gracefully, as SIGTERM does."""
    gate = Gate()
    async with participant(gate.script) as player:
        async with offline_judge(folder) as judge:
            (card, finished), task_id = await start_assessments(clients, judge, gate, assessment(player, site))
        async with offline_judge(folder) as again:
            return Restarted(judge, card, finished, *await after(clients, again, finished["task"], task_id))


async def kill_and_restart(clients: ForeignClients, site: str, folder: Path) -> Restarted:
    """One as users start it, in a real browser."""
    gate = Gate()
    async with participant(gate.script) as player:
        with judge_process(folder) as judge:
            (card, finished), task_id = await start_assessments(clients, judge.url, gate, assessment(player, site))
            await asyncio.to_thread(judge.end, signal.SIGKILL)
            await asyncio.to_thread(judge.start)
            events = await after(clients, judge.url, finished["task"], task_id)
            return Restarted(judge.card_url, card, finished, *events)


@pytest.fixture(scope="module")
def stopped(clients: ForeignClients, site: str, tmp_path_factory: pytest.TempPathFactory) -> Restarted:
    with pytest.MonkeyPatch.context() as patch:
        play_in_text_browsers(patch)
        return asyncio.run(stop_and_restart(clients, site, tmp_path_factory.mktemp("stopped")))


@pytest.fixture(scope="module")
def killed(clients: ForeignClients, site: str, tmp_path_factory: pytest.TempPathFactory) -> Restarted:
    return asyncio.run(kill_and_restart(clients, site, tmp_path_factory.mktemp("killed")))


@pytest.fixture(params=["stopped", pytest.param("killed", marks=[pytest.mark.e2e, pytest.mark.nightly])])
def restarted(request: pytest.FixtureRequest) -> Restarted:
    result: Restarted = request.getfixturevalue(request.param)
    return result


@pytest.mark.e2e
@pytest.mark.nightly
def test_the_card_names_the_judge_and_the_address_it_was_given(killed: Restarted) -> None:
    assert killed.card == {"card": "WABE judge", "url": killed.card_url, "protocol": "0.3"}


def test_finished_tasks_survive_a_restart_of_the_judge(restarted: Restarted) -> None:
    before = restarted.finished
    assert results_of(before)["detail"]["judged_successes"] == 1
    seen = [(task["state"], task["artifacts"]) for task in restarted.fetched]
    assert seen == [("completed", before["artifacts"])] * 2


def test_a_task_that_a_restart_interrupted_has_failed_and_is_not_waited_for(restarted: Restarted) -> None:
    assert [task["state"] for task in restarted.cut_short] == ["failed"] * 2
    assert all(text for task in restarted.cut_short for text in task["said"])
    assert all("error" in event or event["state"] == "failed" for event in restarted.followed)
