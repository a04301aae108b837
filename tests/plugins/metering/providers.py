"""A server that speaks the three wire formats, streamed and not, and logs the tokens that it reports for each call.

The model's name says how a call is answered: `chat`, `responses`, `embeddings`, `messages` or `generate`; `stream`;
`silent` (reports no tokens), `broken` (breaks off), `slow` (waits between pieces), `refused` (429).
"""

import asyncio
import contextlib
import gzip
import json
import random
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from judge.results.metering import Tokens
from shared.a2a.serving import listen

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
    "messages": "/v1/messages",
    "generate": "/v1beta/models/{model}:generateContent",
}
PIECES = 5


@dataclass
class Received:
    """One request as the provider got it."""

    path: str
    query: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Provider:
    """The server; `reported` are the tokens of each call by the model's name, `None` where it reports none."""

    seed: int = 0
    pause_s: float = 0.0
    reported: dict[str, Tokens | None] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    answered: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._socket = listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._app, interface="asgi3", log_level="critical", lifespan="off", ws="none", timeout_keep_alive=60
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        self.received.append(Received(scope["path"], scope["query_string"].decode(), scope["headers"], body))
        document = json.loads(body or b"{}")
        model = str(document.get("model") or scope["path"].rpartition("/models/")[2].partition(":")[0])
        if "refused" in model:
            await _send(send, 429, b'{"error": {"message": "slow down"}}')
            return
        tokens = self._tokens(model)
        is_silent = "silent" in model or (
            document.get("stream") and "include" not in json.dumps(document) and "chat" in model
        )
        self.reported[model] = None if is_silent or "broken" in model else tokens
        words = [f"piece {number} " for number in range(PIECES)]
        if "stream" in model:
            await self._stream(send, model, list(_events(model, words, None if is_silent else tokens)))
            return
        content = json.dumps(_plain(model, "".join(words), None if is_silent else tokens)).encode()
        self.answered[model] = content
        is_packed = b"gzip" in dict(scope["headers"]).get(b"accept-encoding", b"") and "packed" in model
        headers = [(b"content-encoding", b"gzip")] if is_packed else []
        await _send(send, 200, gzip.compress(content) if is_packed else content, headers)

    async def _stream(self, send: Send, model: str, pieces: list[bytes]) -> None:
        self.answered[model] = b"".join(pieces)
        kind = b"application/json" if "list" in model else b"text/event-stream; charset=utf-8"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for number, piece in enumerate(pieces):
            if "broken" in model and number == len(pieces) // 2:
                raise ConnectionAbortedError("as asked")
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(self.pause_s if "slow" in model else 0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _tokens(self, model: str) -> Tokens:
        draw = random.Random(f"{self.seed} {model}")
        input_tokens, result = draw.randint(1, 9000), draw.randint(1, 900)
        is_embedding = "embeddings" in model
        return Tokens(
            input=input_tokens,
            output=0 if is_embedding else result,
            cached=0 if is_embedding else draw.randint(0, input_tokens // 2),
            written=draw.randint(0, input_tokens // 4) if "messages" in model else 0,
            # This API does not say how many of its tokens are thoughts.
            reasoning=0 if "messages" in model or is_embedding else draw.randint(0, result),
        )


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    named = [(b"content-type", b"application/json"), (b"x-request-id", b"r1"), *(headers or [])]
    named.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})


def _usage(model: str, tokens: Tokens | None) -> dict[str, Any]:
    """The provider's own counts."""
    if tokens is None:
        return {}
    if "chat" in model:
        return {
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.input + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
            "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
        }
    if "responses" in model:
        return {
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        }
    if "embeddings" in model:
        return {"prompt_tokens": tokens.input, "total_tokens": tokens.input}
    if "messages" in model:
        return {
            "input_tokens": tokens.input - tokens.cached - tokens.written,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": tokens.written,
            "output_tokens": tokens.output,
        }
    return {
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "thoughtsTokenCount": tokens.reasoning,
        "cachedContentTokenCount": tokens.cached,
        "totalTokenCount": tokens.input + tokens.output,
    }


def _plain(model: str, text: str, tokens: Tokens | None) -> dict[str, Any]:
    usage = _usage(model, tokens)
    if "chat" in model:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {"id": "c", "object": "chat.completion", "model": model, "choices": [choice]} | (
            {"usage": usage} if usage else {}
        )
    if "responses" in model:
        return {"id": "r", "object": "response", "model": model, "status": "completed", "output": [], "usage": usage}
    if "embeddings" in model:
        return {"object": "list", "model": model, "data": [{"embedding": [0.5]}], "usage": usage}
    if "messages" in model:
        return {"type": "message", "model": model, "content": [{"type": "text", "text": text}], "usage": usage}
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": model} | ({"usageMetadata": usage} if usage else {})


def _events(model: str, words: list[str], tokens: Tokens | None) -> Iterator[bytes]:
    usage = _usage(model, tokens)
    if "chat" in model:
        for word in words:
            yield _event({"model": model, "choices": [{"delta": {"content": word}}], "usage": None})
        if usage:
            yield _event({"model": model, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"
    elif "responses" in model:
        yield _event({"type": "response.created", "response": {"model": model, "usage": None}})
        for word in words:
            yield _event({"type": "response.output_text.delta", "delta": word})
        yield _event({"type": "response.completed", "response": {"model": model, "usage": usage or None}})
    elif "messages" in model:
        first = {**usage, "output_tokens": 1} if usage else None
        yield _event({"type": "message_start", "message": {"model": model, "usage": first}}, "message_start")
        for word in words:
            yield _event({"type": "content_block_delta", "delta": {"text": word}}, "content_block_delta")
        last = {"output_tokens": usage["output_tokens"]} if usage else None
        yield _event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}, "message_delta")
        yield _event({"type": "message_stop"}, "message_stop")
    else:
        pieces = [_plain(model, word, None) for word in words]
        for piece in pieces[:-1]:
            del piece["candidates"][0]["finishReason"]
        pieces[-1] |= {"usageMetadata": usage} if usage else {}
        if "list" in model:
            yield b"[" + json.dumps(pieces[0]).encode()
            yield from (b",\r\n" + json.dumps(piece).encode() for piece in pieces[1:])
            yield b"]"
        else:
            yield from map(_event, pieces)


def _event(value: dict[str, Any], name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


@contextlib.asynccontextmanager
async def providing(**options: Any) -> AsyncIterator[Provider]:
    """A server while the body runs."""
    server = Provider(**options)
    server.start()
    try:
        yield server
    finally:
        await asyncio.to_thread(server.stop)


def request_of(model: str) -> tuple[str, dict[str, Any]]:
    """The path, with its query, and the body of a call to such a model."""
    kind = next(name for name in PATHS if name in model)
    is_streamed = "stream" in model
    path = PATHS[kind].format(model=model)
    if kind == "generate":
        if is_streamed:
            path = path.replace(":generateContent", ":streamGenerateContent") + ("" if "list" in model else "?alt=sse")
        return path, {"contents": [{"parts": [{"text": "secret words"}]}]}
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "secret words"}]}
    if is_streamed:
        body |= {"stream": True}
        body |= {"stream_options": {"include_usage": True}} if "included" in model else {}
    return path, body
