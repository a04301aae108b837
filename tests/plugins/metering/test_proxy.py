"""The meter passes calls on unchanged, and counts what the provider reports."""

import asyncio
import contextlib
import gzip
import itertools
import json
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from helpers.paths import ROOT
from helpers.ports import free_ports
from judge.plugins.metering.ledger import Ledger
from judge.plugins.metering.program import VARIABLE
from judge.plugins.metering.proxy import Meter, MeterSettings, ProviderRoute
from judge.plugins.metering.reading import AnswerReader
from judge.plugins.metering.wire import Anthropic, Google, OpenAI, WireFormat
from judge.results.metering import Call, Tokens, read_ledger
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


# In this order in the meter's addresses.
FORMATS = ("openai", "anthropic", "gemini")


@dataclass
class Metered:
    """A running meter and its ledger. `process` is its process, if it has one of its own."""

    url: str
    secret: str
    ledger: Path
    process: asyncio.subprocess.Process | None = None

    def address(self, path: str) -> str:
        """The address of a call with this path at its provider."""
        number = 1 if path == "/v1/messages" else 2 if "/models/" in path else 0
        return f"{self.url}/{self.secret}/{number}{path}"

    def calls(self) -> list[Call]:
        return list(read_ledger(self.ledger).calls)

    def by_model(self) -> dict[str, Call]:
        return {str(call.end.model): call for call in self.calls()}


def settings_of(ledger: Path, upstream: str, *, one_slot: bool = False) -> MeterSettings:
    secret = secrets.token_urlsafe(8)
    upstreams = tuple(ProviderRoute(role="white_agent", secret=secret, provider=name, url=upstream) for name in FORMATS)
    other = ProviderRoute(role="other", secret=secrets.token_urlsafe(8), provider="openai", url=upstream)
    return MeterSettings(ledger=str(ledger), upstreams=(*upstreams, other), one_slot=one_slot)


