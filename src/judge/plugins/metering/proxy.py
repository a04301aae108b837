"""The proxy: passes each request on to its provider, and the answer back, byte by byte as they come.

It changes nothing but the address and the headers of the connection, and reads answers only after they were passed on.
The address has two parts before the provider's path: the participant's secret, and the number of the upstream.
"""

import asyncio
import contextlib
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from judge.plugins.metering.reading import AnswerReader
from judge.plugins.metering.wire import WIRES, WireFormat
from judge.results.metering import CallEnd, CallStart, Tokens, Unknown
from shared.llm.prices import Pricing, find_price
from shared.models import Record, TokenUsage

ATTEMPT_HEADER = b"x-wabe-attempt"
_CONNECT_S = 30.0
# Headers that belong to one connection (RFC 9110, 7.6.1), headers for proxies, and the one for us.
_OWN_HEADERS = frozenset(
    b"connection keep-alive te trailer transfer-encoding upgrade host x-wabe-attempt"
    b" proxy-connection proxy-authenticate proxy-authorization".split()
)
_MAX_MODEL_BYTES = 16_000_000


class ProviderRoute(Record):
    """Where the calls of one participant to one provider go. Only the participant knows its `secret`."""

    role: str
    secret: str = Field(repr=False)
    provider: str
    url: str


class MeterSettings(Record):
    """The settings of the meter's process. The addresses may contain a password."""

    ledger: str
    upstreams: tuple[ProviderRoute, ...]
    one_slot: bool = False
    prices: str | None = None


@dataclass
class _ResponseState:
    """What is known of an answer so far."""

    status: int | None = None
    is_sent: bool = True
    reader: AnswerReader | None = None
    is_complete: bool = False


