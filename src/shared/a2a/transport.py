"""The HTTP client for foreign agents: bounded answers, credentials for the agent's origin only, no redirects.

Participants are adversaries. An answer is uncompressed JSON or, where it was asked for, a stream of events; each is
bounded, because decoding it blocks the event loop. The only redirect that is followed adds a slash to the address.
"""

import functools
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import cast

import httpx

from shared.errors import InternalFault, ParticipantError
from shared.models import Record
from shared.text import excerpt

# The SDK takes up to 10 µs to decode a JSON value and blocks the event loop meanwhile. Normal replies have a few dozen;
# one of 4 kB in parts of one character has 12,000.
MAX_VALUES = 20_000
# Common servers (uvicorn) close an idle connection after 5 s; no request should meet a closing one.
_KEEP_ALIVE_S = 3.5
_CONNECT_TIMEOUT_S = 10.0
# Some servers send JSON under a generic type.
_JSON_TYPES = ("json", "text/plain", "application/octet-stream")
_EVENTS = "text/event-stream"
# The closing quote is optional: otherwise each quote in a string without end would begin another search to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"{[,"))
# An event ends with an empty line. A line ends with CR LF, LF or CR.
_END_OF_EVENT = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LONGEST_END = 4
# Ends of lines for httpx, though not for JSON or the format of event streams: U+0085, U+2028 and U+2029, in UTF-8.
_NO_END_OF_LINE = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
_NO_CREDENTIALS: Mapping[str, str] = MappingProxyType({})


class Bounds(Record):
    """How much of an answer is accepted: a body of JSON or one event, and all events of one answer together.

    `values` limits the JSON values of a body or an event; `None` for a trusted agent.
    """

    body_bytes: int
    stream_bytes: int = 0
    values: int | None = MAX_VALUES


def bounded_client(
    bounds: Bounds, *, origin: str = "", credentials: Mapping[str, str] = _NO_CREDENTIALS
) -> httpx.AsyncClient:
    """A client that refuses answers beyond `bounds`. It has no read timeout: callers set a deadline.

    `credentials` are headers sent with each request to the origin of the address `origin`, and to no other.
    An answer that is refused raises `ParticipantError`; a failed connection raises httpx's errors. Raises
    `InternalFault` when this machine cannot set up a client.
    """
    try:
        transport = _BoundedTransport(bounds, origin, credentials)
    except OSError as error:
        raise InternalFault(f"cannot set up an HTTP client: {error.strerror or error}") from None
    timeout = httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S)
    # A small compressed answer can expand to any size.
    headers = {"Accept-Encoding": "identity"}
    return httpx.AsyncClient(transport=transport, trust_env=False, timeout=timeout, headers=headers)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    # Shared by all clients: reading this machine's certificates takes 16 ms.
    return httpx.create_ssl_context(trust_env=False)


