import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.pictures import a_jpeg
from helpers.runs import a_png
from shared.errors import ConfigError
from shared.images import image_size, require_pillow


@pytest.mark.parametrize("size", [(1, 1), (1280, 720), (65535, 3)])
def test_the_size_of_a_jpeg_is_read(size: tuple[int, int]) -> None:
    assert image_size(a_jpeg(*size)) == size


def test_the_size_of_a_png_is_read() -> None:
    assert image_size(a_png(320, 180)) == (320, 180)


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", a_jpeg(2, 2)[:30], a_png(2, 2)[:20], a_jpeg(0, 5), b"GIF89a"])
def test_bytes_that_do_not_tell_have_no_size(data: bytes) -> None:
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
