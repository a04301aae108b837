"""The meter passes calls on unchanged, and counts what the provider reports."""

import asyncio
import itertools
import json
from pathlib import Path

import httpx
import pytest

from helpers.ports import free_ports
from judge.plugins.metering.reading import AnswerReader
from judge.plugins.metering.wire import Anthropic, Google, OpenAI, WireFormat
from plugins.metering.meters import metering, metering_process
from plugins.metering.providers import providing, request_of

REPORTED = (
    "chat",
    "chat-stream-included",
    "responses",
    "responses-stream",
    "embeddings",
    "messages",
    "messages-stream",
    "generate",
    "generate-stream",
    "generate-stream-list",
)


async def call(client: httpx.AsyncClient, url: str, model: str, **headers: str) -> bytes:
    _, body = request_of(model)
    async with client.stream("POST", url, json=body, headers=headers) as answer:
        return await answer.aread()


@pytest.mark.parametrize("kind", REPORTED)
async def test_the_tokens_of_a_call_are_those_that_the_provider_reports(tmp_path: Path, kind: str) -> None:
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
        content = await call(client, meter.address(request_of(kind)[0]), kind)
        assert content == provider.answered[kind]
    (metered,) = meter.calls()
    assert (metered.end.model, metered.end.tokens) == (kind, provider.reported[kind])
    assert metered.end.is_streamed == ("stream" in kind and "list" not in kind)


@pytest.mark.parametrize("kind", ["chat-stream", "chat-silent", "messages-stream-silent", "generate-silent"])
async def test_what_the_provider_does_not_report_is_unknown(tmp_path: Path, kind: str) -> None:
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
        await call(client, meter.address(request_of(kind)[0]), kind)
    (metered,) = meter.calls()
    assert (metered.end.tokens, metered.end.unknown, metered.end.cost_usd) == (None, "not_reported", None)


async def test_a_compressed_answer_is_passed_on_as_it_is_and_counted(tmp_path: Path) -> None:
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
        number = 1 if "messages" in path else 2
        await client.post(f"{meter.url}/{meter.secret}/{number}{path}", json={"model": "chat"})
        await client.get(f"{meter.url}/{meter.secret}/0/v1/models")
        assert len(provider.received) == 2
    assert meter.calls() == []


async def test_nobody_else_can_use_it(tmp_path: Path) -> None:
    async with (
        providing() as provider,
        metering(tmp_path / "ledger", provider.url) as meter,
        httpx.AsyncClient() as client,
    ):
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
