"""Bodies are decoded to be compared, and to find secrets in them."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.frozen import encodings
from judge.plugins.frozen.encodings import decoded
from judge.plugins.frozen.secrets import Secrets
from plugins.frozen.made import answer, request, walk


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(body)


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("X-GZIP", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
    ("zstd", zstd),
    ("identity", bytes),
    ("", bytes),
]


@given(body=st.binary(max_size=3_000), applied=st.lists(st.sampled_from(PACKERS), max_size=3))
def test_every_encoding_and_several_at_once_are_decoded(
    body: bytes, applied: list[tuple[str, Callable[[bytes], bytes]]]
) -> None:
    packed = body
    for _, pack in applied:
        packed = pack(packed)
    assert decoded(packed, ", ".join(name for name, _ in applied)) == body


@given(data=st.binary(max_size=200), name=st.sampled_from(["gzip", "deflate", "br", "zstd", "dcb", "compress"]))
def test_anything_else_is_unknown_and_no_error(data: bytes, name: str) -> None:
    result = decoded(data, name)
    assert result is None or name not in ("dcb", "compress")


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, raw_deflate, brotli.compress, zstd])
def test_a_body_that_becomes_too_large_is_left_encoded(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = {each for each, packer in PACKERS if packer is pack} - {"X-GZIP"}
    monkeypatch.setattr(encodings, "MAX_DECODED_BYTES", 100_000)
    assert decoded(pack(bytes(100_000)), name) == bytes(100_000)
    assert decoded(pack(bytes(100_001)), name) is None


@pytest.mark.parametrize(("name", "pack"), [("br", brotli.compress), ("zstd", zstd)])
def test_a_secret_in_an_encoding_that_nobody_asked_for_is_not_stored(name: str, pack: Callable[[bytes], bytes]) -> None:
    response = answer(
        pack(b'{"key": "hunter22-hunter22"}'), mime="application/json", headers=(("Content-Encoding", name),)
    )
    (exchange,) = walk("w", (request(), response))
    stored = Secrets(["hunter22-hunter22"]).exchange(exchange).answer
    assert stored is not None
    assert b"hunter22" not in (decoded(stored.body, dict(stored.headers).get("Content-Encoding", "")) or b"hunter22")
    assert stored.is_redacted
