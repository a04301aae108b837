"""The guard's connections, on top of h11."""

import asyncio
import contextlib
from typing import Protocol

import h11

from judge.network.interception import judges_page

CHUNK = 65_536
IDLE_TIMEOUT_S = 300.0
# Headers about one connection, which a proxy does not forward (RFC 9110, 7.6.1). `transfer-encoding` is kept, because
# h11 frames bodies by it.
HOP_BY_HOP = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"te", b"upgrade", b"proxy-authorization"})
# Without a content length: the end of the connection ends the body.
REFUSAL = (b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n") + judges_page(
    "Blocked", "This address is outside the assessment's reach."
)


# Its status.
REFUSED = 403


def decoded(head: h11.Request | h11.Response) -> tuple[tuple[str, str], ...]:
    """The headers as they were sent, with their names in the case of the wire."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())


class ByteReader(Protocol):
    """A source of bytes, such as `asyncio.StreamReader`."""

    async def read(self, n: int = -1, /) -> bytes:
        """At most `n` bytes; none at the end."""
        ...


class ByteWriter(Protocol):
    """A sink for bytes, such as `asyncio.StreamWriter`."""

    def write(self, data: bytes, /) -> None:
        """Send bytes, at once or later."""
        ...

    async def drain(self) -> None:
        """Wait until the send buffer has drained."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...

    async def wait_closed(self) -> None:
        """Wait until it is closed."""
        ...


class Peer:
    """One end of a connection."""

    def __init__(self, role: type[h11.CLIENT] | type[h11.SERVER], reader: ByteReader, writer: ByteWriter) -> None:
        # This bounds the headers of a message, which h11 collects before it returns them.
        self.http = h11.Connection(role, max_incomplete_event_size=CHUNK)
        self.reader = reader
        self.writer = writer

    async def receive(self) -> object:
        """The next event of h11."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(IDLE_TIMEOUT_S):
                self.http.receive_data(await self.reader.read(CHUNK))
        return event

    async def send(self, event: h11.Event) -> None:
        """Send an event of h11."""
        self.writer.write(self.http.send(event) or b"")
        await self.writer.drain()

    async def close(self) -> None:
        """End the connection."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class PrefixedReader:
    """A reader whose first bytes have been read already."""

    def __init__(self, first: bytes, reader: ByteReader) -> None:
        self._first = first
        self._reader = reader

    async def read(self, n: int = -1, /) -> bytes:
        """See `ByteReader`."""
        if not self._first:
            return await self._reader.read(n)
        data, self._first = (self._first, b"") if n < 0 else (self._first[:n], self._first[n:])
        return data
