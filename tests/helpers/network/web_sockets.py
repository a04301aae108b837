"""Pages that are web sockets: they send given messages, or answer each message (RFC 6455, as far as needed)."""

import base64
import contextlib
import hashlib
import struct
from collections.abc import Callable, Sequence

from helpers.browser.hostile_site import Handler

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE = 1, 8


def echoing(handler: Handler) -> None:
    """Answers each message with `echo: ` and the message."""
    talk(handler, (), lambda text: [f"echo: {text}"])


def saying(*messages: str) -> Callable[[Handler], None]:
    """Says these messages as soon as the socket is open."""
    return lambda handler: talk(handler, messages, lambda _: [])


def talk(handler: Handler, first: Sequence[str], answers: Callable[[str], Sequence[str]]) -> None:
    """Open the socket, say `first`, and answer each message until the browser closes."""
    accept = hashlib.sha1((handler.headers["Sec-WebSocket-Key"] + _GUID).encode()).digest()
    handler.send_response(101)
    handler.send_header("Upgrade", "websocket")
    handler.send_header("Connection", "Upgrade")
    handler.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
    handler.end_headers()
    handler.close_connection = True
    with contextlib.suppress(OSError, struct.error):
        for text in first:
            handler.wfile.write(_frame(text))
        while (text_of := _read(handler)) is not None:
            for text in answers(text_of):
                handler.wfile.write(_frame(text))


def _frame(text: str) -> bytes:
    data = text.encode()
    if len(data) < 126:
        return struct.pack("!BB", 0x80 | _TEXT, len(data)) + data
    if len(data) < 65_536:
        return struct.pack("!BBH", 0x80 | _TEXT, 126, len(data)) + data
    return struct.pack("!BBQ", 0x80 | _TEXT, 127, len(data)) + data


def _read(handler: Handler) -> str | None:
    """The next text; `None` when the browser closes."""
    head, size = struct.unpack("!BB", handler.rfile.read(2))
    size &= 0x7F
    if size == 126:
        (size,) = struct.unpack("!H", handler.rfile.read(2))
    elif size == 127:
        (size,) = struct.unpack("!Q", handler.rfile.read(8))
    mask = handler.rfile.read(4)
    data = handler.rfile.read(size)
    if head & 0x0F == _CLOSE:
        return None
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)).decode("utf-8", "replace")
