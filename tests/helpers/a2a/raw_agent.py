"""A participant below the protocol: the right card, and then any bytes at all."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RawRequest:
    """One call: the JSON-RPC request, its number (from 0), and the connection."""

    body: dict[str, Any]
    number: int
    writer: asyncio.StreamWriter

    @property
    def text(self) -> str:
        parts = self.body["params"]["message"]["parts"]
        return "\n".join(part["text"] for part in parts if "text" in part)

    @property
    def context_id(self) -> str:
        return str(self.body["params"]["message"]["contextId"])


Answer = Callable[[RawRequest], bytes | Awaitable[bytes | None] | None]


def http(body: bytes, kind: str = "application/json", status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def message(request: RawRequest, text: str, **changes: Any) -> bytes:
    """A well-formed A2A answer; `changes` are made to the message."""
    reply_message = {
        "messageId": "m",
        "role": "ROLE_AGENT",
        "parts": [{"text": text}],
        "contextId": request.context_id,
        **changes,
    }
    return http(json.dumps({"jsonrpc": "2.0", "id": request.body["id"], "result": {"message": reply_message}}).encode())


class RawAgent:
    """Serves the card; hands every call to `answer`, which gives the bytes or writes them itself (`None`)."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self.calls = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._one(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if head.startswith("GET "):
            writer.write(http(json.dumps(self._card()).encode()))
            await writer.drain()
            return
        length = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        body = json.loads(await reader.readexactly(length))
        number, self.calls = self.calls, self.calls + 1
        answer = self._answer(RawRequest(body, number, writer))
        data = await answer if asyncio.iscoroutine(answer) else answer
        if isinstance(data, bytes):
            writer.write(data)
            await writer.drain()

    def _card(self) -> dict[str, Any]:
        return {
            "name": "raw",
            "description": "raw",
            "version": "1",
            "supportedInterfaces": [{"url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["s"]}],
        }

    def vanish(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=64_000_000)
        self.port = self._server.sockets[0].getsockname()[1]


@asynccontextmanager
async def raw_agent(answer: Answer) -> AsyncIterator[RawAgent]:
    """A raw participant while the body runs."""
    agent = RawAgent(answer)
    await agent.start()
    try:
        yield agent
    finally:
        agent.vanish()