class _BoundedTransport(httpx.AsyncHTTPTransport):
    def __init__(self, bounds: Bounds, origin: str, credentials: Mapping[str, str]) -> None:
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=256, keepalive_expiry=_KEEP_ALIVE_S)
        super().__init__(limits=limits, trust_env=False, verify=_tls_context())
        self._bounds = bounds
        self._origin = origin
        self._credentials = credentials

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._send(request)
        if _only_adds_a_slash(request, response):
            await response.aclose()
            moved = httpx.Request(
                request.method,
                _with_slash(request.url),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
            response = await self._send(moved)
        # Only what asks for events gets them.
        takes_events = self._bounds.stream_bytes > 0 and _EVENTS in request.headers.get("accept", "")
        stream = cast(httpx.AsyncByteStream, response.stream)
        try:
            is_events = self._check_headers(response, takes_events=takes_events)
            response.stream = _Events(stream, self._bounds) if is_events else await self._checked_body(stream)
        except BaseException:
            await stream.aclose()
            raise
        return response

    async def _send(self, request: httpx.Request) -> httpx.Response:
        # Checked for each request, so that no address that an agent publishes gets another agent's credentials.
        if self._credentials and _origin_of(request.url) == _origin_of(httpx.URL(self._origin)):
            request.headers.update(self._credentials)
        return await super().handle_async_request(request)

    def _check_headers(self, response: httpx.Response, *, takes_events: bool) -> bool:
        """Whether the answer is a stream of events."""
        # A redirect could send the judge to a host not in the scenario.
        if response.is_redirect:
            raise ParticipantError(
                f"the agent redirects to {excerpt(response.headers['location'])}, which is not allowed",
                remedy="use the address at which the agent itself answers",
            )
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise ParticipantError(
                f"the agent answered with content encoding {excerpt(encoding)}, which is not allowed"
            )
        media_type = response.headers.get("content-type", "json").lower()
        is_events = takes_events and _EVENTS in media_type
        _check_size(int(response.headers.get("content-length", 0)), self._limit(is_events=is_events))
        # An error's body may have any type, such as a proxy's HTML: its status is what gets reported.
        if response.is_success and not is_events and not any(name in media_type for name in _JSON_TYPES):
            raise ParticipantError(f"the agent answered with {excerpt(media_type)} instead of JSON")
        return is_events and response.is_success

    def _limit(self, *, is_events: bool) -> int:
        return self._bounds.stream_bytes if is_events else self._bounds.body_bytes

    async def _checked_body(self, stream: httpx.AsyncByteStream) -> httpx.ByteStream:
        body = bytearray()
        async for chunk in stream:
            body += chunk
            _check_size(len(body), self._bounds.body_bytes)
        await stream.aclose()
        # JSON readers also accept UTF-16 and UTF-32, in which the bytes counted below mean something else.
        if b"\0" in body or body.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ParticipantError("the agent's answer is not A2A: it is not UTF-8", remedy="answer with JSON in UTF-8")
        _check_values(body, self._bounds.values)
        return httpx.ByteStream(bytes(body))


class _Events(httpx.AsyncByteStream):
    """A stream of events, passed on in whole events, each of which has been checked."""

    def __init__(self, inner: httpx.AsyncByteStream, bounds: Bounds) -> None:
        self._inner = inner
        self._bounds = bounds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received, rest = 0, bytearray()
        async for chunk in self._inner:
            received += len(chunk)
            _check_size(received, self._bounds.stream_bytes)
            # What was there before has been searched, but the end may be divided between two chunks.
            searched = max(0, len(rest) - _LONGEST_END)
            rest += chunk
            ends = [0, *(match.end() for match in _END_OF_EVENT.finditer(rest, searched))]
            if events := [self._checked(bytes(rest[begin:end])) for begin, end in pairwise(ends)]:
                yield b"".join(events)
            del rest[: ends[-1]]
            _check_size(len(rest), self._bounds.body_bytes)
        if rest:
            yield self._checked(bytes(rest))

    def _checked(self, event: bytes) -> bytes:
        _check_size(len(event), self._bounds.body_bytes)
        _check_values(event, self._bounds.values)
        return _NO_END_OF_LINE.sub(lambda match: rb"\u%04x" % ord(match[0].decode()), event)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _with_slash(url: httpx.URL) -> httpx.URL:
    path, question_mark, query = url.raw_path.partition(b"?")
    return url.copy_with(raw_path=path + b"/" + question_mark + query)


def _only_adds_a_slash(request: httpx.Request, response: httpx.Response) -> bool:
    # After 301 and 302 clients repeat a POST as a GET; a redirected message would be lost.
    statuses = (301, 302, 307, 308) if request.method == "GET" else (307, 308)
    if response.status_code not in statuses or "location" not in response.headers:
        return False
    try:
        return request.url.join(response.headers["location"]) == _with_slash(request.url)
    except (httpx.InvalidURL, ValueError):
        return False


def _check_values(body: bytes | bytearray, values: int | None) -> None:
    """Raises `ParticipantError` if decoding the JSON would block the event loop for long."""
    # Every value but the first follows a structural character. Those inside strings do not count.
    if values is not None and _structure_count(body) >= values and _structure_count(_STRING.sub(b"", body)) >= values:
        raise ParticipantError(
            f"the agent's answer is not A2A: it has more than {values} JSON values", remedy="answer with fewer parts"
        )


def _structure_count(body: bytes | bytearray) -> int:
    return len(body.translate(None, _NOT_STRUCTURE))


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ParticipantError(f"the agent's answer has more than {limit} bytes", remedy="send a shorter answer")
