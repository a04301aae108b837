"""Files: what digests are made of, and what is not read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.files import (
    canonical_json,
    copy_file,
    read_end,
    read_file,
    read_json,
    read_text,
    sha256_file,
    sha256_json,
    write_atomic,
    write_json,
)

# Lone surrogates among them: pages and participants can send them.
TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_canonical_json_survives_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("j") / "value.json"
    write_json(path, value)
    assert canonical_json(read_json(path)) == canonical_json(value)


def test_the_two_halves_of_a_character_have_its_canonical_form() -> None:
    assert canonical_json("\ud83d\ude00") == canonical_json("\U0001f600") == b'"\\ud83d\\ude00"'


def test_the_order_of_keys_does_not_count_and_the_order_of_items_does() -> None:
    assert canonical_json({"b": 1, "a": [2, 1]}) == b'{"a":[2,1],"b":1}'
    assert sha256_json({"a": 1, "b": 2}) == sha256_json({"b": 2, "a": 1})
    assert sha256_json([1, 2]) != sha256_json([2, 1])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinities_have_no_canonical_form(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json([value])


def test_a_files_digest_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_file(tmp_path / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps("x" * 100))
    with pytest.raises(ValueError, match="larger than 50 bytes"):
        read_json(tmp_path / "x.json", max_bytes=50)


def test_the_head_of_a_file_over_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").write_bytes(b"0123456789")
    assert read_file(tmp_path / "x.jpg", head_bytes=4) == b"0123"


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(tmp_path / "x.json")


@pytest.mark.parametrize("kind", ["FIFO", "device", "sparse", "folder"])
@pytest.mark.parametrize("reader", [read_file, read_text, read_json, sha256_file])
def test_only_regular_files_of_bounded_size_are_read(
    tmp_path: Path, kind: str, reader: Callable[[Path], object]
) -> None:
    path = tmp_path / "x"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as stream:
            # Refused by its size: nothing is read, and no memory is taken.
            stream.truncate(1 << 40)
    with pytest.raises((OSError, ValueError)):
        reader(path)
    assert read_end(path, 10) in ("", "\0" * 10)


def test_what_is_not_a_file_is_not_copied(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(ValueError, match="not a regular file"):
        copy_file(tmp_path / "x", tmp_path / "y")
    assert not (tmp_path / "y").exists()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(pipe, b"rows")
        assert os.read(reader, 10) == b"rows"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
