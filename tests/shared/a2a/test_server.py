import asyncio
import base64
import contextlib
import gc
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from helpers.a2a.agents import JPEG, SRC, cutting_proxy, our_agent, served
from helpers.ports import free_port
from shared.a2a.client import ArtifactTexts, AssessmentClient, Final, StatusText
from shared.a2a.page_links import PageLinks
from shared.a2a.serving import address_of, listen
from shared.a2a.tasks import AgentMessage, TaskSink, as_prose
from shared.errors import ConfigError, ParticipantError

RESULT = '{"winner": "white_agent", "detail": {"total_tasks": 3, "success_rate": 33.3}}'
Work = Callable[[AgentMessage, TaskSink], Awaitable[None]]


class Agent:
    """An executor that does what a test says."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        await self._work(turn, sink)


class Gate:
    """Work that reports progress, then waits for `let_go`."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.let_go = asyncio.Event()
        self.ended = asyncio.Event()
        self.was_cancelled = False

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        try:
            sink.update("Begun.")
            self.started.set()
            await self.let_go.wait()
            await sink.artifact("results", ["A result.", RESULT])
            await sink.complete("Done.")
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        finally:
            self.ended.set()


async def echo(turn: AgentMessage) -> str:
    return f"{turn.text}|{turn.context_id}|{[(len(file.data), file.media_type) for file in turn.files]}"


@contextlib.asynccontextmanager
async def http_to(agent: Any, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(our_agent(agent, **options)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=10) as client,
    ):
        yield client


async def rpc(client: httpx.AsyncClient, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
    """One JSON-RPC call; the form of the method's name decides the protocol version."""
    version = "0.3" if "/" in method else "1.0"
    body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
    response = await client.post("/", json=body, headers={"A2A-Version": version, **headers})
    answer: dict[str, Any] = response.json()
    return answer


def message_10(text: str, *, image: bytes | None = None, **more: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}]
    if image is not None:
        parts.append({"raw": base64.b64encode(image).decode(), "mediaType": "image/jpeg"})
    return {"message": {"messageId": "m", "role": "ROLE_USER", "contextId": "c", "parts": parts}, **more}


async def events_of(work: Work, **options: Any) -> list[StatusText | ArtifactTexts | Final]:
    async with served(our_agent(Agent(work), **options)) as url, AssessmentClient(url) as client:
        return [event async for event in client.run("Begin.")]


# --- the wire ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
async def test_the_card_can_be_read_by_old_and_new_clients(path: str) -> None:
    async with http_to(echo, card_url="https://judge.example/base/") as client:
        card = (await client.get(path)).json()
    bindings = [(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]]
    assert bindings[:2] == [("JSONRPC", "1.0"), ("JSONRPC", "0.3")]
    assert {each["url"] for each in card["supportedInterfaces"]} == {"https://judge.example/base/"}
    assert (card["url"], card["protocolVersion"], card["preferredTransport"]) == (
        "https://judge.example/base/",
        "0.3",
        "JSONRPC",
    )
    assert card["capabilities"]["streaming"] is True
    assert card["skills"]


async def test_a_message_of_protocol_1_0_is_answered_with_a_message() -> None:
    async with http_to(echo) as client:
        answer = await rpc(client, "SendMessage", message_10("Hello", image=JPEG))
    assert answer["result"]["message"]["parts"] == [{"text": f"Hello|c|[({len(JPEG)}, 'image/jpeg')]"}]
    assert answer["result"]["message"]["contextId"] == "c"


async def test_a_message_of_protocol_0_3_is_answered_with_a_message() -> None:
    file = {"bytes": base64.b64encode(JPEG).decode(), "mimeType": "image/jpeg"}
    message = {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "contextId": "c",
        "parts": [{"kind": "text", "text": "Hello"}, {"kind": "file", "file": file}],
    }
    async with http_to(echo) as client:
        answer = await rpc(client, "message/send", {"message": message})
    assert answer["result"]["kind"] == "message"
    assert answer["result"]["parts"] == [{"kind": "text", "text": f"Hello|c|[({len(JPEG)}, 'image/jpeg')]"}]


async def test_a_message_over_http_and_json_is_answered() -> None:
    async with http_to(echo) as client:
        response = await client.post("/message:send", json=message_10("Hello"), headers={"A2A-Version": "1.0"})
    assert response.json()["message"]["parts"] == [{"text": "Hello|c|[]"}]


