"""Mutated A2A envelopes and agent cards, and the judge's real client that reads them over loopback HTTP.

Every mutation starts from a valid document, so that most of it is decoded before the damage is met. Documents are
reproducible: the same seed gives the same bytes.
"""

import asyncio
import copy
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from shared.a2a.client import ParticipantClient
from shared.errors import ParticipantError, WabeError

CONTEXT = "c"
PROTOCOLS = ("1.0", "0.3", "http+json")
REPLY_TIMEOUT_S = 2.0
_BINDINGS = {"1.0": ("JSONRPC", "1.0"), "0.3": ("JSONRPC", "0.3"), "http+json": ("HTTP+JSON", "1.0")}


def raw(text: str) -> str:
    """Stands for a JSON text that Python's encoder would not write."""
    return f"@raw:{text}"


HOSTILE: tuple[Any, ...] = (
    "\ud800",
    "a\udfffb",
    "\x00",
    "x" * 100_000,
    "\u202e\u2028\U000e0041",
    "not/base64!",
    "AAA",
    "TASK_STATE_NONSENSE",
    "ROLE_NOBODY",
    "2024-99-99T99:99:99Z",
    "9" * 400,
    "NaN",
    10**400,
    -(10**400),
    2**63,
    2**31,
    -1,
    1.5,
    raw("1e999"),
    raw("-1e999"),
    raw("1" * 5_000),
    raw("NaN"),
    raw("-Infinity"),
    None,
    True,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"\ud800": "\udc00"},
    {"@type": "type.googleapis.com/google.protobuf.Any", "value": {}},
    {"@type": "\ud800"},
    {"fields": {"a": {"numberValue": 1}}},
    raw("[" * 150 + "]" * 150),
    raw("[" * 5_000 + "]" * 5_000),
    raw('{"a":' * 150 + "1" + "}" * 150),
    raw('{"a":1,"a":2}'),
)


def reply_documents(protocol: str) -> list[dict[str, Any]]:
    """Valid results of one call: a message, and tasks that answer in each place where a reply may stand."""
    return [_message_03("an answer"), *_tasks_03()] if protocol == "0.3" else _results_10()


def _results_10() -> list[dict[str, Any]]:
    parts = [
        {"text": "an answer", "metadata": {"n": 1}},
        {"data": {"n": 1.5, "list": [1, "a", None]}, "mediaType": "application/json"},
        {"raw": "AAAA", "mediaType": "image/png", "filename": "a.png"},
        {"url": "http://127.0.0.1:1/a"},
    ]
    message = {
        "messageId": "m",
        "contextId": CONTEXT,
        "taskId": "t",
        "role": "ROLE_AGENT",
        "parts": parts,
        "metadata": {"usage": {"tokens": 7}},
        "extensions": ["https://example.org/x"],
        "referenceTaskIds": ["r"],
    }
    status = {"state": "TASK_STATE_COMPLETED", "message": message, "timestamp": "2026-01-02T03:04:05.678Z"}
    artifact = {"artifactId": "a", "name": "n", "description": "d", "parts": parts, "metadata": {"k": "v"}}
    task = {"id": "t", "contextId": CONTEXT, "status": status, "artifacts": [artifact], "metadata": {"k": [1]}}
    bare = {"state": "TASK_STATE_COMPLETED"}
    return [
        {"message": message},
        {"task": task},
        {"task": {**task, "status": {**status, "state": "TASK_STATE_INPUT_REQUIRED"}}},
        {"task": {"id": "t", "contextId": CONTEXT, "status": bare, "history": [message]}},
    ]


def _message_03(text: str) -> dict[str, Any]:
    return {
        "kind": "message",
        "messageId": "m",
        "contextId": CONTEXT,
        "taskId": "t",
        "role": "agent",
        "parts": [
            {"kind": "text", "text": text, "metadata": {"n": 1}},
            {"kind": "data", "data": {"n": 1.5, "list": [1, "a", None]}},
            {"kind": "file", "file": {"bytes": "AAAA", "mimeType": "image/png", "name": "a.png"}},
            {"kind": "file", "file": {"uri": "http://127.0.0.1:1/a"}},
        ],
        "metadata": {"usage": {"tokens": 7}},
        "extensions": ["https://example.org/x"],
        "referenceTaskIds": ["r"],
    }