class Meter:
    """The ASGI application. `lost` is called when the ledger cannot be written: nothing may pass uncounted then."""

    def __init__(
        self, settings: MeterSettings, write: Callable[[CallStart | CallEnd], None], on_lost: Callable[[OSError], None]
    ) -> None:
        self._upstreams = settings.upstreams
        self._settings = settings
        self._write, self._on_lost = write, on_lost
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=256),
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        """Close the connections to the providers."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        upstream, rest = self._upstream(scope)
        if upstream is None:
            # Also how the runner sees that the meter is up.
            await Response(status_code=200 if scope["path"] == "/" else 404)(scope, receive, send)
            return
        wire = WIRES[upstream.provider]
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        base = upstream.url.rstrip("/")
        try:
            request = httpx2.Request(
                scope["method"], base + rest, headers=_forwarded(scope["headers"]), content=body or None
            )
        except httpx2.InvalidURL:
            await Response(status_code=404)(scope, receive, send)
            return
        # What is sent decides, not what came in: a part of an address after "#" is never sent, for example.
        path = request.url.raw_path.decode("ascii").partition("?")[0]
        below = path.removeprefix(httpx2.URL(base).raw_path.decode("ascii").rstrip("/"))
        names = (name for name, _ in scope["headers"])
        if not wire.uses_model(request.method, below, names, has_body=bool(body)):
            await self._pass(request, receive, send, _ResponseState())
            return
        await self._metered(scope, receive, send, upstream, request, wire())

    async def _metered(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        upstream: ProviderRoute,
        request: httpx2.Request,
        wire: WireFormat,
    ) -> None:
        name, began = secrets.token_hex(8), time.monotonic()
        start = CallStart(
            call=name,
            at=round(time.time(), 6),
            role=upstream.role,
            provider=upstream.provider,
            attempt=_attempt(scope),
            one_slot=self._settings.one_slot,
        )
        try:
            self._write(start)
        except OSError as error:
            self._on_lost(error)
            await _refusal("the ledger cannot be written")(scope, receive, send)
            return
        passed = _ResponseState()
        try:
            await self._pass(request, receive, send, passed, wire)
        finally:
            end = self._end_of_call(name, time.monotonic() - began, upstream, request, passed)
            try:
                self._write(end)
            except OSError as error:
                self._on_lost(error)

    async def _pass(
        self,
        request: httpx2.Request,
        receive: Receive,
        send: Send,
        passed: _ResponseState,
        wire: WireFormat | None = None,
    ) -> None:
        """Send the request, and the answer back, until either side ends it."""
        passing = asyncio.create_task(self._answer(request, receive, send, passed, wire))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (leaving, passing):
                if not task.done():
                    # Ends the provider's work as well, as it would without the meter.
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _answer(
        self, request: httpx2.Request, receive: Receive, send: Send, passed: _ResponseState, wire: WireFormat | None
    ) -> None:
        try:
            answer = await self._client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            passed.is_sent = False
            await _refusal(f"cannot reach {request.url.host}: {type(error).__name__}")(_NO_SCOPE, receive, send)
            return
        except httpx2.HTTPError as error:
            await _refusal(f"no answer of {request.url.host}: {type(error).__name__}")(_NO_SCOPE, receive, send)
            return
        async with contextlib.aclosing(answer):
            passed.status = answer.status_code
            if wire is not None:
                content_type, encoding = (answer.headers.get(f"content-{name}", "") for name in ("type", "encoding"))
                passed.reader = AnswerReader(wire, content_type=content_type, encoding=encoding)
            headers = [(key.lower(), value) for key, value in answer.headers.raw if key.lower() not in _OWN_HEADERS]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
            # An answer that breaks off raises here, and so ends the participant's connection as well.
            async for chunk in answer.aiter_raw():
                try:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                finally:
                    # Also if the participant leaves now: it has what it wanted.
                    if passed.reader is not None:
                        passed.reader.feed(chunk)
            passed.is_complete = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _upstream(self, scope: Scope) -> tuple[ProviderRoute | None, str]:
        """Where a request goes, and the rest of its address there."""
        raw = scope.get("raw_path") or scope["path"].encode()
        secret, _, after = raw.decode("ascii", "replace").removeprefix("/").partition("/")
        number, _, rest = after.partition("/")
        upstream = (
            self._upstreams[int(number)]
            if re.fullmatch(r"[0-9]{1,4}", number) and int(number) < len(self._upstreams)
            else None
        )
        if upstream is None or not secrets.compare_digest(secret.encode(), upstream.secret.encode()):
            return None, ""
        query = scope["query_string"].decode("latin-1")
        return upstream, f"/{rest}" + (f"?{query}" if query else "")

    def _end_of_call(
        self, name: str, seconds: float, upstream: ProviderRoute, request: httpx2.Request, passed: _ResponseState
    ) -> CallEnd:
        tokens, unknown, model = _read(passed)
        is_refused = not passed.is_sent or (passed.status is not None and passed.status >= 400)
        if is_refused:
            tokens, unknown = None, None
        price: Pricing | None = None
        for model_name in dict.fromkeys(filter(None, (model, requested_model(request.url.path, request.content)))):
            model = model or model_name
            price = price or find_price(f"{upstream.provider}:{model_name}", self._settings.prices)
        return CallEnd(
            call=name,
            seconds=round(max(0.0, seconds), 6),
            status=passed.status,
            is_sent=passed.is_sent,
            is_streamed=passed.reader is not None and passed.reader.is_stream,
            model=model,
            tokens=tokens,
            unknown=unknown,
            cost_usd=_cost(price, tokens) if price and tokens else None,
            price_date=price.date if price and tokens else None,
        )


def _read(passed: _ResponseState) -> tuple[Tokens | None, Unknown | None, str | None]:
    if passed.reader is None:
        return None, "cut_off", None
    tokens, unknown = passed.reader.end()
    if not passed.is_complete and not passed.reader.is_ended:
        # What a stream has reported so far is not what will be billed.
        tokens, unknown = None, "cut_off"
    return tokens, unknown, passed.reader.model


def _cost(price: Pricing, tokens: Tokens) -> float:
    usage = TokenUsage(
        calls=1, input=tokens.input, output=tokens.output, cached=tokens.cached, reasoning=tokens.reasoning
    )
    return price.cost_usd(usage, cache_writes=tokens.written)


def requested_model(path: str, body: bytes) -> str | None:
    """The model that a request names, in its path (Gemini) or in its body."""
    before, colon, _ = path.rpartition(":")
    if colon and "/models/" in before:
        return before.rpartition("/models/")[2][:300] or None
    if len(body) > _MAX_MODEL_BYTES:
        return None
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    name = value.get("model") if isinstance(value, dict) else None
    return name[:300] if isinstance(name, str) and name else None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _forwarded(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OWN_HEADERS]


def _attempt(scope: Mapping[str, Any]) -> str | None:
    attempt_header = next((value for name, value in scope["headers"] if name == ATTEMPT_HEADER), None)
    return attempt_header.decode("latin-1")[:200] if attempt_header else None


def _refusal(why: str) -> JSONResponse:
    return JSONResponse({"error": {"message": f"wabe meter: {why}", "type": "wabe_meter"}}, 502)


# A response of Starlette's needs only the type.
_NO_SCOPE: Scope = {"type": "http"}