@contextlib.asynccontextmanager
async def metering(ledger: Path, upstream: str, *, one_slot: bool = False) -> AsyncIterator[Metered]:
    """A meter in this process while the body runs."""
    settings = settings_of(ledger, upstream, one_slot=one_slot)
    ledger_file = Ledger(ledger)
    lost: list[OSError] = []
    meter = Meter(settings, ledger_file.write, lost.append)
    config = uvicorn.Config(
        meter, interface="asgi3", log_level="critical", lifespan="off", ws="none", server_header=False
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as sock:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield Metered(f"http://127.0.0.1:{sock.getsockname()[1]}", settings.upstreams[0].secret, ledger)
        finally:
            server.should_exit = server.force_exit = True
            await serving
            await meter.aclose()
            ledger_file.close()


@contextlib.asynccontextmanager
async def metering_process(ledger: Path, upstream: str, port: int) -> AsyncIterator[Metered]:
    """A meter in a process of its own while the body runs, as `wabe run --meter` starts it."""
    settings = settings_of(ledger, upstream)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "judge.plugins.metering.program",
        str(port),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), VARIABLE: settings.model_dump_json()},
    )
    try:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.05)
        yield Metered(f"http://127.0.0.1:{port}", settings.upstreams[0].secret, ledger, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


REPORTED = tuple(
    """
    chat chat-stream-included responses responses-stream embeddings messages messages-stream generate
    generate-stream generate-stream-list
""".split()
)


@contextlib.asynccontextmanager
async def metered_calls(folder: Path) -> AsyncIterator[tuple[Provider, Metered, httpx.AsyncClient]]:
    """Stand-ins for the providers, a meter before them, and a client."""
    async with (
        providing() as provider,
        metering(folder / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
        yield provider, meter, client


async def call(client: httpx.AsyncClient, url: str, model: str, **headers: str) -> bytes:
    _, body = request_of(model)
    async with client.stream("POST", url, json=body, headers=headers) as answer:
        return await answer.aread()


@pytest.mark.parametrize("kind", REPORTED)
async def test_the_tokens_of_a_call_are_those_that_the_provider_reports(tmp_path: Path, kind: str) -> None:
    async with metered_calls(tmp_path) as (provider, meter, client):
        content = await call(client, meter.address(request_of(kind)[0]), kind)
        assert content == provider.answered[kind]
    (metered,) = meter.calls()
    assert (metered.end.model, metered.end.tokens) == (kind, provider.reported[kind])
    assert metered.end.is_streamed == ("stream" in kind and "list" not in kind)


@pytest.mark.parametrize("kind", ["chat-stream", "chat-silent", "messages-stream-silent", "generate-silent"])
async def test_what_the_provider_does_not_report_is_unknown(tmp_path: Path, kind: str) -> None:
    async with metered_calls(tmp_path) as (_, meter, client):
        await call(client, meter.address(request_of(kind)[0]), kind)
    (metered,) = meter.calls()
    assert (metered.end.tokens, metered.end.unknown, metered.end.cost_usd) == (None, "not_reported", None)


async def test_a_compressed_answer_is_passed_on_as_it_is_and_counted(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (provider, meter, client):
        path, body = request_of("chat-packed")
        async with client.stream("POST", meter.address(path), json=body) as answer:
            raw = b"".join([chunk async for chunk in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        assert raw.startswith(b"\x1f\x8b")
    assert meter.by_model()["chat-packed"].end.tokens == provider.reported["chat-packed"]


def test_an_encoding_that_is_not_read_is_unknown() -> None:
    reader = AnswerReader(OpenAI(), content_type="application/json", encoding="br")
    reader.feed(b"...")
    assert reader.end() == (None, "encoding")


async def test_the_request_arrives_unchanged_but_for_its_connection(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (provider, meter, client):
        content = b'{"model": "chat",  "messages":[]}'
        request_headers = {
            "authorization": "Bearer k",
            "x-own": "1",
            "content-type": "application/json",
            "X-Wabe-Attempt": "a1",
        }
        await client.post(
            meter.address("/v1/chat/completions") + "?a=%2F&b=1", content=content, headers=request_headers
        )
        (received,) = provider.received
    headers = dict(received.headers)
    assert (received.path, received.query, received.body) == ("/v1/chat/completions", "a=%2F&b=1", content)
    assert (headers[b"authorization"], headers[b"x-own"]) == (b"Bearer k", b"1")
    assert headers[b"host"] == provider.url.removeprefix("http://").encode()
    assert b"x-wabe-attempt" not in headers
    assert [call.start.attempt for call in meter.calls()] == ["a1"]


async def test_the_ledger_has_neither_keys_nor_content(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (_, meter, client):
        await call(client, meter.address(request_of("chat")[0]), "chat", authorization="Bearer sk-123")
    text = meter.ledger.read_text()
    assert not [word for word in ("sk-123", "secret words", "piece", meter.secret) if word in text]


async def test_a_stream_is_passed_on_piece_by_piece(tmp_path: Path) -> None:
    async with (
        providing(pause_s=3600.0) as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient(timeout=30) as client,
    ):
        path, body = request_of("chat-stream-slow")
        async with client.stream("POST", meter.address(path), json=body) as answer:
            first = await anext(answer.aiter_raw())
            assert b"piece 0" in first
        # The participant left, and the provider's work ends as well.
        async with asyncio.timeout(30):
            while not (calls := meter.calls()) or calls[0].end.unknown == "lost":
                await asyncio.sleep(0.01)
    assert (calls[0].end.tokens, calls[0].end.unknown) == (None, "cut_off")


async def test_an_answer_that_breaks_off_breaks_off_here_too(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (_, meter, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await call(client, meter.address("/v1/messages"), "messages-stream-broken")
    (metered,) = meter.calls()
    assert (metered.end.tokens, metered.end.unknown) == (None, "cut_off")


def test_a_client_may_leave_after_the_event_with_the_tokens() -> None:
    reader = AnswerReader(Anthropic(), content_type="text/event-stream", encoding="")
    reader.feed(b'data: {"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}\n\n')
    assert not reader.is_ended
    reader.feed(b'data: {"type":"message_delta","usage":{"output_tokens":9}}\r\n\r\n')
    assert reader.is_ended


async def test_a_refused_call_costs_nothing(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (_, meter, client):
        path, body = request_of("chat-refused")
        assert (await client.post(meter.address(path), json=body)).status_code == 429
    (metered,) = meter.calls()
    assert (metered.is_refused, metered.end.unknown) == (True, None)


async def test_a_provider_that_cannot_be_reached_is_an_error_that_names_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with metering(tmp_path / "ledger", f"http://127.0.0.1:{port}") as meter, httpx.AsyncClient() as client:
        answer = await client.post(meter.address("/v1/messages"), json={"model": "m"})
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "wabe meter: cannot reach 127.0.0.1: ConnectError"
    (metered,) = meter.calls()
    assert metered.is_refused


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1beta/models/m:countTokens"])
async def test_requests_that_use_no_model_are_not_calls(tmp_path: Path, path: str) -> None:
    async with metered_calls(tmp_path) as (provider, meter, client):
        number = 1 if "messages" in path else 2
        await client.post(f"{meter.url}/{meter.secret}/{number}{path}", json={"model": "chat"})
        await client.get(f"{meter.url}/{meter.secret}/0/v1/models")
        assert len(provider.received) == 2
    assert meter.calls() == []


async def test_nobody_else_can_use_it(tmp_path: Path) -> None:
    async with metered_calls(tmp_path) as (provider, meter, client):
        statuses = [
            (await client.post(f"{meter.url}{path}", json={})).status_code
            for path in (
                "/guess/0/v1/messages",
                f"/{meter.secret}/9/v1/messages",
                f"/{meter.secret}/x/v1/messages",
                f"/{meter.secret}/\u0663/v1/messages",
                # Another participant's.
                f"/{meter.secret}/3/v1/chat/completions",
            )
        ]
        assert (set(statuses), provider.received) == ({404}, [])


CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CHAT),
        ("post", CHAT),
        ("Post", CHAT),
        ("POST", f"{CHAT}#/files"),
        ("POST", f"{CHAT}?x=/files"),
        ("POST", f"{CHAT}?/v1/files"),
        ("POST", f"/v1/files/../chat/completions#{CHAT}/files"),
        ("POST", "/v1//chat/completions"),
    ],
)
async def test_a_call_is_counted_however_it_is_spelt(tmp_path: Path, method: str, path: str) -> None:
    async with providing() as provider, metering(tmp_path / "ledger", provider.url) as meter:
        host, _, port = meter.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps(request_of("chat")[1]).encode()
        line = f"{method} /{meter.secret}/0{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        writer.write(line.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await reader.read()
        writer.close()
    assert len(meter.calls()) == 1


FREE = {
    OpenAI: ["/v1/files", "/files", "/moderations", "/uploads/u_1/parts", "/responses/r_1/cancel"],
    Anthropic: ["/v1/messages/count_tokens", "/v1/files", "/v1/messages/batches/b_1/cancel"],
    Google: ["/v1beta/models/m-1.5:countTokens", "/upload/v1beta/files", "/v1beta/cachedContents/c"],
}
CALLS = {
    OpenAI: ["/v1/chat/completions", "/chat/completions", "/responses", "/embeddings"],
    Anthropic: ["/v1/messages", "/v1/messages/batches"],
    Google: ["/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent", "/v1/models/m:predict"],
}


def spellings(path: str, free: str) -> list[str]:
    """Spellings that some server reads as `path`, many of which end or begin as a free one does."""
    first = path.rpartition("/")[2]
    return [
        path,
        path.upper(),
        f"{path}/",
        f"/{path}",
        path.replace("/", "//"),
        f"{path};{free}",
        f"{path}%23{free}",
        f"{path}%3f{free}",
        f"{path}%00{free}",
        f"{path}%2f..{free}/..%2f{first}",
        f"{free}/..{path}",
        f"{free}/%2e%2e{path}",
        f"{free}%2f..%2f..{path}",
        f"/x/..{path}",
        f"{path}/.",
        f"{path}\\files",
        "".join(f"%{ord(letter):02x}" if letter.isalpha() else letter for letter in path),
    ]


@pytest.mark.parametrize("wire", [OpenAI, Anthropic, Google])
def test_whatever_could_reach_a_model_is_a_call_and_what_cannot_is_none(wire: type[WireFormat]) -> None:
    for path in CALLS[wire]:
        for free in FREE[wire]:
            for spelling in spellings(path, free):
                assert wire.uses_model("POST", spelling, (), has_body=True), spelling
        for method in ("GET", "HEAD", "OPTIONS", "DELETE"):
            assert not wire.uses_model(method, path, (), has_body=False)
            assert wire.uses_model(method, path, (), has_body=True)
            assert wire.uses_model(method, path, [b"X-HTTP-Method-Override"], has_body=False)
        for method in ("PUT", "PATCH", "QUERY", "get", "POST\t"):
            assert wire.uses_model(method, path, (), has_body=False)
    assert not [path for path in FREE[wire] if wire.uses_model("POST", path, (b"accept",), has_body=True)]


@pytest.mark.slow
async def test_a_killed_meter_loses_no_call(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with (
        providing(pause_s=3600.0) as provider,
        metering_process(tmp_path / "ledger", provider.url, port) as meter,
        httpx.AsyncClient(timeout=30) as client,
    ):
        await call(client, meter.address(request_of("chat")[0]), "chat")
        path, body = request_of("chat-stream-slow")
        async with client.stream("POST", meter.address(path), json=body) as answer:
            await anext(answer.aiter_raw())
            assert meter.process is not None
            meter.process.kill()
            await meter.process.wait()
    first, second = meter.calls()
    assert first.end.tokens == provider.reported["chat"]
    assert (second.end.tokens, second.end.unknown) == (None, "lost")


@pytest.mark.slow
async def test_fifty_calls_at_once_are_counted_one_by_one(tmp_path: Path) -> None:
    models = [f"{kind}-{number}" for number, kind in zip(range(100), itertools.cycle(REPORTED), strict=False)]
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=50), timeout=60) as client,
    ):
        await asyncio.gather(*(call(client, meter.address(request_of(each)[0]), each) for each in models))
    assert {model: each.end.tokens for model, each in meter.by_model().items()} == provider.reported
    assert len(meter.calls()) == len(models)
