"""Bodies and messages with named values: JSON, and forms in both encodings. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# For writing and reading. A body with more is left out.
MAX_FIELDS = 20_000
# The numbers of packet types, a namespace and the number of an acknowledgement, as in `42/shop,7["saved",…]`.
_PACKET = re.compile(r"[0-9]{1,2}(?:/[^,\[{]{0,200},)?[0-9]{0,10}(?=[\[{])")
# Browsers send a few hundred bytes.
_MAX_HEAD_BYTES = 16_384
_LINE_END = b"\r\n"
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})', re.IGNORECASE)
_NAME = re.compile(r'\bname="([^"]*)"', re.IGNORECASE)
_FILE_NAME = re.compile(r'\bfilename="([^"]*)"', re.IGNORECASE)
_TYPE = re.compile(r"^content-type:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
# Browsers escape these characters in names, and no others (WHATWG HTML, multipart/form-data encoding).
_ESCAPES = (("%22", '"'), ("%0D", "\r"), ("%0A", "\n"))


def inner_json(text: str) -> tuple[str, str]:
    """A message of a web socket in two parts: the prefix that Engine.IO and Socket.IO put before JSON, and the rest."""
    match = _PACKET.match(text)
    return (match[0], text[match.end() :]) if match else ("", text)


def is_form(mime_type: str) -> bool:
    """Whether a body is a form like `a=1&b=2`."""
    return mime_type.lower().startswith("application/x-www-form-urlencoded")


def is_multipart(mime_type: str) -> bool:
    """Whether a body is a form that can contain files."""
    return mime_type.lower().startswith("multipart/form-data")


def multipart_fields(data: bytes, mime_type: str) -> Iterator[dict[str, str]]:
    """The fields as `params` of HAR 1.2. A file has a `fileName` but no content."""
    for part in parts_of(data, mime_type):
        if part.field is not None:
            yield part.field | {"value": "" if part.is_file else part.text}


@dataclass(frozen=True)
class Part:
    """One part of a form; `head` are its headers as sent."""

    head: bytes
    data: bytes

    @cached_property
    def field(self) -> dict[str, str] | None:
        """What its head says."""
        return part_head(self.head)

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.field["name"] if self.field else ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.field is not None and "fileName" in self.field

    @property
    def text(self) -> str:
        """The value."""
        return self.data.decode("utf-8", "replace")


class Piece(NamedTuple):
    """Some of the content of a part, under its headers as sent. `ends`: its last piece."""

    head: bytes
    content: bytes
    ends: bool


class MultipartReader:
    """Reads a form that comes in pieces of any size, and keeps no content.

    `is_broken`: the head of a part was too long, so the rest was not read.
    """

    def __init__(self, mime_type: str) -> None:
        self._mark = mark_of(mime_type) or b""
        self._is_over = not self._mark
        # What is not read yet. The first boundary begins a line as well, though the body begins with it.
        self._rest = _LINE_END
        # Of the part that passes; `None` before the first boundary, where nothing is a part (RFC 2046, 5.1.1).
        self._head: bytes | None = None
        self._is_in_head = self._is_first = False
        self.is_broken = False

    def read(self, data: bytes) -> Iterator[Piece]:
        """The pieces of parts in the next `data`."""
        text, at = b"" if self._is_over else self._rest + data, 0
        while not self._is_over:
            end = text.find(self._mark, at)
            if self._is_in_head:
                head_end = text.find(_LINE_END * 2, at, None if end < 0 else end + len(_LINE_END))
                self.is_broken = head_end < 0 and end < 0 and len(text) - at > _MAX_HEAD_BYTES
                self._is_over = self.is_broken or text.startswith(b"--", at)
                if self._is_over or (head_end < 0 and end < 0):
                    break
                # Without a blank line before the next boundary it is not a part.
                self._head = None if head_end < 0 else text[at:head_end].removeprefix(_LINE_END)
                # Of an empty part, the blank line may be the one that begins the boundary.
                at = end if head_end < 0 else head_end + len(_LINE_END)
                self._is_in_head, self._is_first = False, True
            # The end of what came so far may be the beginning of a boundary.
            stop = end if end >= 0 else max(at, len(text) - len(self._mark) + 1)
            start = at + len(_LINE_END) if self._is_first else at
            if end < 0 and stop < start:
                break
            if self._head is not None:
                yield Piece(self._head, text[start:stop], ends=end >= 0)
            self._is_in_head, self._is_first, at = end >= 0, False, stop
            if end < 0:
                break
            at += len(self._mark)
        self._rest = text[at:]


def parts_of(body: bytes, mime_type: str) -> list[Part]:
    """The parts of a form; none if it cannot be read. The last one may be incomplete."""
    # The boundary at the end is there even if the body was cut before it, so each part is one piece.
    whole = body + (mark_of(mime_type) or b"")
    return [Part(piece.head, piece.content) for piece in MultipartReader(mime_type).read(whole)]


def mark_of(mime_type: str) -> bytes | None:
    """What separates the parts of a form; `None` if its type does not say."""
    boundary = _BOUNDARY.search(mime_type)
    return None if boundary is None else b"\r\n--" + boundary[1].encode()


def part_head(head: bytes) -> dict[str, str] | None:
    """What the head of a part says, as a field of `params` of HAR 1.2 without its value; `None` without a name."""
    head_text = head.decode("utf-8", "replace")
    name, file_name, kind = (pattern.search(head_text) for pattern in (_NAME, _FILE_NAME, _TYPE))
    if name is None:
        return None
    field = {"name": _unescaped(name[1])}
    if file_name is None:
        return field
    return field | {"fileName": _unescaped(file_name[1]), "contentType": kind[1] if kind else ""}


def multipart_text(fields: Sequence[Mapping[str, str]], mime_type: str) -> str:
    """The body as text, without the contents of files."""
    boundary = _BOUNDARY.search(mime_type)
    if boundary is None:
        return ""
    lines = []
    for field in fields:
        is_file = "fileName" in field
        file_name = f'; filename="{_escaped(field["fileName"])}"' if is_file else ""
        head = f'Content-Disposition: form-data; name="{_escaped(field["name"])}"{file_name}'
        kind = f"\r\nContent-Type: {field['contentType']}" if is_file else ""
        lines.append(f"--{boundary[1]}\r\n{head}{kind}\r\n\r\n{field['value']}\r\n")
    return "".join(lines) + f"--{boundary[1]}--\r\n"


def _unescaped(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text


def _escaped(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(character, escape)
    return text
