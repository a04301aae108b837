"""Screenshots in a report."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.runs import a_png
from judge.report.images import image_size, place_image

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
def test_the_size_is_read_from_the_first_bytes(data: bytes, size: tuple[int, int]) -> None:
    assert image_size(data) == size


@given(st.binary(max_size=80), st.sampled_from([b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBP", JPEG[:30]]))
def test_no_bytes_make_it_raise_or_loop(data: bytes, head: bytes) -> None:
    size = image_size(head + data)
    assert size is None or min(size) > 0


def test_an_image_is_linked_and_not_copied_on_one_file_system(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    assert place_image(tmp_path / "a.png", tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_ino == (tmp_path / "b.png").stat().st_ino


def test_an_image_is_copied_where_links_are_not_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a.png").write_bytes(b"x")
    assert place_image(tmp_path / "a.png", tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() == b"x"


def test_a_link_to_another_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "a.png").symlink_to(tmp_path / "secret")
    assert not place_image(tmp_path / "a.png", tmp_path / "b.png")
    assert not (tmp_path / "b.png").exists()
