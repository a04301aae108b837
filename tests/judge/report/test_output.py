"""Where a report goes: a folder, or one file."""

import base64
import io
import os
import re
from pathlib import Path

import pytest
from PIL import Image

from helpers.runs import a_png
from judge.report.output import MAX_IMAGE_WIDTH, SingleFile, place_file


@pytest.fixture
def stream() -> io.BytesIO:
    return io.BytesIO()


def embedded(stream: io.BytesIO) -> dict[str, tuple[str, bytes]]:
    blocks = re.findall(
        r'<script type="text/plain" id="file:([^"]*)" data-type="([^"]*)">([^<]*)</script>', stream.getvalue().decode()
    )
    return {name: (kind, base64.b64decode(data)) for name, kind, data in blocks}


def test_an_image_in_a_single_file_is_scaled(stream: io.BytesIO, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(a_png(1280, 720))
    SingleFile(stream).file("images/t1/a.png", tmp_path / "a.png")
    kind, data = embedded(stream)["images/t1/a.png"]
    assert (kind, Image.open(io.BytesIO(data)).size) == ("image/webp", (MAX_IMAGE_WIDTH, 540))


def test_a_small_image_that_cannot_be_decoded_is_embedded_as_it_is(stream: io.BytesIO, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xffdamaged")
    SingleFile(stream).file("a.jpg", tmp_path / "a.jpg")
    assert embedded(stream) == {"a.jpg": ("image/jpeg", b"\xff\xd8\xffdamaged")}


@pytest.mark.parametrize("data", [b"", b"<script>alert(1)</script>", b"\xff\xd8\xff" + bytes(1_000_000)])
def test_what_is_not_an_image_or_a_large_damaged_one_is_left_out(
    stream: io.BytesIO, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "a.png").write_bytes(data)
    SingleFile(stream).file("a.png", tmp_path / "a.png")
    assert stream.getvalue() == b""


def test_a_single_file_follows_no_link_and_misses_no_file(stream: io.BytesIO, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(a_png())
    (tmp_path / "a.png").symlink_to(tmp_path / "secret.png")
    out = SingleFile(stream)
    out.file("a.png", tmp_path / "a.png")
    out.file("b.png", tmp_path / "is-not-there.png")
    assert stream.getvalue() == b""


def test_an_image_is_linked_and_not_copied_on_one_file_system(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    place_file(tmp_path / "a.png", tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_ino == (tmp_path / "b.png").stat().st_ino


def test_an_image_is_copied_where_links_are_not_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a.png").write_bytes(b"x")
    place_file(tmp_path / "a.png", tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() == b"x"


def test_a_link_to_another_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "a.png").symlink_to(tmp_path / "secret")
    place_file(tmp_path / "a.png", tmp_path / "b.png")
    assert not (tmp_path / "b.png").exists()
