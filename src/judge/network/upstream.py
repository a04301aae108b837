"""Forwards requests for an interceptor, on connections that the guard opens, which enforces the policy.

A connection of the browser keeps one to the site, for what only reads. Anything else has a separate connection,
because it must not be sent twice, which only a site that has just closed a connection would cause.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from judge.network.interception import (
    HeaderPairs,
    PageSocket,
    RequestFailed,
    SiteSocket,
    SocketClose,
    SocketMessage,
    SocketPeer,
    Upstream,
    WireAnswer,
    WireRequest,
)
from judge.network.peers import HOP_BY_HOP, Peer
from judge.network.policy import NetworkPolicy
from judge.network.web_sockets import RefusedSocket, SiteFrames, accept_of, forwarded_headers, new_key


@dataclass(frozen=True)
class Dial:
    """`to` opens a connection to the server of an address, with TLS if its scheme says so. Raises `RequestFailed`.

    `policy` is what permitted it: under another one, the connection must not be used any more.
    """

    to: Callable[[str], Awaitable[Peer]]
    policy: Callable[[], NetworkPolicy | None]


_MAX_REFUSAL_BYTES = 1_000_000
# The time to wait after one end of a socket has closed it.
_GOODBYE_S = 5.0
# Routers and sites forget idle connections, some without a word.
_MAX_IDLE_S = 15.0
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
# What servers say on a connection idle for too long.
_TIMED_OUT = 408
# The body is sent in full, with its length, and the destination is the address, not a header (RFC 9112, 3.2.2).
_OWN_FRAMING = HOP_BY_HOP | {b"host", b"content-length", b"transfer-encoding", b"expect"}


@dataclass(frozen=True)
class _IdleConnection:
    """A connection that may be used again, what it may be used for, and since when it is idle."""

    use: "_Use"
    site: Peer
    since: float


@dataclass(frozen=True)
class _Use:
    """Where a connection leads, and the policy under which it was opened."""

    origin: str
    policy: NetworkPolicy | None

    def is_like(self, other: "_Use") -> bool:
        """Whether the same connection serves both."""
        return self.origin == other.origin and self.policy is other.policy


class Network:
    """The `judge.network.interception.Upstream` of the exchanges of one connection of the browser, one after another.

    `end` closes what an exchange leaves open, but for a connection that can be used again; `close` that as well.
    """

    def __init__(self, dial: Dial, max_bytes: int) -> None:
        self._dial = dial
        self._max_bytes = max_bytes
        self._peers: list[Peer] = []
        self._idle: _IdleConnection | None = None
        self._sockets: list[SiteFrames] = []

    async def fetch(self, request: WireRequest) -> WireAnswer:
        """See `judge.network.interception.Upstream`."""
        is_repeatable = request.method in _REPEATABLE and not request.body
        headers = [(b"Host", _authority(request.url))]
        headers += [] if is_repeatable else [(b"Connection", b"close")]
        headers += [(name, value) for name, value in _encoded(request.headers) if name.lower() not in _OWN_FRAMING]
        has_length = any(name.lower() == "content-length" for name, _ in request.headers)
        if request.body or has_length:
            headers.append((b"Content-Length", str(len(request.body)).encode()))
        use = _Use(_origin(request.url), self._dial.policy())
        message = h11.Request(method=request.method, target=_target(request.url), headers=headers)
        if is_repeatable and (idle := self._take_idle(use)) is not None:
            try:
                head = await _send_request(idle, message)
                if head.status_code != _TIMED_OUT:
                    return _answer(head, self._body(idle, use=use))
            except RequestFailed:
                # The site has closed it meanwhile.
                pass
        site = await self._opened(request.url)
        head = await _send_request(site, message, request.body)
        return _answer(head, self._body(site, use=use))

    async def socket(self, request: WireRequest) -> SiteSocket:
        """See `judge.network.interception.Upstream`."""
        site = await self._opened(request.url)
        key = new_key()
        own = [(b"Host", _authority(request.url)), (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        headers = [
            *own,
            *((name, value) for name, value in forwarded_headers(request.headers) if name.lower() != b"host"),
        ]
        headers.append((b"Sec-WebSocket-Key", key))
        try:
            await site.send(h11.Request(method="GET", target=_target(request.url), headers=headers))
            await site.send(h11.EndOfMessage())
            head = await _head(site)
        except (OSError, h11.ProtocolError, TimeoutError) as error:
            raise RequestFailed(_text(error)) from error
        if head.status_code != 101:
            body = b"".join([piece async for piece in self._body(site, limit=_MAX_REFUSAL_BYTES)])
            return RefusedSocket(_answer(head, body))
        if dict(head.headers).get(b"sec-websocket-accept") != accept_of(key):
            raise RequestFailed("the answer to the handshake of a socket does not belong to it")
        opened = SiteFrames(site, _answer(head, b""), self._max_bytes)
        self._sockets.append(opened)
        return opened

    async def end(self) -> None:
        """Close every connection of the exchange that cannot be used again."""
        sockets, self._sockets = self._sockets, []
        peers, self._peers = self._peers, []
        for opened in sockets:
            await opened.finish()
        for site in peers:
            await site.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.end()
        idle, self._idle = self._idle, None
        if idle:
            await idle.site.close()

    def _take_idle(self, use: _Use) -> Peer | None:
        """The idle connection, if it serves; the end of the exchange closes it, unless it is kept again."""
        idle, self._idle = self._idle, None
        if idle is None:
            return None
        self._peers.append(idle.site)
        is_fresh = time.monotonic() - idle.since < _MAX_IDLE_S
        return idle.site if is_fresh and idle.use.is_like(use) else None

    def _keep(self, use: _Use, site: Peer) -> None:
        """Keep a connection whose exchange is complete, if both sides have left it open and nothing more came."""
        http = site.http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE or http.trailing_data != (b"", False):
            return
        http.start_next_cycle()
        self._peers = [each for each in self._peers if each is not site]
        if self._idle:
            self._peers.append(self._idle.site)
        self._idle = _IdleConnection(use, site, time.monotonic())

    async def _opened(self, url: str) -> Peer:
        site = await self._dial.to(url)
        self._peers.append(site)
        return site

    async def _body(self, site: Peer, *, use: _Use | None = None, limit: int | None = None) -> AsyncIterator[bytes]:
        passed = 0
        while True:
            try:
                event = await site.receive()
            except (OSError, h11.ProtocolError, TimeoutError) as error:
                raise RequestFailed(f"the answer broke off: {_text(error)}") from error
            if isinstance(event, h11.EndOfMessage):
                if use:
                    self._keep(use, site)
                return
            if not isinstance(event, h11.Data):
                raise RequestFailed("the answer broke off")
            passed += len(event.data)
            if passed > (limit or self._max_bytes):
                raise RequestFailed("the answer is too large")
            yield bytes(event.data)


async def pass_on_socket(
    request: WireRequest,
    page: PageSocket,
    upstream: Upstream,
    on_event: Callable[[SocketMessage | SocketClose], None] = lambda _: None,
) -> WireAnswer:
    """Connect a page's socket with the site's until one of them ends; `on_event` is called with every message.

    Returns the site's answer to the handshake, with its complete body if the site refuses. Raises `RequestFailed`.
    """
    site = await upstream.socket(request)
    if site.answer.status != 101:
        await page.refuse(site.answer)
        return site.answer
    await page.accept(site.answer.headers)
    ends = {asyncio.create_task(_pump(page, site, on_event)), asyncio.create_task(_pump(site, page, on_event))}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        # The other end answers the close.
        await asyncio.wait(ends, timeout=_GOODBYE_S)
    finally:
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    return site.answer


async def _pump(
    source: SocketPeer, target: SocketPeer, on_event: Callable[[SocketMessage | SocketClose], None]
) -> None:
    while isinstance(message := await source.receive(), SocketMessage):
        on_event(message)
        await target.send(message)
    on_event(message)
    await target.close(message.code, message.reason)


async def _send_request(
    site: Peer, message: h11.Request, body: bytes = b""
) -> h11.Response | h11.InformationalResponse:
    """Send a request, and return the headers of its answer. Raises `RequestFailed`."""
    try:
        await site.send(message)
        if body:
            await site.send(h11.Data(data=body))
        await site.send(h11.EndOfMessage())
        return await _head(site)
    except (OSError, h11.ProtocolError, TimeoutError) as error:
        raise RequestFailed(_text(error)) from error


async def _head(site: Peer) -> h11.Response | h11.InformationalResponse:
    """The headers of the answer, after 100 Continue and 103 Early Hints, which are optional."""
    while True:
        head = await site.receive()
        if isinstance(head, h11.InformationalResponse) and head.status_code != 101:
            continue
        if isinstance(head, h11.Response | h11.InformationalResponse):
            return head
        raise RequestFailed("the connection ended without an answer")


def _answer(head: h11.Response | h11.InformationalResponse, body: bytes | AsyncIterator[bytes]) -> WireAnswer:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())
    version = head.http_version.decode("latin-1")
    return WireAnswer(head.status_code, head.reason.decode("latin-1"), headers, body, version)


def _encoded(headers: HeaderPairs) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _authority(url: str) -> bytes:
    return urlsplit(url).netloc.rpartition("@")[2].encode("latin-1")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _target(url: str) -> bytes:
    """What a request line names, byte for byte, so that a path with two slashes or an empty query is not changed."""
    rest = url.partition("://")[2]
    path = rest[len(urlsplit(url).netloc) :]
    return (path if path.startswith("/") else f"/{path}").encode("latin-1")


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
