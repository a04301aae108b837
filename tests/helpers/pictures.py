"""Pictures for tests."""

import struct


def a_jpeg(width: int, height: int) -> bytes:
    """The beginning of a JPEG, as far as its size: two other segments, then the frame."""
    others = b"\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xc4\x00\x04\x00\x00"
    return b"\xff\xd8" + others + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + bytes(10)
