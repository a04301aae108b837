"""Reads and writes `multipart/form-data` bodies. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})', re.IGNORECASE)
_NAME = re.compile(r'\bname="([^"]*)"', re.IGNORECASE)
_FILE_NAME = re.compile(r'\bfilename="([^"]*)"', re.IGNORECASE)
_MAX_PARTS = 2_000


@dataclass(frozen=True)
class Part:
    """One part; `head` are its headers as sent."""

    head: bytes
    data: bytes

    @property
    def name(self) -> str:
        """The name of the field."""
        match = _NAME.search(self.head.decode("utf-8", "replace"))
        return match[1] if match else ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return _FILE_NAME.search(self.head.decode("utf-8", "replace")) is not None

    @property
    def text(self) -> str:
        """The value."""
        return self.data.decode("utf-8", "replace")


def parts_of(body: bytes, mime_type: str) -> list[Part]:
    """The parts of a body; none if it cannot be read."""
    boundary = _BOUNDARY.search(mime_type)
    if boundary is None:
        return []
    mark = b"\r\n--" + boundary[1].encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(mark, _MAX_PARTS)[1:]
    parts = []
    for piece in pieces:
        if piece.startswith(b"--"):
            break
        head, blank, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if blank:
            parts.append(Part(head, data))
    return parts


def written_parts(parts: Iterable[Part], mime_type: str) -> bytes:
    """The body of these parts."""
    boundary = _BOUNDARY.search(mime_type)
    mark = b"--" + (boundary[1].encode("latin-1", "replace") if boundary else b"")
    pieces = [mark + b"\r\n" + part.head + b"\r\n\r\n" + part.data + b"\r\n" for part in parts]
    return b"".join(pieces) + mark + b"--\r\n"
