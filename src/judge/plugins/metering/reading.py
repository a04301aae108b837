"""Reads what an answer says about tokens while it passes: plain JSON or a stream of events, compressed or not."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from judge.plugins.metering.wire import WireFormat
from judge.results.metering import Tokens, Unknown

# The longest line of a stream, and the largest plain answer, that are kept to be read.
MAX_LINE_BYTES = 32_000_000
MAX_ANSWER_BYTES = 64_000_000
_PIECE_BYTES = 1_000_000
# zlib's number for gzip or zlib, by the header.
_ANY_HEADER = 47


class AnswerReader:
    """One answer. `feed` takes its bytes as they come, `end` says what they contain.

    Never raises: what cannot be read is unknown.
    """

    def __init__(self, wire: WireFormat, *, content_type: str, encoding: str) -> None:
        self._wire = wire
        self._is_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._unknown: Unknown | None = None
        self._inflate: Any = None
        name = encoding.strip().lower()
        if name in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(_ANY_HEADER)
        elif name not in ("", "identity"):
            self._unknown = "encoding"

    @property
    def is_stream(self) -> bool:
        """Whether the answer is a stream of events."""
        return self._is_stream

    @property
    def is_ended(self) -> bool:
        """Whether a stream has said that nothing follows; some clients leave then, without waiting for its end."""
        return self._wire.is_ended

    @property
    def model(self) -> str | None:
        """The model that answered, as far as read."""
        return self._wire.model

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        if self._unknown is not None:
            return
        try:
            for piece in self._plain(chunk):
                self._take(piece)
        except zlib.error:
            self._give_up("unreadable")

    def end(self) -> tuple[Tokens | None, Unknown | None]:
        """The tokens of the complete answer, or why they are not known."""
        if self._unknown is None:
            self._last()
        if self._unknown is not None:
            return None, self._unknown
        try:
            tokens = self._wire.tokens
        except ValidationError:
            return None, "unreadable"
        return tokens, None if tokens else "not_reported"

    def _plain(self, chunk: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            yield chunk
            return
        # In pieces, so that a small answer that expands to gigabytes takes no memory.
        while chunk:
            yield self._inflate.decompress(chunk, _PIECE_BYTES)
            chunk = self._inflate.unconsumed_tail

    def _take(self, piece: bytes) -> None:
        if self._unknown is not None:
            return
        self._rest += piece
        if not self._is_stream:
            if len(self._rest) > MAX_ANSWER_BYTES:
                self._give_up("too_large")
            return
        if b"\n" in piece or b"\r" in piece:
            # A line may end in \r\n, of which only the first half has come.
            *lines, rest = self._rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._rest = rest
            for line in lines:
                self._line(bytes(line))
        if len(self._rest) + sum(map(len, self._data)) > MAX_LINE_BYTES:
            self._give_up("too_large")

    def _line(self, line: bytes) -> None:
        """One line of an event stream (WHATWG HTML, 9.2.6): an empty one ends an event of one or more `data` lines."""
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            self._event()

    def _event(self) -> None:
        data, self._data = b"\n".join(self._data), []
        # Most events are pieces of text, which need not be parsed.
        if any(mark in data for mark in self._wire.marks):
            self._json(data)

    def _last(self) -> None:
        if self._is_stream:
            self._line(bytes(self._rest))
            if self._data:
                # Servers that leave out the last empty line.
                self._event()
        elif self._rest:
            self._json(bytes(self._rest))

    def _json(self, data: bytes) -> None:
        try:
            self._wire.take(json.loads(data))
        except (ValueError, RecursionError):
            self._give_up("unreadable")

    def _give_up(self, why: Unknown) -> None:
        self._unknown = why
        self._rest.clear()
        self._data.clear()
