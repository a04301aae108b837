"""Interception: what decides, instead of the network, how the requests of a browser are answered.

An `Interceptor` that is given to the guard receives every request and socket of an attempt, also those of workers, of
service workers and inside TLS. It may answer by itself, or pass a request on and change, hold or record the answer.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, str], ...]
"""As sent, in order, with names in the case of the wire; decoded as Latin-1."""


class RequestFailed(Exception):
    """The request failed. The page sees a failed load, like a broken connection; the message says why."""


class RequestRefused(RequestFailed):
    """The network policy refuses the connection. The page sees the guard's answer 403."""


@dataclass(frozen=True)
class WireRequest:
    """A request as the guard read it.

    `url` is absolute, without a fragment, byte for byte as asked; its scheme is `ws` or `wss` for a socket. `body` is
    whole and still encoded as sent. `step` is the number of the step during which the request began, 0 before the
    first action.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    step: int = 0


@dataclass(frozen=True)
class WireAnswer:
    """An answer as received. `body` is content-encoded as on the wire, and transfer-decoded.

    Its headers may contain those about a connection: the guard frames the answer itself. An answer without
    `content-length` is sent in chunks.
    """

    status: int
    reason: str = ""
    headers: Headers = ()
    body: bytes | AsyncIterator[bytes] = b""
    http_version: str = "1.1"


@dataclass(frozen=True)
class SocketMessage:
    """A whole message of a socket, whatever its fragments. `sent`: by the page; `at_ms`: since the handshake."""

    sent: bool
    is_text: bool
    data: bytes
    at_ms: int = 0


@dataclass(frozen=True)
class SocketClose:
    """The end of a socket; 1005 is a close frame without a code, 1006 a connection that ended without one."""

    sent: bool
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

    async def accept(self, headers: Headers = ()) -> None:
        """Open the socket. Of `headers`, those of the handshake itself are replaced."""
        ...

    async def refuse(self, answer: WireAnswer) -> None:
        """Answer the handshake with something else than a socket."""
        ...


class SiteSocket(SocketPeer, Protocol):
    """The site's end of a socket. `answer` answers the handshake; messages follow only if its status is 101."""

    @property
    def answer(self) -> WireAnswer:
        """The answer to the handshake."""
        ...


class Upstream(Protocol):
    """The network, as the task's policy allows it. Certificates are verified."""

    async def fetch(self, request: WireRequest) -> WireAnswer:
        """Pass a request on. The answer's body arrives while it is iterated over, which raises `RequestFailed` as well.

        Raises `RequestRefused` or `RequestFailed`.
        """
        ...

    async def socket(self, request: WireRequest) -> SiteSocket:
        """Open a socket. Raises `RequestRefused` or `RequestFailed`. It is closed after the interceptor is done."""
        ...


class Interceptor(Protocol):
    """Answers the requests of one attempt. It is called for many requests at once.

    Whatever it raises but `RequestFailed` counts as an internal error: the page sees a failed load.
    """

    @property
    def reaches_out(self) -> bool:
        """Whether it is given an `Upstream`. Without one, nothing can be dialled and no name is resolved."""
        ...

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """The answer to a request. Raises `RequestFailed`."""
        ...

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """Serve a socket until it ends. Raises `RequestFailed` before `page` is answered."""
        ...