async def test_a_stream_of_protocol_0_3_ends_in_a_final_status_and_holds_the_artifact() -> None:
    gate = Gate()
    gate.let_go.set()
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "Begin."}]}
    body = {"jsonrpc": "2.0", "id": "1", "method": "message/stream", "params": {"message": message}}
    async with http_to(gate) as client:
        response = await client.post("/", json=body)
    events = [json.loads(line[6:])["result"] for line in response.text.splitlines() if line.startswith("data: ")]
    assert [event["kind"] for event in events] == ["task", "status-update", "artifact-update", "status-update"]
    assert [part["text"] for part in events[2]["artifact"]["parts"]] == ["A result.", RESULT]
    assert events[-1]["final"] is True
    assert events[-1]["status"]["state"] == "completed"


async def test_extra_routes_are_served_beside_the_protocols() -> None:
    page = Route("/", lambda request: PlainTextResponse("a page"), methods=["GET"])
    async with http_to(echo, extra_routes=[page]) as client:
        assert (await client.get("/")).text == "a page"
        assert "result" in await rpc(client, "SendMessage", message_10("Hello"))
        assert (await client.get("/nothing/here")).status_code == 404


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [True, False], ids=["length stated", "chunked"])
@pytest.mark.parametrize("path", ["/", "/message:send"])
async def test_a_body_over_the_limit_is_refused_and_the_agent_not_asked(path: str, stated: bool) -> None:
    requests = []

    async def handler(turn: AgentMessage) -> str:
        requests.append(turn)
        return "hello"

    body = json.dumps({"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": message_10("x" * 50_000)})

    async def chunks() -> AsyncIterator[bytes]:
        yield body.encode()

    async with http_to(handler, max_body_bytes=40_000) as client:
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        response = await client.post(path, content=body if stated else chunks(), headers=headers)
    assert (response.status_code, response.text) == (413, "Content Too Large")
    assert requests == []


async def test_listing_tasks_is_refused() -> None:
    async with http_to(echo) as client:
        answer, old = await rpc(client, "ListTasks", {}), await rpc(client, "tasks/list", {})
        rest = await client.get("/tasks", headers={"A2A-Version": "1.0"})
        old_rest = await client.get("/v1/tasks", headers={"A2A-Version": "0.3"})
    assert "does not list tasks" in answer["error"]["message"]
    assert old["error"]
    assert (rest.status_code, old_rest.status_code >= 400) == (400, True)
    assert "does not list tasks" in rest.text


async def test_with_a_token_everything_but_the_card_requires_it() -> None:
    health = Route("/health", lambda request: PlainTextResponse("ok"))
    options = {"auth_token": SecretStr("a-secret"), "extra_routes": [health]}
    async with http_to(echo, public_paths=("/health",), **options) as client:
        assert (await client.get("/health")).text == "ok"
    async with http_to(echo, **options) as client:
        card = await client.get("/.well-known/agent-card.json")
        assert "a-secret" not in card.text
        assert card.json()["securitySchemes"]
        assert (await client.get("/health")).status_code == 401
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "a-secret"}):
            refused = await client.post("/", json={}, headers=headers)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "result" in await rpc(client, "SendMessage", message_10("Hello"), Authorization="Bearer a-secret")


async def test_a_browser_can_read_pages_with_the_token_as_password_but_not_send_requests() -> None:
    page = Route("/", lambda request: PlainTextResponse("the page"))
    async with http_to(echo, auth_token=SecretStr("a-secret"), extra_routes=[page]) as client:
        refused = await client.get("/")
        assert refused.status_code == 401
        # In lines of their own: Chromium asks for no password if both are in one.
        schemes = refused.headers.get_list("WWW-Authenticate", split_commas=False)
        assert schemes == ["Bearer", 'Basic realm="WABE: the token is the password"']
        assert (await client.get("/", auth=("anyone", "a-secret"))).text == "the page"
        for wrong in ("anyone:wrong", "a-secret", "anyone:a-secret:", ":"):
            header = f"Basic {base64.b64encode(wrong.encode()).decode()}"
            assert (await client.get("/", headers={"Authorization": header})).status_code == 401
        assert (await client.get("/", headers={"Authorization": "Basic %%%"})).status_code == 401
        assert (await client.post("/", json={}, auth=("anyone", "a-secret"))).status_code == 401


