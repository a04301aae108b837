"""The frames of web sockets (RFC 6455): assembles messages, answers pings, and closes.

No extensions are negotiated, so messages are not compressed.
"""

import asyncio
import base64
import hashlib
import os
import time
from collections import deque
from contextlib import suppress

import h11
from websockets.exceptions import ProtocolError
from websockets.frames import BINARY, CLOSE, CONT, TEXT, CloseCode, Frame
from websockets.protocol import OPEN, Protocol, Side

from judge.network.interception import HeaderPairs, SocketClose, SocketMessage, WireAnswer
from judge.network.peers import CHUNK, HOP_BY_HOP, IDLE_TIMEOUT_S, ByteReader, ByteWriter, Peer, PrefixedReader

MAX_MESSAGE_BYTES = 32_000_000
_GOODBYE_S = 2.0
# Headers that each connection's handshake sets itself.
_OF_HANDSHAKE = HOP_BY_HOP | {
    b"sec-websocket-accept",
    b"sec-websocket-extensions",
    b"sec-websocket-key",
    b"content-length",
    b"transfer-encoding",
}
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def is_socket(request: h11.Request) -> bool:
    """Whether a request is the handshake of a web socket."""
    fields = dict(request.headers)
    return fields.get(b"upgrade", b"").lower() == b"websocket" and b"sec-websocket-key" in fields


def accept_of(key: bytes) -> bytes:
    """The answer to a handshake's key."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def new_key() -> bytes:
    """A key for a handshake."""
    return base64.b64encode(os.urandom(16))


def forwarded_headers(headers: HeaderPairs) -> list[tuple[bytes, bytes]]:
    """The forwarded headers of a handshake."""
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in encoded if name.lower() not in _OF_HANDSHAKE]


class Frames:
    """An open socket as a sequence of messages; `is_page`: the other end is the page, not the site."""

    def __init__(self, reader: ByteReader, writer: ByteWriter, *, is_page: bool, max_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._is_page = is_page
        self._bytes_left = max_bytes
        side = Side.SERVER if is_page else Side.CLIENT
        self._frames = Protocol(side, max_size=min(max_bytes, MAX_MESSAGE_BYTES))
        self._began = time.monotonic()
        self._ready: deque[SocketMessage | SocketClose] = deque()
        # The fragments of an incomplete message.
        self._parts: list[bytes] = []
        self._is_text = False
        self._is_over = False

    def _at_ms(self) -> int:
        return round((time.monotonic() - self._began) * 1000)

    async def receive(self) -> SocketMessage | SocketClose:
        """See `judge.network.interception.SocketPeer`."""
        while not self._ready:
            if self._is_over:
                return SocketClose(is_from_page=self._is_page, at_ms=self._at_ms())
            await self._read()
        return self._ready.popleft()

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(IDLE_TIMEOUT_S):
                data = await self._reader.read(CHUNK)
        except (OSError, TimeoutError):
            data = b""
        self._bytes_left -= len(data)
        if not data or self._bytes_left < 0:
            self._is_over = True
            return
        self._frames.receive_data(data)
        for event in self._frames.events_received():
            if isinstance(event, Frame):
                self._take(event)
        # A violation of the protocol ends the connection without a `CLOSE` event.
        if self._frames.parser_exc is not None:
            self._is_over = True
        await self._flush()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is CLOSE:
            self._is_over = True
            closed = self._frames.close_rcvd
            code, reason = (int(closed.code), closed.reason) if closed else (int(CloseCode.NO_STATUS_RCVD), "")
            self._ready.append(SocketClose(is_from_page=self._is_page, code=code, reason=reason, at_ms=self._at_ms()))
            return
        if frame.opcode not in (TEXT, BINARY, CONT):
            return
        if frame.opcode is not CONT:
            self._is_text, self._parts = frame.opcode is TEXT, []
        self._parts.append(bytes(frame.data))
        if frame.fin:
            whole, self._parts = b"".join(self._parts), []
            message = SocketMessage(is_from_page=self._is_page, is_text=self._is_text, data=whole, at_ms=self._at_ms())
            self._ready.append(message)

    async def send(self, message: SocketMessage) -> None:
        """See `judge.network.interception.SocketPeer`."""
        if self._is_over or self._frames.state is not OPEN:
            return
        if message.is_text:
            self._frames.send_text(message.data)
        else:
            self._frames.send_binary(message.data)
        await self._flush()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `judge.network.interception.SocketPeer`."""
        if self._is_over or self._frames.state is not OPEN:
            return
        if code == CloseCode.ABNORMAL_CLOSURE:
            self._is_over = True
            self._writer.close()
            return
        try:
            if code == CloseCode.NO_STATUS_RCVD:
                self._frames.send_close()
            else:
                self._frames.send_close(code, reason)
        except ProtocolError:
            # A code that must not be sent.
            self._frames.send_close(CloseCode.INTERNAL_ERROR)
        await self._flush()

    async def finish(self) -> None:
        """Close a socket still open, and wait briefly for the other side to do the same."""
        with suppress(OSError, TimeoutError):
            await self.close(CloseCode.GOING_AWAY)
            async with asyncio.timeout(_GOODBYE_S):
                while not self._is_over:
                    await self._read()

    async def _flush(self) -> None:
        # Empty data means that the connection may be closed, which its owner does.
        pieces = self._frames.data_to_send()
        with suppress(OSError):
            self._writer.write(b"".join(pieces))
            await self._writer.drain()


class RefusedSocket:
    """The site's end of a socket that the site refused: only an answer."""

    def __init__(self, answer: WireAnswer) -> None:
        self.answer = answer

    async def receive(self) -> SocketMessage | SocketClose:
        """See `judge.network.interception.SocketPeer`."""
        return SocketClose(is_from_page=False)

    async def send(self, message: SocketMessage) -> None:
        """See `judge.network.interception.SocketPeer`."""

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `judge.network.interception.SocketPeer`."""


class SiteFrames(Frames):
    """The site's end of an open socket."""

    def __init__(self, site: Peer, answer: WireAnswer, max_bytes: int) -> None:
        # Data that the site sent together with its answer.
        reader = PrefixedReader(site.http.trailing_data[0], site.reader)
        super().__init__(reader, site.writer, is_page=False, max_bytes=max_bytes)
        self.answer = answer
