"""Decodes content encodings to compare bodies, and to find secrets in them. Pure.

Replayed bodies stay encoded as recorded. Sites are asked for `gzip` and `deflate` only, but some send others anyway.
"""

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

MAX_DECODED_BYTES = 64_000_000
# As browsers accept it (RFC 9659).
_MAX_ZSTD_WINDOW = 8 * 1024 * 1024


class _Damaged(Exception):
    """A body is not in the encoding that its header names."""


def decoded(body: bytes, encoding: str) -> bytes | None:
    """The body without its content encoding; `None` for an unknown, damaged or too large one."""
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    for name in reversed(names):
        if name == "identity":
            continue
        if name not in _DECODERS:
            return None
        try:
            body = _DECODERS[name](body)
        except (zlib.error, _Damaged):
            return None
        if len(body) > MAX_DECODED_BYTES:
            return None
    return body


def _gunzipped(body: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(body, MAX_DECODED_BYTES + 1)


def _inflated(body: bytes) -> bytes:
    # Servers send it with and without a zlib header.
    try:
        return zlib.decompressobj(15).decompress(body, MAX_DECODED_BYTES + 1)
    except zlib.error:
        return zlib.decompressobj(-15).decompress(body, MAX_DECODED_BYTES + 1)


def _unbrotlied(body: bytes) -> bytes:
    # Imported on first use, because few sites send it.
    import brotli

    try:
        # It may return a little more than the limit, and no more.
        return bytes(brotli.Decompressor().process(body, output_buffer_limit=MAX_DECODED_BYTES + 1))
    except brotli.error:
        raise _Damaged from None


def _unzstd(body: bytes) -> bytes:
    # Imported on first use, as above.
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
    try:
        with unpacker.stream_reader(body, read_across_frames=True) as reader:
            return bytes(reader.read(MAX_DECODED_BYTES + 1))
    except zstandard.ZstdError:
        raise _Damaged from None


_DECODERS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"gzip": _gunzipped, "x-gzip": _gunzipped, "deflate": _inflated, "br": _unbrotlied, "zstd": _unzstd}
)
