"""The kind and size of a picture, from its first bytes."""

import struct

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
# Start of frame: all codes from C0 to CF except three that mean something else.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def media_type(data: bytes) -> str | None:
    """The media type of a JPEG, PNG or WebP; `None` for other bytes."""
    if data.startswith(b"RIFF"):
        return "image/webp" if data[8:12] == b"WEBP" else None
    return "image/png" if data.startswith(_PNG) else "image/jpeg" if data.startswith(_JPEG + b"\xff") else None


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
