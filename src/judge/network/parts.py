"""The files in a multipart form, with their digests, computed while the form passes. Pure.

Nothing of a file is kept: a body may be larger than what is recorded of it.
"""

import hashlib
from typing import TypedDict

from judge.trajectory.forms import is_multipart, mark_of, part_head

MAX_PARTS = 100
# Browsers send a few hundred bytes.
_MAX_HEAD_BYTES = 16_384
_END = b"\r\n\r\n"


class SentPart(TypedDict):
    """A file as an entry of the network trace has it: `name` names the form's field."""

    name: str
    fileName: str
    contentType: str
    size: int
    sha256: str


class Parts:
    """The files in one body, which is passed to `add` in pieces of any size.

    `left_out`: there were more files than `MAX_PARTS`, or parts that cannot be read.
    """

    def __init__(self, mime_type: str) -> None:
        mark = mark_of(mime_type) if is_multipart(mime_type) else None
        self._mark = mark or b""
        # The first boundary begins a line as well, though the body begins with it.
        self._rest: bytes | None = b"\r\n" if mark else None
        # The passing file: its head, size and digest. Empty for a field or before the first boundary.
        self._head: dict[str, str] = {}
        self._size = 0
        self._hashed = hashlib.sha256()
        self._is_in_head = False
        self.files: list[SentPart] = []
        self.left_out = False

    def add(self, data: bytes) -> None:
        """Read the next piece."""
        if self._rest is None:
            return
        self._rest += data
        while self._rest is not None and (self._read_head() if self._is_in_head else self._read_content()):
            pass

    def _read_head(self) -> bool:
        """Read the head of a part, if it is complete. Returns whether anything else can be read."""
        rest = self._rest or b""
        if rest[:2] == b"--":
            self._rest = None
            return False
        at = rest.find(_END)
        if at < 0:
            if len(rest) > _MAX_HEAD_BYTES:
                self._rest, self.left_out = None, True
            return False
        field = part_head(rest[:at])
        self._head = field if field is not None and "fileName" in field else {}
        self._size, self._hashed = 0, hashlib.sha256()
        self._rest, self._is_in_head = rest[at + len(_END) :], False
        return True

    def _read_content(self) -> bool:
        rest = self._rest or b""
        at = rest.find(self._mark)
        # The end of what came so far may be the beginning of a boundary.
        content = rest[: at if at >= 0 else max(0, len(rest) - len(self._mark) + 1)]
        if self._head:
            self._size += len(content)
            self._hashed.update(content)
        if at < 0:
            self._rest = rest[len(content) :]
            return False
        self._end_part()
        self._rest, self._is_in_head = rest[at + len(self._mark) :], True
        return True

    def _end_part(self) -> None:
        head, self._head = self._head, {}
        if not head:
            return
        if len(self.files) >= MAX_PARTS:
            self.left_out = True
            return
        self.files.append(
            SentPart(
                name=head["name"][:300],
                fileName=head["fileName"][:300],
                contentType=head["contentType"][:200],
                size=self._size,
                sha256=self._hashed.hexdigest(),
            )
        )
