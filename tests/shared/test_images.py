import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.pictures import a_jpeg
from helpers.runs import a_png
from shared.errors import ConfigError
from shared.images import image_size, require_pillow

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xc4\x00\x04\x00\x00\xff\xff\xc2\x00\x0b\x08\x02\xd0\x05\x00\x01\x01\x11\x00"
)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (a_png(64, 36), (64, 36)),
        (JPEG, (1280, 720)),
        (webp(b"VP8X", b"\0\0\0\0" + (1279).to_bytes(3, "little") + (719).to_bytes(3, "little")), (1280, 720)),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 1280, 720)), (1280, 720)),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 1279 | 719 << 14)), (1280, 720)),
    ],
    ids=["png", "jpeg", "webp extended", "webp lossy", "webp lossless"],
)
def test_an_images_size_is_read_from_its_first_bytes(data: bytes, size: tuple[int, int]) -> None:
    assert image_size(data) == size


@given(st.binary(max_size=80), st.sampled_from([b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBP", JPEG[:30]]))
def test_no_bytes_make_reading_the_size_raise_or_loop(data: bytes, head: bytes) -> None:
    size = image_size(head + data)
    assert size is None or min(size) > 0


@pytest.mark.parametrize("size", [(1, 1), (1280, 720), (65535, 3)])
def test_the_size_of_a_jpeg_is_read(size: tuple[int, int]) -> None:
    assert image_size(a_jpeg(*size)) == size


def test_the_size_of_a_png_is_read() -> None:
    assert image_size(a_png(320, 180)) == (320, 180)


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", a_jpeg(2, 2)[:30], a_png(2, 2)[:20], a_jpeg(0, 5), b"GIF89a"])
def test_undecodable_bytes_have_no_size(data: bytes) -> None:
    assert image_size(data) is None


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    assert image_size(b"\xff\xd8\xff" + data) is None or len(data) > 5


def test_without_pillow_a_line_says_what_needs_it_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    with pytest.raises(ConfigError, match="single file need Pillow") as caught:
        require_pillow("reports in a single file", "report")
    assert caught.value.remedy == 'pip install "wabe[report]"'
