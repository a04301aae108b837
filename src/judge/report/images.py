"""Screenshots on their way into the report: their size in pixels, and a link or copy of the file."""

import os
import shutil
import struct
from pathlib import Path

from shared.files import read_file

_HEAD_BYTES = 65_536
# JPEG's "start of frame" markers carry the size; C4, C8 and CC in that range are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a JPEG, PNG or WebP, from its first bytes; `None` when they do not say."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            width, height = struct.unpack(">II", data[16:24])
        elif data.startswith(b"\xff\xd8"):
            width, height = _jpeg_size(data)
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            width, height = _webp_size(data)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return (width, height) if 0 < width <= 65_535 and 0 < height <= 65_535 else None


def read_size(path: Path) -> tuple[int, int] | None:
    """`image_size` of a file; `None` when it cannot be read."""
    try:
        return image_size(read_file(path)[:_HEAD_BYTES])
    except (OSError, ValueError):
        return None


def place_image(source: Path, target: Path) -> bool:
    """Put `source` at `target`: a hard link where the file system allows, else a copy. False when it is missing."""
    if source.is_symlink() or not source.is_file():
        return False
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without hard links.
        try:
            shutil.copyfile(source, target)
        except OSError:
            return False
    return True


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while position < len(data):
        if data[position] != 0xFF:
            return 0, 0
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif marker in _FRAMES:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            position += 2
        else:
            position += 2 + max(2, struct.unpack(">H", data[position + 2 : position + 4])[0])
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = struct.unpack("<I", data[21:25])[0]
        return 1 + (bits & 0x3FFF), 1 + ((bits >> 14) & 0x3FFF)
    return 0, 0
