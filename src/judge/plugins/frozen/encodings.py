"""Decodes content encodings to compare bodies. Replayed bodies stay encoded as recorded. Pure."""

import zlib

MAX_DECODED_BYTES = 64_000_000


def decoded(body: bytes, encoding: str) -> bytes | None:
    """The body without its content encoding; `None` if that is unknown, damaged or makes it too large."""
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    for name in reversed(names):
        if name == "identity":
            continue
        inflated = _inflated(body, name) if name in ("gzip", "x-gzip", "deflate") else None
        if inflated is None:
            return None
        body = inflated
    return body


def _inflated(body: bytes, name: str) -> bytes | None:
    # Servers send `deflate` with and without a zlib header.
    windows = (31,) if name != "deflate" else (15, -15)
    for window in windows:
        inflater = zlib.decompressobj(window)
        try:
            data = inflater.decompress(body, MAX_DECODED_BYTES)
        except zlib.error:
            continue
        return None if inflater.unconsumed_tail else data
    return None
