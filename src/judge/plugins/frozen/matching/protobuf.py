"""Protocol buffers without their schema: the same text for messages that differ in the order of fields only. Pure."""

from collections.abc import Iterator

_MAX_DEPTH = 8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


def in_order(data: bytes, depth: int = 0) -> str | None:
    """The fields of a message in a fixed order; `None` if the data is none."""
    try:
        fields = list(_fields(data))
    except ValueError:
        return None
    if not fields or depth > _MAX_DEPTH:
        return None
    written = []
    for number, value in fields:
        text = _as_text(value) if isinstance(value, bytes) else str(value)
        inner = in_order(value, depth + 1) if text is None and isinstance(value, bytes) else None
        written.append(f"{number}:{text if text is not None else inner if inner is not None else value!r}")
    return f"{{{', '.join(sorted(written))}}}"


def _as_text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return repr(text) if text.isprintable() else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("no field has the number 0")
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError("no such kind of field")
        if place + size > len(data):
            raise ValueError("a field ends after the message")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
    raise ValueError("a number does not end")