def _tasks_03() -> list[dict[str, Any]]:
    message = _message_03("an answer")
    status = {"state": "completed", "message": message, "timestamp": "2026-01-02T03:04:05.678Z"}
    artifact = {"artifactId": "a", "name": "n", "parts": message["parts"], "metadata": {"k": "v"}}
    task = {"kind": "task", "id": "t", "contextId": CONTEXT, "status": status, "artifacts": [artifact]}
    return [task, {**task, "status": {"state": "completed"}, "artifacts": [], "history": [message]}]


def card_document(protocol: str, url: str = "http://127.0.0.1:1/") -> dict[str, Any]:
    """A valid card with every member that the SDK knows."""
    flows = {"clientCredentials": {"tokenUrl": "https://example.org/t", "scopes": {"a": "b"}}}
    card: dict[str, Any] = {
        "name": "agent",
        "description": "Is tested.",
        "version": "1",
        "provider": {"organization": "o", "url": "https://example.org/"},
        "documentationUrl": "https://example.org/d",
        "iconUrl": "https://example.org/i",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extensions": [{"uri": "https://example.org/x", "required": False, "params": {"n": 1}}],
        },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"], "examples": ["e"]}],
        "signatures": [{"protected": "e30", "signature": "AAAA", "header": {"kid": "1"}}],
    }
    if protocol == "0.3":
        old = {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        schemes: dict[str, Any] = {
            "key": {"type": "apiKey", "in": "header", "name": "X"},
            "o": {"type": "oauth2", "flows": flows},
        }
        interfaces = [{"url": url, "transport": "JSONRPC"}, {"url": url, "transport": "HTTP+JSON"}]
        return {
            **card,
            **old,
            "additionalInterfaces": interfaces,
            "securitySchemes": schemes,
            "security": [{"key": []}, {"o": ["a"]}],
            "supportsAuthenticatedExtendedCard": False,
        }
    binding, version = _BINDINGS[protocol]
    return {
        **card,
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}],
        "securitySchemes": {
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X"}},
            "o": {"oauth2SecurityScheme": {"flows": flows}},
        },
        "securityRequirements": [{"schemes": {"key": {"list": []}}}],
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every member of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with `value` at `path`."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def encode(document: Any) -> bytes:
    """As JSON, with `raw` texts as they are."""
    text = json.dumps(document)
    for value in HOSTILE:
        if isinstance(value, str) and value.startswith(raw("")):
            text = text.replace(json.dumps(value), value.removeprefix(raw("")))
    return text.encode()


def mutated(document: Any, dice: random.Random) -> bytes:
    """The document with one to three changes to its tree, and now and then one to its bytes."""
    for _ in range(dice.randrange(1, 4)):
        document = _changed(document, dice)
    data = encode(document)
    return _damaged(data, dice) if dice.random() < 0.1 else data


def _changed(document: Any, dice: random.Random) -> Any:
    path = dice.choice(list(places(document)))
    parent: Any = document
    for key in path[:-1]:
        parent = parent[key]
    match dice.randrange(8):
        case 0:  # a member is missing
            changed = replaced(document, path, None)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            del inner[path[-1]]
            return changed if any(True for _ in places(changed)) else document
        case 1 if isinstance(parent, dict):  # an unknown member, or another one of a choice of which one may be set
            extra = dice.choice(["zzz", "\ud800", "text", "raw", "url", "data", "message", "task", "kind", "header"])
            return replaced(document, (*path[:-1], extra), dice.choice(HOSTILE))
        case 2:  # what belongs elsewhere
            source: Any = document
            for key in dice.choice(list(places(document))):
                source = source[key]
            return replaced(document, path, copy.deepcopy(source))
        case 3:  # the right value in the wrong shape
            return replaced(document, path, dice.choice([[parent[path[-1]]], {"value": parent[path[-1]]}]))
        case 4 if isinstance(parent, list):  # many of them
            return replaced(document, path[:-1] or path, parent * dice.choice([2, 50])) if path[:-1] else document
        case _:
            return replaced(document, path, dice.choice(HOSTILE))


