"""The size of a picture, from its first bytes."""

import struct

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
# Start of frame: all codes from C0 to CF except three that mean something else.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a JPEG or PNG; `None` if the bytes do not tell."""
    try:
        if data.startswith(_PNG):
            width, height = struct.unpack_from(">II", data, 16)
        elif data.startswith(_JPEG):
            height, width = struct.unpack_from(">HH", data, _frame(data) + 5)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return (width, height) if width and height else None


def _frame(data: bytes) -> int:
    """Where the start of frame of a JPEG is. Raises `IndexError` or `struct.error` without one."""
    at = len(_JPEG)
    while data[at] == 0xFF:
        if data[at + 1] in _FRAMES:
            return at
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    raise IndexError
