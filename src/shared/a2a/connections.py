"""Limits on a server's connections, so that clients that send nothing, or half a request, cannot starve it.

uvicorn has no deadline for a request still arriving (its keep-alive timer stops at the first byte), and
`limit_concurrency` refuses only complete requests. Here a connection without a complete request in progress is *waiting
for its client*. It is closed at its deadline, or earlier when the server is full: then the address with the most
waiting connections loses its oldest one. A connection being served has no deadline and is never closed to make
room, so a client that follows an assessment keeps its stream, no matter how many others connect. When no connection can
be closed, newcomers wait.
"""

import asyncio
import contextlib
import logging
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

log = logging.getLogger(__name__)

# File descriptors reserved for the process itself: libraries, the event loop, databases, log files.
_OWN_DESCRIPTORS = 64
_MAX_DESCRIPTORS = 65_536
_MAX_CONNECTIONS = 1_000
# Clients send a request immediately after connecting. A connection younger than this is not closed to make room, so
# that a request already on the way is read first.
_GRACE_S = 0.25
_FULL_PAUSE_S = 0.05
_FAILED_PAUSE_S = 1.0
_REQUEST_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def raise_descriptor_limit() -> None:
    """Raise this process's soft limit on descriptors to its hard limit, or to 65,536 if that is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target_limit = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target_limit:
        # macOS refuses more than its kernel's limit.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target_limit, hard))


def connection_limit(descriptors: int | None = None) -> int:
    """How many connections to hold open: a quarter of the process's descriptors. The process itself needs the rest."""
    return max(8, min(_MAX_CONNECTIONS, (_available(descriptors) - _OWN_DESCRIPTORS) // 4))


def descriptors_for_work(descriptors: int | None = None) -> int:
    """The number of descriptors that connections to this server cannot use up."""
    return max(0, _available(descriptors) - _OWN_DESCRIPTORS - connection_limit(descriptors))


def _available(descriptors: int | None) -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if descriptors is None else descriptors
    return _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


@dataclass(frozen=True)
class ConnectionBounds:
    """Deadlines and limits for connections that wait for their client.

    A request's headers must arrive within `head_s` of the first byte, or of the connection if no byte comes; its body
    within `body_s` plus its size divided by `body_bytes_per_s`. `stall_s` is how long a client may leave a response
    unread, and `max_pending_bytes` bounds the memory of all requests still arriving.
    """

    max_connections: int
    head_s: float = 10.0
    body_s: float = 20.0
    body_bytes_per_s: float = 10_000.0
    stall_s: float = 60.0
    max_pending_bytes: int = 256_000_000


class Connections(ServerState):
    """All connections of one server. `clock` is monotonic, in seconds."""

    def __init__(self, bounds: ConnectionBounds, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.bounds = bounds
        self.clock = clock

    def make_room(self) -> bool:
        """Whether there is room for one more connection; closes a waiting one if necessary and possible."""
        if len(self.connections) < self.bounds.max_connections:
            return True
        latest = self.clock() - _GRACE_S
        waiting = [connection for connection in self._waiting() if connection.since <= latest]
        if not waiting:
            return False
        # The address with the most connections loses one first, not the client that has waited longest.
        per_peer = Counter(connection.peer for connection in waiting)
        victim = min(waiting, key=lambda connection: (-per_peer[connection.peer], connection.since))
        log.warning("all %d connections are taken: closing idle ones", self.bounds.max_connections)
        victim.drop()
        return True

    def sweep(self) -> None:
        """Close overdue connections, and the largest pending requests if together they take too much memory."""
        now = self.clock()
        for connection in self._waiting():
            if connection.is_overdue(now):
                connection.time_out()
        # A body still arriving is held in memory.
        arriving = sorted(self._waiting(), key=lambda connection: connection.received)
        excess = sum(connection.received for connection in arriving) - self.bounds.max_pending_bytes
        while excess > 0:
            largest = arriving.pop()
            excess -= largest.received
            largest.drop()

    def _waiting(self) -> "list[BoundedProtocol]":
        return [one for one in self.connections if isinstance(one, BoundedProtocol) and not one.is_being_served]


class BoundedProtocol(H11Protocol):
    """One connection. `since` is when the current wait for the client began, `received` the bytes received since."""

    def __init__(self, config: uvicorn.Config, server_state: Connections, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        self._all = server_state
        self._last_cycle = self.cycle
        self._unsent = 0
        self.peer = ""
        self.since = 0.0
        self.received = 0

    @property
    def is_being_served(self) -> bool:
        """Whether a complete request is in progress and the client is reading the response."""
        cycle = self.cycle
        is_complete = cycle is not None and not cycle.more_body
        return is_complete and not cycle.response_complete and not self.flow.write_paused

    @property
    def _reads_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def is_overdue(self, now: float) -> bool:
        """Whether a connection that waits for its client has waited too long."""
        bounds = self._all.bounds
        if self.flow.write_paused or self.transport.is_closing():
            unsent = self.transport.get_write_buffer_size()
            # The client has read something, so its time starts again.
            if unsent < self._unsent:
                self.since = now
            self._unsent = unsent
            allowed = bounds.stall_s
        elif self._reads_body:
            allowed = bounds.body_s + self.received / bounds.body_bytes_per_s
        elif self.cycle is None or self.received:
            allowed = bounds.head_s
        else:
            return False  # idle between two requests: uvicorn's keep-alive timer runs
        return now - self.since > allowed

    def drop(self) -> None:
        """Close at once."""
        # asyncio reports the loss later; until then the connection would still be counted.
        self._all.connections.discard(self)
        self.transport.abort()

    def time_out(self) -> None:
        """Close because the client is too slow; it gets a response if it has begun a request."""
        has_begun = self._reads_body or self.received
        is_answered = self._reads_body and self.cycle.response_started
        if has_begun and not is_answered and not self.transport.is_closing():
            self.transport.write(_REQUEST_TIMEOUT)
        # `close` first sends what is buffered, which never ends if the client does not read.
        if self.transport.get_write_buffer_size():
            self.drop()
        else:
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self._restart_wait()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if not self.received:
            self.since = self._all.clock()
        self.received += len(data)
        super().data_received(data)
        if self.cycle is not self._last_cycle:  # a request's head is complete
            self._last_cycle = self.cycle
            self._restart_wait()

    def on_response_complete(self) -> None:
        """See uvicorn: wait for the next request."""
        self._restart_wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().pause_writing()
        self.since = self._all.clock()
        self._unsent = self.transport.get_write_buffer_size()

    def shutdown(self) -> None:
        """See uvicorn. A request still arriving does not delay the shutdown."""
        if self._reads_body:
            self.drop()
        else:
            super().shutdown()

    def _restart_wait(self) -> None:
        self.since = self._all.clock()
        self.received = 0


class Listener:
    """Accepts connections on `sock` one at a time, each when there is room for it. Replaces an `asyncio.Server`.

    asyncio's server accepts up to a full backlog at once, and logs a traceback for each when descriptors run out.
    """

    def __init__(self, sock: socket.socket, connections: Connections, protocol: Callable[[], BoundedProtocol]) -> None:
        self._sock = sock
        self._connections = connections
        self._protocol = protocol
        sock.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no more."""
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        """See `asyncio.Server`."""
        await asyncio.wait({self._accepting})

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._sock)
            except OSError as error:
                log.error("cannot accept connections: %s", error.strerror or error)
                await asyncio.sleep(_FAILED_PAUSE_S)
                continue
            try:
                while not self._connections.make_room():  # noqa: ASYNC110  # deadlines free connections without an event
                    await asyncio.sleep(_FULL_PAUSE_S)
                await loop.connect_accepted_socket(self._protocol, accepted)
            except BaseException as error:
                accepted.close()
                if isinstance(error, asyncio.CancelledError):
                    raise
                # Losing one connection is better than a server that stops accepting.
                log.error("cannot open a connection: %s", error)
