"""Agents on loopback for tests of the A2A edges: ours, and others of every shape."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from helpers.paths import ROOT
from shared.a2a.client import ParticipantClient
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import listen, serve_app
from shared.a2a.tasks import TextExecutor, TextHandler

SRC = ROOT / "src"
SKILL = Skill(id="test", name="Test", description="Is tested.", tags=("test",))
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 261
Answer = Callable[[dict[str, Any]], Any]
CONTEXT = "episode-1"


@contextlib.asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """The application on loopback, by default on a free port; gives its base URL."""
    sock = listen("127.0.0.1", port)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    stop = getattr(getattr(app, "state", None), "stop", None)
    task = asyncio.create_task(serve_app(app, sock, before_shutdown=stop))
    try:
        yield url
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def our_agent(agent: TextExecutor | TextHandler, **options: Any) -> Starlette:
    """One of our agents, with what each of them needs."""
    options = {"card_url": "http://agent.invalid/", "update_interval_s": 0.01, **options}
    return build_app(agent, name="test agent", description="Is tested.", version="1", skills=[SKILL], **options)


def card_10(url: str = "http://agent.invalid/", binding: str = "JSONRPC") -> dict[str, Any]:
    return {
        "name": "foreign agent",
        "description": "Speaks 1.0.",
        "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }


def card_03(url: str = "http://agent.invalid/") -> dict[str, Any]:
    return {
        "name": "old agent",
        "description": "Speaks 0.3.",
        "version": "1",
        "url": url,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }


class ForeignAgent:
    """An agent that answers what a test says; `requests` are the JSON-RPC bodies it was sent.

    `answer` maps a request's body to the `result`, or to a whole `Response`.
    """

    def __init__(
        self, answer: Answer, card: Any = None, *, path: str = "/", card_path: str = "/.well-known/agent-card.json"
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._answer = answer
        self._card = card_10() if card is None else card
        self.app = Starlette(
            routes=[Route(card_path, self._serve_card), Route(path, self._serve_rpc, methods=["POST"])]
        )

    async def _serve_card(self, _: Request) -> Response:
        return self._card if isinstance(self._card, Response) else JSONResponse(self._card)

    async def _serve_rpc(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        answer = self._answer(body)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, Response):
            return answer
        return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "result": answer})


@contextlib.asynccontextmanager
async def talking_to(agent: ForeignAgent, **options: Any) -> AsyncIterator[ParticipantClient]:
    """The judge's client for the agent."""
    async with served(agent.app) as url, ParticipantClient(url, **options) as client:
        yield client


async def reply_of(answer: Answer, card: Any = None, **options: Any) -> str:
    """What the judge's client reads from an agent that answers so."""
    async with talking_to(ForeignAgent(answer, card), **options) as client:
        return await client.send("What now?", image=JPEG, context_id=CONTEXT)


def sent_message(body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = body["params"]["message"]
    return message


def message_10(body: dict[str, Any], text: str, **changes: Any) -> dict[str, Any]:
    """A 1.0 reply to `body` as a message."""
    message = {
        "messageId": "m1",
        "role": "ROLE_AGENT",
        "contextId": sent_message(body)["contextId"],
        "parts": [{"text": text}],
    }
    return {"message": message | changes}


def task_10(context_id: str, state: str, **changes: Any) -> dict[str, Any]:
    """A 1.0 task; `text` stands in its status."""
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if (text := changes.pop("text", None)) is not None:
        status["message"] = {"messageId": "m2", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"id": "t1", "contextId": context_id, "status": status, **changes}


def task_03(context_id: str, state: str, **changes: Any) -> dict[str, Any]:
    """A 0.3 task; `text` stands in its status."""
    status: dict[str, Any] = {"state": state}
    if (text := changes.pop("text", None)) is not None:
        status["message"] = message_03(context_id, text)
    return {"kind": "task", "id": "t1", "contextId": context_id, "status": status, **changes}


def message_03(context_id: str, text: str, role: str = "agent") -> dict[str, Any]:
    return {
        "kind": "message",
        "messageId": "m3",
        "role": role,
        "contextId": context_id,
        "parts": [{"kind": "text", "text": text}],
    }


@contextlib.asynccontextmanager
async def tcp_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server that speaks whatever `handle` writes; a client that hangs up is its daily bread."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await handle(reader, writer)
        writer.close()
        # Else a handler that a test's end cuts short leaves its socket to a later test.
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


class CuttingProxy:
    """Where a cutting proxy is, and when it has cut."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cut = asyncio.Event()


@contextlib.asynccontextmanager
async def cutting_proxy(target: str, *, after: bytes, for_good: bool = False) -> AsyncIterator[CuttingProxy]:
    """Passes bytes on to `target`; cuts the connection after bytes that hold `after`, once or for good."""
    proxy = CuttingProxy("")
    host, port = target.removeprefix("http://").split(":")

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watch: bool) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
            if watch and after in data and not proxy.cut.is_set():
                proxy.cut.set()
                raise ConnectionAbortedError

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if for_good and proxy.cut.is_set():
            return
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        pumps = [
            asyncio.create_task(pump(reader, there_writer, False)),
            asyncio.create_task(pump(there_reader, writer, True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            there_writer.close()

    async with tcp_server(handle) as url:
        proxy.url = url
        yield proxy
