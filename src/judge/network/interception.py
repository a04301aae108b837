"""Interception: answers the requests of a browser instead of the network.

An `Interceptor` given to the guard receives every request and socket of an attempt, including workers and service
workers and those inside TLS. It may answer a request itself, or forward it and change, delay or record the
answer.
"""

import html
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

HeaderPairs = tuple[tuple[str, str], ...]
"""As sent, in order, with names in the case of the wire; decoded as Latin-1."""


# Marks a document of the judge's own for `provenance.js`. A site that says so of its page only loses its evidence.
_BY_THE_JUDGE = 'data-wabe-author="judge"'
_JUDGES_PAGE = """<!doctype html><html {mark}><meta charset="utf-8"><title>{title}</title>
<h1>{title}</h1><p>{text}</p></html>
"""


def judges_page(title: str, text: str) -> bytes:
    """A page in HTML that the judge shows in place of the site's. It is recorded as the judge's, not as evidence."""
    return _JUDGES_PAGE.format(mark=_BY_THE_JUDGE, title=html.escape(title), text=html.escape(text)).encode()


class RequestFailed(Exception):
    """The request failed. The page sees a failed load, like a broken connection; the message says why."""


class RequestRefused(RequestFailed):
    """The network policy refuses the connection. The page sees the guard's answer 403."""


@dataclass(frozen=True)
class WireRequest:
    """A request as the guard read it.

    `url` is absolute, without a fragment, byte for byte as requested; its scheme is `ws` or `wss` for a socket. `body`
    is complete and still encoded as sent. `step` is the number of the step during which the request began, 0 before the
    first action. `is_judges`: the judge sent it, and no page.
    """

    method: str
    url: str
    headers: HeaderPairs = ()
    body: bytes = b""
    step: int = 0
    is_judges: bool = False


@dataclass(frozen=True)
class WireAnswer:
    """An answer as received. `body` is content-encoded as on the wire, and transfer-decoded.

    `headers` may contain hop-by-hop headers: the guard frames the answer itself. An answer without `content-length` is
    sent in chunks. `is_held`: it is a declared reply, and the request never left this machine.
    """

    status: int
    reason: str = ""
    headers: HeaderPairs = ()
    body: bytes | AsyncIterator[bytes] = b""
    http_version: str = "1.1"
    is_held: bool = False


@dataclass(frozen=True)
class SocketMessage:
    """A complete, reassembled message of a socket. `is_from_page`: by the page; `at_ms`: since the handshake.

    `step` is the number of the step during which the page sent it, as in `WireRequest`; 0 if the site sent it.
    """

    is_from_page: bool
    is_text: bool
    data: bytes
    at_ms: int = 0
    step: int = 0


@dataclass(frozen=True)
class SocketClose:
    """The end of a socket; 1005 is a close frame without a code, 1006 a connection that ended without one."""

    is_from_page: bool
    code: int = 1006
    reason: str = ""
    at_ms: int = 0


class SocketPeer(Protocol):
    """One end of an open socket: the page, or the site."""

    async def receive(self) -> SocketMessage | SocketClose:
        """The next message from this peer. `SocketClose` is always the last."""
        ...

    async def send(self, message: SocketMessage) -> None:
        """Send a message to this peer. Does nothing once the socket is closed."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the socket; with 1006, break the connection. Its answer is still received."""
        ...


class PageSocket(SocketPeer, Protocol):
    """The page's end of a socket, which waits for an answer to its handshake."""

    async def accept(self, headers: HeaderPairs = ()) -> None:
        """Open the socket. Headers of the handshake itself are replaced."""
        ...

    async def refuse(self, answer: WireAnswer) -> None:
        """Answer the handshake without opening a socket."""
        ...


class SiteSocket(SocketPeer, Protocol):
    """The site's end of a socket. `answer` answers the handshake; messages follow only if its status is 101."""

    @property
    def answer(self) -> WireAnswer:
        """The answer to the handshake."""
        ...


class Upstream(Protocol):
    """Access to the network, as far as the task's policy allows it. Certificates are verified."""

    async def fetch(self, request: WireRequest) -> WireAnswer:
        """Forward a request. The answer's body is received while it is iterated over, which may also raise
        `RequestFailed`.

        Raises `RequestRefused` or `RequestFailed`.
        """
        ...

    async def socket(self, request: WireRequest) -> SiteSocket:
        """Open a socket. Raises `RequestRefused` or `RequestFailed`. It is closed after the interceptor is done."""
        ...


class Interceptor(Protocol):
    """Answers the requests of one attempt. Called concurrently.

    Any exception except `RequestFailed` is an internal error, and the page sees a failed load.
    """

    @property
    def reaches_out(self) -> bool:
        """Whether it gets an `Upstream`. Without one, it can neither open connections nor resolve names."""
        ...

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """The answer to a request. Raises `RequestFailed`."""
        ...

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """Serve a socket until it ends. Raises `RequestFailed` before `page` is answered."""
        ...