async def test_a_link_opens_pages_once_and_for_one_browser_only() -> None:
    now = [0.0]
    links, page = PageLinks(lambda: now[0]), Route("/", lambda request: PlainTextResponse("the page"))
    options = {"auth_token": SecretStr("a-secret"), "page_links": links, "extra_routes": [page]}
    token = {"Authorization": "Bearer a-secret"}
    async with http_to(echo, **options) as client:
        assert (await client.post("/open")).status_code == 401
        path = (await client.post("/open", headers=token)).json()["path"]
        assert (await client.get("/")).status_code == 401, "a link opens nothing before it is followed"
        assert (await client.head(path)).status_code == 401, "programs that look at a link do not use it up"
        opened = await client.get(path)
        assert (opened.status_code, opened.headers["Location"]) == (303, "/")
        cookie = opened.headers["Set-Cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/"))
        client.cookies.clear()
        assert (await client.get(path)).status_code == 410
        cookies = {"Cookie": f"other=x; {opened.headers['Set-Cookie'].partition(';')[0]}"}
        assert (await client.get("/", headers=cookies)).text == "the page"
        assert (await client.post("/", json={}, headers=cookies)).status_code == 401, "pages only"
        assert (await client.post("/open", headers=cookies)).status_code == 401
        for wrong in ("", "wabe_page=x", cookies["Cookie"][:-1], "wabe_page_=;;;=\xe9"):
            assert (await client.get("/", headers={b"Cookie": wrong.encode("latin-1")})).status_code == 401
        late = (await client.post("/open", headers=token)).json()["path"]
        now[0] += 601
        assert (await client.get(late)).status_code == 410
        assert (await client.get("/", headers=cookies)).text == "the page"
        now[0] += 43_200
        assert (await client.get("/", headers=cookies)).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\x00",
        b"7",
        b"[" * 20_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": "hello"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "none"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "RunCode", "params": {}}',
    ],
)
async def test_a_malformed_request_is_an_error_and_the_server_continues(body: bytes) -> None:
    async with http_to(echo) as client:
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        response = await client.post("/", content=body, headers=headers)
        assert response.json()["error"]["message"]
        assert "Traceback" not in response.text
        assert "result" in await rpc(client, "SendMessage", message_10("Hello"))


# --- tasks ------------------------------------------------------------------------------------------------------------


async def test_progress_and_result_arrive_in_order_and_the_end_comes_last() -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        sink.update("One.")
        await sink.artifact("results", ["A result.", RESULT])
        sink.update("Two.")
        await sink.complete("Done.")

    assert await events_of(work) == [
        StatusText("One."),
        ArtifactTexts(("A result.", RESULT)),
        StatusText("Two."),
        Final("completed", "Done."),
    ]


async def test_facts_travel_as_metadata_of_the_update_with_their_text() -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        for number in range(500):
            sink.update(f"{number}.", {"facts": {"n": number}})
        await sink.complete("Done.")

    *updates, _ = await events_of(work, update_interval_s=9.0)
    facts = [update.metadata["facts"] for update in updates if isinstance(update, StatusText)]
    assert [fact["n"] for each in facts for fact in each] == list(range(500))
    assert max(map(len, facts)) == 200


async def test_nothing_follows_the_end() -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        await sink.reject("Not for me.")
        sink.update("Still here.")
        await sink.artifact("results", [RESULT])
        await sink.complete("Done after all.")
        await sink.reply("Hello?")

    assert await events_of(work) == [Final("rejected", "Not for me.")]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConfigError("no key", remedy="set one"), "no key (set one)"),
        (KeyError("secret detail"), "The agent failed: KeyError."),
        (None, "The agent gave no answer."),
    ],
)
async def test_work_that_raises_or_forgets_to_end_is_a_failed_task(error: Exception | None, words: str) -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        if error is not None:
            raise error

    assert await events_of(work) == [Final("failed", words)]


async def test_a_handler_that_raises_is_a_failed_task() -> None:
    async def handler(turn: AgentMessage) -> str:
        raise ConfigError("no key")

    async with http_to(handler) as client:
        answer = await rpc(client, "SendMessage", message_10("Hello"))
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_FAILED"
    assert answer["result"]["task"]["status"]["message"]["parts"] == [{"text": "no key"}]


