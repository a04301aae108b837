"""The files in a multipart form, with their digests, computed while the form passes. Pure.

Nothing of a file is kept: a body may be larger than what is recorded of it.
"""

import hashlib
from collections.abc import Mapping
from typing import TypedDict

from judge.trajectory.forms import MultipartReader, is_multipart, part_head

MAX_PARTS = 100


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
        self._reader = MultipartReader(mime_type if is_multipart(mime_type) else "")
        # Of the passing file.
        self._size, self._hashed = 0, hashlib.sha256()
        self._has_more = False
        self.files: list[SentPart] = []

    @property
    def left_out(self) -> bool:
        """Whether `files` are not all."""
        return self._has_more or self._reader.is_broken

    def add(self, data: bytes) -> None:
        """Read the next piece."""
        for head, content, ends in self._reader.read(data):
            field = part_head(head)
            if field is None or "fileName" not in field:
                continue
            self._size += len(content)
            self._hashed.update(content)
            if ends:
                self._end_file(field)

    def _end_file(self, field: Mapping[str, str]) -> None:
        size, digest = self._size, self._hashed.hexdigest()
        self._size, self._hashed = 0, hashlib.sha256()
        self._has_more |= len(self.files) >= MAX_PARTS
        if self._has_more:
            return
        name, file_name, kind = field["name"][:300], field["fileName"][:300], field["contentType"][:200]
        self.files.append(SentPart(name=name, fileName=file_name, contentType=kind, size=size, sha256=digest))
