"""Binary data by its fields, without a schema: protocol buffers, and the frames of gRPC-Web around them. Pure."""

import re
from collections.abc import Iterator
from typing import Any

# More is not read, and compared as a whole.
_MAX_BYTES = 200_000
_MAX_DEPTH = 12
_MAX_VARINT_BITS = 64
_VARINT, _BYTES = 0, 2
_SIZES = {1: 8, 5: 4}
_FRAME_HEAD = 5
_COMPRESSED, _TRAILERS = 1, 0x80
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff]")

# Each with its number and its kind on the wire, which also says how to write it again.
WireFields = list[dict[str, Any]]


def as_text(data: bytes) -> str:
    """The data as text; what is not UTF-8 byte by byte."""
    return data.decode("utf-8", "surrogateescape")


def is_binary(text: str) -> bool:
    """Whether a text, such as `as_text` returns, has characters that no text has."""
    return _CONTROLS.search(text) is not None


def data_content(data: bytes) -> str | WireFields:
    """The fields of binary data in their order, and otherwise its text. Other data has other fields or another text."""
    text = as_text(data)
    if not is_binary(text) or len(data) > _MAX_BYTES:
        return text
    for parse in (_frames, _message):
        try:
            return parse(data)
        except ValueError:
            continue
    return text


def _frames(data: bytes) -> WireFields:
    frames, place = [], 0
    while place < len(data):
        kind, start = data[place], place + _FRAME_HEAD
        end = start + int.from_bytes(data[place + 1 : start], "big")
        if kind & ~(_COMPRESSED | _TRAILERS) or start > len(data) or end > len(data):
            raise ValueError("not frames")
        frames.append({f"frame {kind}": _value(data[start:end], 0)})
        place = end
    return frames


def _message(data: bytes, depth: int = 0) -> WireFields:
    return [{f"{number}.{kind}": value} for number, kind, value in _fields(data, depth)]


def _value(data: bytes, depth: int) -> str | WireFields:
    """What a field of bytes contains: a text, a message, or anything else."""
    text = as_text(data)
    if not is_binary(text) or depth >= _MAX_DEPTH:
        return text
    try:
        return _message(data, depth + 1)
    except ValueError:
        return text


def _fields(data: bytes, depth: int) -> Iterator[tuple[int, int, Any]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("no field has the number 0")
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError("no such kind of field")
        field = data[place : place + size]
        if len(field) < size:
            raise ValueError("a field ends after the message")
        yield number, kind, _value(field, depth) if kind == _BYTES else int.from_bytes(field, "little")
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < _MAX_VARINT_BITS:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            if not byte and shift > 7:
                # Written otherwise than any program does: other data must not read the same.
                raise ValueError("a number has leading zeros")
            return value, place
    raise ValueError("a number does not end")