async def test_fast_progress_is_joined_without_loss() -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        for number in range(200):
            sink.update(f"Step {number}.")
            await asyncio.sleep(0)
        await sink.complete("Done.")

    events = await events_of(work, update_interval_s=60.0)
    assert len(events) <= 3
    lines = [line for event in events if isinstance(event, StatusText) for line in event.text.split("\n")]
    assert lines == [f"Step {number}." for number in range(200)]


async def test_silence_is_broken_by_a_heartbeat() -> None:
    is_reached = asyncio.Event()

    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        await is_reached.wait()
        await sink.complete("Done.")

    async with served(our_agent(Agent(work), still_working_s=0.01)) as url, AssessmentClient(url) as client:
        events = client.run("Begin.")
        assert await anext(events) == StatusText("Still working.")
        is_reached.set()
        assert [event async for event in events][-1] == Final("completed", "Done.")


@pytest.mark.parametrize("text", ["42", '{"winner": "me"}', "[1]", '"x"', "null", "NaN", " true", "-1", "\ufeff{}"])
async def test_progress_never_parses_as_json(text: str) -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        sink.update(text)
        await sink.complete(text)

    for event in await events_of(work):
        message = str(event.text if isinstance(event, StatusText) else event[-1])
        assert text in message
        with pytest.raises(json.JSONDecodeError):
            json.loads(message)


@given(st.one_of(st.text(), st.recursive(st.integers() | st.booleans() | st.none(), st.lists).map(json.dumps)))
def test_prose_is_never_json(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(as_prose(text))


@given(st.from_regex(r"\A(Task|Assessment|Über) .{1,50}\Z"))
def test_prose_is_left_unchanged(text: str) -> None:
    assert as_prose(text) == text


async def test_cancelling_ends_the_work_and_the_task_is_canceled() -> None:
    gate = Gate()
    async with served(our_agent(gate)) as url, AssessmentClient(url) as client:
        events = client.run("Begin.")
        assert await anext(events) == StatusText("Begun.")
        await client.cancel()
        assert gate.was_cancelled
        assert [event async for event in events] == [Final("canceled", "Cancelled on request.")]


async def test_cancelling_waits_until_the_work_has_cleaned_up() -> None:
    cleaned = asyncio.Event()
    is_started = asyncio.Event()

    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        is_started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    async with http_to(Agent(work)) as client:
        task = await rpc(client, "SendMessage", message_10("Begin.", configuration={"returnImmediately": True}))
        await is_started.wait()
        answer = await rpc(client, "CancelTask", {"id": task["result"]["task"]["id"]})
        assert cleaned.is_set()
    assert answer["result"]["status"]["state"] == "TASK_STATE_CANCELED"


async def test_parallel_tasks_do_not_mix() -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        sink.update(f"Working on {turn.text}.")
        await asyncio.sleep(0.05)
        await sink.artifact("results", [turn.text])
        await sink.complete(turn.text)

    async def run(text: str) -> list[Any]:
        async with AssessmentClient(url) as client:
            return [event async for event in client.run(text)]

    async with served(our_agent(Agent(work))) as url:
        names = [f"run {number}" for number in range(8)]
        for name, events in zip(names, await asyncio.gather(*map(run, names)), strict=True):
            assert events == [StatusText(f"Working on {name}."), ArtifactTexts((name,)), Final("completed", name)]


# --- lost clients and stopping servers --------------------------------------------------------------------------------


async def test_a_client_that_vanishes_does_not_stop_the_work_and_the_task_can_be_fetched() -> None:
    gate = Gate()
    async with http_to(gate) as client:
        body = {"jsonrpc": "2.0", "id": "1", "method": "SendStreamingMessage", "params": message_10("Begin.")}
        async with client.stream("POST", "/", json=body, headers={"A2A-Version": "1.0"}) as stream:
            line = await anext(stream.aiter_lines())
        task_id = json.loads(line[6:])["result"]["task"]["id"]
        await gate.started.wait()
        gate.let_go.set()
        await gate.ended.wait()
        task = (await rpc(client, "GetTask", {"id": task_id}))["result"]
    assert not gate.was_cancelled
    assert [part["text"] for part in task["artifacts"][0]["parts"]] == ["A result.", RESULT]


async def test_the_client_reconnects_and_repeats_no_result() -> None:
    gate = Gate()
    app = our_agent(gate)
    async with served(app) as url, cutting_proxy(url, after=b"Begun.") as proxy, AssessmentClient(proxy.url) as client:
        events = client.run("Begin.")
        messages = [await anext(events)]
        await proxy.cut.wait()
        gate.let_go.set()
        messages += [event async for event in events]
    assert messages.count(ArtifactTexts(("A result.", RESULT))) == 1
    assert messages[-1] == Final("completed", "Done.")
    assert sum(isinstance(event, Final) for event in messages) == 1


async def test_a_judge_that_stays_unreachable_is_an_error() -> None:
    gate = Gate()
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(our_agent(gate)))
        proxy = await stack.enter_async_context(cutting_proxy(url, after=b"Begun.", for_good=True))
        client = await stack.enter_async_context(AssessmentClient(proxy.url, reconnect_s=(0.01, 0.01)))
        with pytest.raises(ParticipantError, match="connection"):
            async for _ in client.run("Begin."):
                pass