def _damaged(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    match dice.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + dice.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\n"]) + data[at:]
        case 2:
            return data.decode("utf-8", "replace").encode(dice.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig"]))
        case 3:
            return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
        case 4:
            return b"[" * dice.choice([100, 5_000, 200_000])
    return data.replace(b"{", b'{"id":7,"kind":"message","messageId":"\\ud800",', 1)


def envelopes(protocol: str, count: int, seed: int = 1, *, polled: bool = False) -> Iterator[bytes]:
    """Bodies of answers to a message or, with `polled`, to the question how the task is getting on."""
    dice = random.Random(f"{protocol}-{polled}-{seed}")
    documents = reply_documents(protocol)
    if polled:
        documents = [
            results for each in documents if (results := each if each.get("kind") == "task" else each.get("task"))
        ]
    for _ in range(count):
        yield mutated(answer(protocol, dice.choice(documents)), dice)


def answer(protocol: str, result: Any) -> dict[str, Any]:
    """The whole body that carries a result."""
    body: dict[str, Any] = result if protocol == "http+json" else in_envelope(result)
    return body


def in_envelope(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": result}


def working(protocol: str) -> bytes:
    """A valid answer to a message: a task that is being worked on."""
    if protocol == "0.3":
        return encode(in_envelope({**_tasks_03()[1], "status": {"state": "working"}, "history": []}))
    task = {"id": "t", "contextId": CONTEXT, "status": {"state": "TASK_STATE_WORKING"}}
    return encode(answer(protocol, {"task": task}))


def cards(count: int, seed: int = 1) -> Iterator[tuple[str, bytes]]:
    """Bodies of cards, each with the protocol that it offers."""
    dice = random.Random(f"card-{seed}")
    for number in range(count):
        protocol = PROTOCOLS[number % len(PROTOCOLS)]
        yield protocol, mutated(card_document(protocol), dice)


class BodyAgent:
    """Serves `card`, answers every message with `reply` and every other call with `polled`."""

    def __init__(self) -> None:
        self.card = self.reply = self.polled = b""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                match = re.search(rb"(?i)content-length: (\d+)", head)
                request = head + await reader.readexactly(int(match[1]) if match else 0)
                is_message = any(word in request for word in (b'"SendMessage"', b'"message/send"', b"/message:send"))
                body = self.card if b"/.well-known/" in head else self.reply if is_message else self.polled
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + body
                )
                await writer.drain()
        writer.close()


@asynccontextmanager
async def body_agent(protocol: str = "1.0") -> AsyncIterator[BodyAgent]:
    """A `BodyAgent` on loopback, at first with a valid card and a valid reply."""
    agent = BodyAgent()
    server = await asyncio.start_server(agent.serve, "127.0.0.1", 0, limit=64_000_000)
    agent.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    agent.card = encode(card_document(protocol))
    agent.reply = encode(answer(protocol, reply_documents(protocol)[0]))
    try:
        yield agent
    finally:
        server.close()


def outcome_of(error: Exception) -> str:
    """`participant` for its error, which is scored 0. Anything else would abort the task."""
    if isinstance(error, ParticipantError):
        return f"participant: {type(error).__name__}"
    return (
        f"{error.blame}: {type(error).__name__}" if isinstance(error, WabeError) else f"RAISED {type(error).__name__}"
    )


async def outcomes_of_envelopes(protocol: str, bodies: Iterator[bytes], *, polled: bool = False) -> Counter[str]:
    """What the judge's client makes of each body, as the answer to a message or of a task that is asked for again."""
    counts = Counter[str]()

    async def read_some() -> None:
        async with (
            body_agent(protocol) as agent,
            ParticipantClient(agent.url, reply_timeout_s=REPLY_TIMEOUT_S) as client,
        ):
            for body in bodies:
                agent.reply, agent.polled = (working(protocol), body) if polled else (body, body)
                try:
                    assert isinstance(await client.send("What now?", context_id=CONTEXT), str)
                    counts["reply"] += 1
                except Exception as error:
                    counts[outcome_of(error)] += 1

    # The client waits before it asks again.
    await asyncio.gather(*(read_some() for _ in range(20 if polled else 1)))
    return counts


async def outcomes_of_cards(bodies: Iterator[tuple[str, bytes]]) -> Counter[str]:
    """What the judge's client makes of each card, and where it takes one, of a first call."""
    counts = Counter[str]()
    async with body_agent() as agent:
        for protocol, agent.card in bodies:
            agent.reply = encode(answer(protocol, reply_documents(protocol)[0]))
            try:
                async with ParticipantClient(agent.url, reply_timeout_s=REPLY_TIMEOUT_S) as client:
                    await client.send("What now?", context_id=CONTEXT)
                counts["reply"] += 1
            except Exception as error:
                counts[outcome_of(error)] += 1
    return counts


def faults(counts: Counter[str]) -> Counter[str]:
    """Outcomes that a participant must not be able to cause."""
    return Counter({name: count for name, count in counts.items() if not name.startswith(("reply", "participant"))})
