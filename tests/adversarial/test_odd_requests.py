"""Odd requests to our A2A servers: each is answered as the client's mistake, and leaves plain lines in the log."""

import io
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle, product
from typing import Any

import httpx
import pytest

from helpers.a2a.agents import our_agent, served
from helpers.a2a.envelopes import encode, places, raw, replaced
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge
from shared.a2a.tasks import AgentMessage, TaskSink
from shared.logs import BoundedHandler, CleanRecords

MESSAGE_10 = {
    "messageId": "m",
    "role": "ROLE_USER",
    "contextId": "c",
    "parts": [
        {"text": "Hi", "metadata": {"k": "v"}, "mediaType": "a/b", "filename": "f"},
        {"data": {"a": 1}},
        {"raw": "AAAA"},
        {"url": "http://127.0.0.1:1/"},
    ],
    "metadata": {"k": "v"},
    "extensions": ["e"],
    "referenceTaskIds": ["r"],
}
MESSAGE_03 = {
    "kind": "message",
    "messageId": "m",
    "role": "user",
    "contextId": "c",
    "parts": [
        {"kind": "text", "text": "Hi", "metadata": {"k": "v"}},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "file", "file": {"bytes": "AAAA", "mimeType": "a/b", "name": "n"}},
    ],
    "metadata": {"k": "v"},
    "extensions": ["e"],
    "referenceTaskIds": ["r"],
}
SEND_10 = {"message": MESSAGE_10, "configuration": {"acceptedOutputModes": ["t"], "historyLength": 1}, "metadata": {}}
SEND_03 = {"message": MESSAGE_03, "configuration": {"acceptedOutputModes": ["t"], "historyLength": 1}, "metadata": {}}
TASK = {"id": "t", "historyLength": 1, "metadata": {"k": "v"}}
CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "SendMessage": ("1.0", "/", SEND_10),
    "SendStreamingMessage": ("1.0", "/", SEND_10),
    "GetTask": ("1.0", "/", TASK),
    "CancelTask": ("1.0", "/", TASK),
    "SubscribeToTask": ("1.0", "/", TASK),
    "ListTasks": ("1.0", "/", {"contextId": "c", "pageToken": "x", "pageSize": 1}),
    "message/send": ("0.3", "/", SEND_03),
    "message/stream": ("0.3", "/", SEND_03),
    "tasks/get": ("0.3", "/", TASK),
    "tasks/cancel": ("0.3", "/", TASK),
    "tasks/resubscribe": ("0.3", "/", TASK),
    "/message:send": ("1.0", "/message:send", SEND_10),
    "/message:stream": ("1.0", "/message:stream", SEND_10),
    "/v1/message:send": ("0.3", "/v1/message:send", SEND_03),
}
KINDS = ("participant", "judge")
ODD_TEXTS: tuple[Any, ...] = ("\ud800", "a\udfffb", "\udc00\ud800", {"\ud800": "v"}, {"k": {"\udfff": 1}}, ["\ud800"])
ODD_VALUES: tuple[Any, ...] = (
    "\x00",
    "\x1b[2J\r\nERROR forged",
    "\u202e\u2028",
    10**400,
    -(2**63) - 1,
    2**64,
    2**63,
    2**31,
    raw("NaN"),
    raw("-Infinity"),
    raw("1e999"),
    raw("1" * 5_000),
    raw("[" * 5_000 + "]" * 5_000),
    "9" * 400,
    1.5,
    None,
    True,
    [],
    {},
    [[]],
    {"": None},
)
IDS: dict[str, Any] = {
    "a lone surrogate": "\ud800",
    "a low surrogate": "\udfff",
    "a surrogate inside": "a\ud800b",
    "surrogates in the wrong order": "\udc00\ud800",
    "400 digits": 10**400,
    "5,000 digits": raw("1" * 5_000),
    "65 bits": 2**64,
    "NaN": raw("NaN"),
    "an infinity": raw("1e999"),
    "a fraction": 1.5,
    "a truth value": True,
    "an object": {"a": 1},
    "an object with a surrogate": {"\ud800": "\ud800"},
    "a list": [1],
    "1 MB": "x" * 1_000_000,
    "30 MB": "x" * 30_000_000,
}


class Agent:
    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        await sink.complete("Done.")


async def answered(turn: AgentMessage) -> str:
    return "an answer"