async def test_a_stopping_server_notifies_its_clients_and_lets_the_work_clean_up() -> None:
    gate = Gate()
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(our_agent(gate)))
        async with AssessmentClient(url) as client:
            events = client.run("Begin.")
            await anext(events)
            stopping = asyncio.create_task(stack.aclose())
            messages = [event async for event in events]
            await stopping
    assert gate.was_cancelled
    assert messages == [Final("failed", "The agent was stopped before the work was done.")]


SERVER = """
import asyncio, sys
from pathlib import Path
from helpers.a2a.agents import our_agent
from shared.a2a.serving import run_server

class Agent:
    async def execute(self, turn, sink):
        if "finish" in turn.text:
            await sink.artifact("results", ["kept"])
            await sink.complete("Done.")
        else:
            sink.update("Begun.")
            await asyncio.Event().wait()

app = our_agent(Agent(), task_db=Path(sys.argv[2]))
run_server(app, "127.0.0.1", int(sys.argv[1]), before_shutdown=app.state.stop)
print("ended cleanly")
"""


@pytest.fixture
def port() -> int:
    return free_port()


@contextlib.asynccontextmanager
async def server_process(port: int, task_db: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER,
        str(port),
        str(task_db),
        env={"PYTHONPATH": f"{SRC}:{SRC.parent / 'tests'}"},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                async with httpx.AsyncClient(trust_env=False) as client:
                    await client.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json")
                    break
            assert process.returncode is None, "the server ended"
            await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
async def test_after_a_kill_finished_tasks_are_kept_and_unfinished_ones_marked_failed(
    tmp_path: Path, port: int
) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        async with server_process(port, tmp_path / "deep" / "tasks.sqlite") as process:
            done = await rpc(client, "SendMessage", message_10("finish"))
            task = await rpc(client, "SendMessage", message_10("hang", configuration={"returnImmediately": True}))
            process.kill()
            await process.wait()
        async with server_process(port, tmp_path / "deep" / "tasks.sqlite") as process:
            stored = await rpc(client, "GetTask", {"id": done["result"]["task"]["id"]})
            orphan = await rpc(client, "GetTask", {"id": task["result"]["task"]["id"]})
            again = await rpc(client, "SubscribeToTask", {"id": task["result"]["task"]["id"]})
    assert stored["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert stored["result"]["artifacts"][0]["parts"] == [{"text": "kept"}]
    assert orphan["result"]["status"]["state"] == "TASK_STATE_FAILED"
    assert "restarted" in orphan["result"]["status"]["message"]["parts"][0]["text"]
    assert "terminal" in again["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_cleanly(number: int, tmp_path: Path, port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    async with server_process(port, tmp_path / "tasks.sqlite") as process, AssessmentClient(url) as client:
        events = client.run("hang")
        assert await anext(events) == StatusText("Begun.")
        process.send_signal(number)
        assert [event async for event in events][-1].state == "failed"  # type: ignore[union-attr]
        assert await process.wait() == 0
        assert process.stdout is not None
        assert b"ended cleanly" in await process.stdout.read()


# --- bounds -----------------------------------------------------------------------------------------------------------


async def test_the_history_of_a_task_stays_short_and_contains_no_files() -> None:
    is_reached = asyncio.Event()

    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        for number in range(100):
            sink.update(f"Step {number}.")
            # Otherwise it could be joined with the next one.
            await is_reached.wait()
            is_reached.clear()
        await sink.complete("Done.")

    async with http_to(Agent(work), update_interval_s=0.0) as client:
        params = message_10("Begin.", image=JPEG)
        body = {"jsonrpc": "2.0", "id": "1", "method": "SendStreamingMessage", "params": params}
        async with client.stream("POST", "/", json=body, headers={"A2A-Version": "1.0"}) as stream:
            lines = stream.aiter_lines()
            task_id = json.loads((await anext(lines))[6:])["result"]["task"]["id"]
            async for line in lines:
                if "Step " in line:
                    is_reached.set()
        answer = await rpc(client, "GetTask", {"id": task_id})
    task = answer["result"]
    texts = [part["text"] for message in task["history"] for part in message["parts"]]
    assert texts == ["Begin.", *(f"Step {number}." for number in range(81, 100))]
    assert task["status"]["message"]["parts"] == [{"text": "Done."}]


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "sqlite"])
async def test_only_the_newest_finished_tasks_are_kept(in_memory: bool, tmp_path: Path) -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        await sink.complete("Done.")

    task_db = None if in_memory else tmp_path / "tasks.sqlite"
    async with http_to(Agent(work), task_db=task_db, max_finished_tasks=3) as client:
        task = [await rpc(client, "SendMessage", message_10("Begin.")) for _ in range(5)]
        answers = [await rpc(client, "GetTask", {"id": answer["result"]["task"]["id"]}) for answer in task]
    assert ["result" in answer for answer in answers] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("max_bytes", "expected"), [(10_000, [False, False, True, True]), (1, [False, False, False, True])]
)
async def test_finished_tasks_are_kept_as_far_as_there_is_room_also_after_a_restart(
    max_bytes: int, expected: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(turn: AgentMessage, sink: TaskSink) -> None:
        await sink.artifact("results", ["x" * 4_000])
        await sink.complete("Done.")

    task_db = tmp_path / "tasks.sqlite"
    async with http_to(Agent(work), task_db=task_db) as client:
        ids = [(await rpc(client, "SendMessage", message_10("Go.")))["result"]["task"]["id"] for _ in range(3)]
    monkeypatch.setattr("shared.a2a.server._PAGE", 2)
    monkeypatch.setattr("shared.a2a.server._MAX_FINISHED_BYTES", max_bytes)
    async with http_to(Agent(work), task_db=task_db) as client:
        ids.append((await rpc(client, "SendMessage", message_10("Go.")))["result"]["task"]["id"])
        assert ["result" in await rpc(client, "GetTask", {"id": task_id}) for task_id in ids] == expected


@pytest.mark.slow
async def test_turns_leave_no_objects_in_memory() -> None:
    def live_objects() -> int:
        gc.collect()
        remaining = ("ActiveTask", "EventQueueSource", "TaskSink", "Turn", "Task")
        return sum(
            type(each).__name__ in remaining and "asyncio" not in type(each).__module__ for each in gc.get_objects()
        )

    async with http_to(echo) as client:
        await rpc(client, "SendMessage", message_10("Hello", image=JPEG))
        before = live_objects()
        for _ in range(50):
            await rpc(client, "SendMessage", message_10("Hello", image=JPEG))
        assert live_objects() <= before + 5


async def test_a_task_database_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "not-a-database").write_text("just text, and more of it than a header")
    for path in (tmp_path / "not-a-database", tmp_path, tmp_path / "not-a-database" / "tasks.sqlite"):
        with pytest.raises(ConfigError, match="cannot keep tasks there"):
            our_agent(echo, task_db=path)


def test_a_taken_port_is_refused_at_once() -> None:
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("0.0.0.0", "http://127.0.0.1:80/"),
        ("::1", "http://[::1]:80/"),
        ("judge.example", "http://judge.example:80/"),
    ],
)
def test_the_default_address_can_be_dialled_locally(host: str, url: str) -> None:
    assert address_of(host, 80) == url
