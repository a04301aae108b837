"""Forwards requests for an interceptor: one connection each, opened by the guard, which enforces the policy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import h11

from judge.browser.interception import (
    Headers,
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
from judge.browser.peers import HOP_BY_HOP, Peer
from judge.browser.web_sockets import NotOpened, SiteFrames, accept_of, kept, new_key

Dial = Callable[[str], Awaitable[Peer]]
"""Opens a connection to the server of an address, with TLS if its scheme says so. Raises `RequestFailed`."""

_MAX_REFUSAL_BYTES = 1_000_000
# The time to wait after one end of a socket has closed it.
_GOODBYE_S = 5.0
# The body is sent in full, with its length, and the destination is the address, not a header (RFC 9112, 3.2.2).
_OWN_FRAMING = HOP_BY_HOP | {b"host", b"content-length", b"transfer-encoding", b"expect"}


class Network:
    """The `judge.browser.interception.Upstream` of one exchange. `end` closes what the exchange leaves open."""

    def __init__(self, dial: Dial, max_bytes: int) -> None:
        self._dial = dial
        self._max_bytes = max_bytes
        self._peers: list[Peer] = []
        self._sockets: list[SiteFrames] = []

    async def fetch(self, request: WireRequest) -> WireAnswer:
        """See `judge.browser.interception.Upstream`."""
        site = await self._opened(request.url)
        headers = [(b"Host", _authority(request.url)), (b"Connection", b"close")]
        headers += [(name, value) for name, value in _encoded(request.headers) if name.lower() not in _OWN_FRAMING]
        has_length = any(name.lower() == "content-length" for name, _ in request.headers)
        if request.body or has_length:
            headers.append((b"Content-Length", str(len(request.body)).encode()))
        try:
            await site.send(h11.Request(method=request.method, target=_target(request.url), headers=headers))
            if request.body:
                await site.send(h11.Data(data=request.body))
            await site.send(h11.EndOfMessage())
            head = await _head(site)
        except (OSError, h11.ProtocolError, TimeoutError) as error:
            raise RequestFailed(_text(error)) from error
        return _answer(head, self._body(site))

    async def socket(self, request: WireRequest) -> SiteSocket:
        """See `judge.browser.interception.Upstream`."""
        site = await self._opened(request.url)
        key = new_key()
        own = [(b"Host", _authority(request.url)), (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        headers = [*own, *((name, value) for name, value in kept(request.headers) if name.lower() != b"host")]
        headers.append((b"Sec-WebSocket-Key", key))
        try:
            await site.send(h11.Request(method="GET", target=_target(request.url), headers=headers))
            await site.send(h11.EndOfMessage())
            head = await _head(site)
        except (OSError, h11.ProtocolError, TimeoutError) as error:
            raise RequestFailed(_text(error)) from error
        if head.status_code != 101:
            body = b"".join([piece async for piece in self._body(site, _MAX_REFUSAL_BYTES)])
            return NotOpened(_answer(head, body))
        if dict(head.headers).get(b"sec-websocket-accept") != accept_of(key):
            raise RequestFailed("the answer to the handshake of a socket does not belong to it")
        opened = SiteFrames(site, _answer(head, b""), self._max_bytes)
        self._sockets.append(opened)
        return opened

    async def end(self) -> None:
        """Close every connection of the exchange."""
        for opened in self._sockets:
            await opened.finish()
        for site in self._peers:
            await site.close()

    async def _opened(self, url: str) -> Peer:
        site = await self._dial(url)
        self._peers.append(site)
        return site

    async def _body(self, site: Peer, limit: int | None = None) -> AsyncIterator[bytes]:
        passed = 0
        while True:
            try:
                event = await site.receive()
            except (OSError, h11.ProtocolError, TimeoutError) as error:
                raise RequestFailed(f"the answer broke off: {_text(error)}") from error
            if isinstance(event, h11.EndOfMessage):
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
    seen: Callable[[SocketMessage | SocketClose], None] = lambda _: None,
) -> WireAnswer:
    """Connect a page's socket with the site's until one of them ends; `seen` is called with every message.

    Returns the site's answer to the handshake, with its complete body if the site refuses. Raises `RequestFailed`.
    """
    site = await upstream.socket(request)
    if site.answer.status != 101:
        await page.refuse(site.answer)
        return site.answer
    await page.accept(site.answer.headers)
    ends = {asyncio.create_task(_pump(page, site, seen)), asyncio.create_task(_pump(site, page, seen))}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        # The other end answers the close.
        await asyncio.wait(ends, timeout=_GOODBYE_S)
    finally:
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    return site.answer


async def _pump(source: SocketPeer, target: SocketPeer, seen: Callable[[SocketMessage | SocketClose], None]) -> None:
    while isinstance(message := await source.receive(), SocketMessage):
        seen(message)
        await target.send(message)
    seen(message)
    await target.close(message.code, message.reason)


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


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _authority(url: str) -> bytes:
    return urlsplit(url).netloc.rpartition("@")[2].encode("latin-1")


def _target(url: str) -> bytes:
    """What a request line names, byte for byte, so that a path with two slashes or an empty query is not changed."""
    rest = url.partition("://")[2]
    path = rest[len(urlsplit(url).netloc) :]
    return (path if path.startswith("/") else f"/{path}").encode("latin-1")


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