@asynccontextmanager
async def client_of(kind: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an agent that answers with messages, as participants do, or with tasks, as the judge does."""
    agent = our_agent(answered if kind == "participant" else Agent())
    async with served(agent) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What all loggers of the process write, as in `wabe serve`."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = BoundedHandler(stream)
    handler.addFilter(CleanRecords(()))
    handlers, root.handlers = root.handlers, [handler]
    yield stream
    root.handlers = handlers


def document_of(name: str) -> Any:
    _, path, params = CALLS[name]
    return {"jsonrpc": "2.0", "id": "1", "method": name, "params": params} if path == "/" else params


async def post(client: httpx.AsyncClient, name: str, document: Any) -> tuple[int, Any]:
    """The status and the error code of the answer to a call."""
    version, path, _ = CALLS[name]
    headers = {"Content-Type": "application/json", "A2A-Version": version}
    answer = await client.post(path, content=encode(document), headers=headers)
    assert "Traceback" not in answer.text
    try:
        return answer.status_code, answer.json().get("error", {}).get("code")
    except ValueError:
        # A stream of events.
        return answer.status_code, None


def is_clean(log: io.StringIO) -> bool:
    return all(line.isprintable() and not line.startswith("  | ") for line in log.getvalue().split("\n"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SendMessage", "message/stream"])
async def test_an_odd_id_is_an_invalid_request(kind: str, name: str, log: io.StringIO) -> None:
    async with client_of(kind) as client:
        responses = {what: await post(client, name, {**document_of(name), "id": odd}) for what, odd in IDS.items()}
        after = await post(client, name, document_of(name))
    assert set(responses.values()) == {(400, -32600)}
    assert after == (200, None)
    assert is_clean(log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), each(product(KINDS, CALLS), suite=list(zip(cycle(KINDS), CALLS, strict=False)))
)
async def test_half_a_surrogate_pair_anywhere_is_an_invalid_request(kind: str, name: str, log: io.StringIO) -> None:
    document = document_of(name)
    expected = (400, -32600) if CALLS[name][1] == "/" else (400, 400)
    wrong, count = {}, 0
    async with client_of(kind) as client:
        for path in places(document):
            for odd in ODD_TEXTS:
                count += 1
                if (responses := await post(client, name, replaced(document, path, odd))) != expected:
                    wrong[path, repr(odd)] = responses
    assert wrong == {}
    assert is_clean(log)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", each(CALLS, suite=("SendMessage", "message/stream", "tasks/get", "/message:send", "/v1/message:send"))
)
async def test_no_odd_value_is_an_internal_error(name: str, log: io.StringIO) -> None:
    document, counts = document_of(name), Counter[tuple[int, Any]]()
    async with client_of("participant") as client:
        for path in places(document):
            for odd in ODD_VALUES:
                counts[await post(client, name, replaced(document, path, odd))] += 1
    assert not [status for status, code in counts if status >= 500 or code == -32603]
    assert is_clean(log)


@pytest.mark.parametrize("path", ["/", "/tasks/t", "/message:send"])
@pytest.mark.parametrize(
    "version", [b"9" * 5_000, b"\x9b2J", b"\xff" * 50, b"1.0, 0.3", b"1" * 21], ids=lambda value: repr(value[:8])
)
async def test_an_odd_protocol_version_is_the_clients_mistake(path: str, version: bytes, log: io.StringIO) -> None:
    async with client_of("judge") as client:
        headers = {b"A2A-Version": version, b"Content-Type": b"application/json"}
        method = "GET" if path == "/tasks/t" else "POST"
        answer = await client.request(method, path, content=encode(document_of("SendMessage")), headers=headers)
    assert answer.status_code < 500
    assert "error" in answer.text
    assert is_clean(log)


@pytest.mark.parametrize(
    "query", ["historyLength=" + "9" * 20, "HistoryLength=1e99999999", "A2A-Version=" + "9" * 5_000]
)
@pytest.mark.parametrize("path", ["/tasks/t", "/v1/tasks/t", "/tasks"])
async def test_an_odd_query_is_the_clients_mistake(path: str, query: str, log: io.StringIO) -> None:
    async with client_of("judge") as client:
        version = "0.3" if path.startswith("/v1") else "1.0"
        answer = await client.get(f"{path}?{query}", headers={"A2A-Version": version})
    assert 400 <= answer.status_code < 500
    assert is_clean(log)


LOGGED: dict[str, bytes] = {
    "an escape sequence in the id": encode({"jsonrpc": "2.0", "id": "\x1b[2J\x1b]0;x\x07", "method": "none"}),
    "a forged record in the id": encode({"jsonrpc": "2.0", "id": "1\n2026 ERROR judge: x\r", "method": "none"}),
    "bidi controls in the id": encode({"jsonrpc": "2.0", "id": "\u202eab\u2066", "method": "none"}),
    "an escape sequence in the parameters": encode(
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": ["\x1b[31m\r\nERROR"]}}
    ),
    "an escape sequence in an enumeration": encode(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": {"role": "\x1b[2J\nERROR", "parts": 3}},
        }
    ),
    "an escape sequence in the key of a 0.3 call": encode(
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"\x1b[2J\n": {"\x1b": "\r"}}}
    ),
    "1 MB of text in the parameters": encode(
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": "\x1b" * 1_000_000}}
    ),
    "no JSON": b"\x1b[2J\r\nERROR",
    "no object": b"[]",
}


@pytest.mark.parametrize("what", LOGGED)
async def test_what_a_client_sends_reaches_the_log_in_plain_bounded_lines(
    judge: LiveJudge, what: str, log: io.StringIO
) -> None:
    async with httpx.AsyncClient(base_url=judge.url, trust_env=False, timeout=20) as client:
        for version in ("1.0", "0.3"):
            headers = {"Content-Type": "application/json", "A2A-Version": version}
            assert (await client.post("/", content=LOGGED[what], headers=headers)).status_code < 500
    assert is_clean(log)
    assert len(log.getvalue().splitlines()) <= 6
    assert max(map(len, log.getvalue().splitlines()), default=0) <= 1_100


@pytest.mark.slow
async def test_a_flood_of_bad_requests_is_logged_in_bounds(log: io.StringIO) -> None:
    async with client_of("judge") as client:
        for number in range(1_000):
            call = {"jsonrpc": "2.0", "id": f"{number} {'x' * 900}", "method": "GetTask", "params": {"id": [3]}}
            await client.post("/", json=call, headers={"A2A-Version": "1.0"})
    assert len(log.getvalue()) < 110_000
    assert is_clean(log)
