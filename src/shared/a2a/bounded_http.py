"""HTTP to agents nobody here wrote: an answer is bounded, uncompressed, of an expected kind, and leads nowhere else."""

import functools
import re
import ssl
from collections.abc import AsyncIterator
from typing import cast

import httpx
from pydantic import SecretStr

from shared.errors import InternalFault, ParticipantError
from shared.text import excerpt

# Under 5 s, the time after which common servers (uvicorn) close an idle connection: no request on a closing one.
_KEEP_ALIVE_S = 3.5
_CONNECT_TIMEOUT_S = 10.0
_JSON = ("json", "text/plain", "application/octet-stream")
# The SDK takes up to 10 µs for each JSON value, and nothing else runs meanwhile. Replies have some dozens.
MAX_VALUES = 10_000
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"{[,"))


def bounded_client(*, max_bytes: int, streams: bool = False, token: SecretStr | None = None) -> httpx.AsyncClient:
    """A client whose every answer has at most `max_bytes` bytes; it has no read timeout, so callers set a deadline.

    Answers are JSON of at most `MAX_VALUES` values; with `streams` they may also be server-sent events, and the number
    of values is not limited. Whatever is not as it should be raises `ParticipantError`; a connection that fails raises
    the errors of httpx. Raises `InternalFault` when this machine cannot set up a client.
    """
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=256, keepalive_expiry=_KEEP_ALIVE_S)
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token.get_secret_value()}"
    try:
        transport = httpx.AsyncHTTPTransport(limits=limits, trust_env=False, verify=_tls_context())
    except OSError as error:
        raise InternalFault(f"cannot set up an HTTP client: {error.strerror or error}") from None
    return httpx.AsyncClient(
        transport=_BoundedTransport(transport, max_bytes, streams=streams),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
        headers=headers,
    )


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Shared by all clients, since reading this machine's certificates takes 16 ms."""
    return httpx.create_ssl_context(trust_env=False)


class _BoundedTransport(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, max_bytes: int, *, streams: bool) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._streams = streams
        self._kinds = (*_JSON, "text/event-stream") if streams else _JSON

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        stream = _BoundedStream(cast(httpx.AsyncByteStream, response.stream), self._max_bytes)
        try:
            self._check(response)
        except ParticipantError:
            await stream.aclose()
            raise
        whole = stream if self._streams else await _checked_body(stream)
        return httpx.Response(
            response.status_code, headers=response.headers, stream=whole, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _check(self, response: httpx.Response) -> None:
        if response.is_redirect:
            raise ParticipantError(
                f"the agent redirects to {excerpt(response.headers['location'])}, which is refused",
                remedy="give the address at which the agent itself answers",
            )
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise ParticipantError(f"the agent answered with content encoding {excerpt(encoding)}, which is refused")
        length = response.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._max_bytes:
            raise _too_large(self._max_bytes)
        kind = response.headers.get("content-type", "json").lower()
        if response.is_success and not any(allowed in kind for allowed in self._kinds):
            raise ParticipantError(f"the agent answered with {excerpt(kind)}, not with JSON")


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._inner:
            received += len(chunk)
            if received > self._max_bytes:
                raise _too_large(self._max_bytes)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _checked_body(stream: httpx.AsyncByteStream) -> httpx.ByteStream:
    """The whole body, refused where decoding it would hold up everything else."""
    try:
        body = b"".join([chunk async for chunk in stream])
    finally:
        await stream.aclose()
    # Readers of JSON take other encodings too, in which the bytes counted here would mean something else.
    if b"\0" in body or body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ParticipantError("the agent's answer is not A2A: it is not UTF-8", remedy="answer with JSON in UTF-8")
    # Every value but the first stands behind one of these; in strings they are text.
    if _structure(body) >= MAX_VALUES and _structure(_STRING.sub(b"", body)) >= MAX_VALUES:
        raise ParticipantError(
            f"the agent's answer is not A2A: it has more than {MAX_VALUES} JSON values",
            remedy="answer with fewer parts",
        )
    return httpx.ByteStream(body)


def _structure(body: bytes) -> int:
    return len(body.translate(None, _NOT_STRUCTURE))


def _too_large(max_bytes: int) -> ParticipantError:
    return ParticipantError(f"the agent's answer has more than {max_bytes} bytes", remedy="answer more briefly")
