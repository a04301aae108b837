"""Files: what digests are made of, and what is not read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.files import canonical_json, read_file, read_json, sha256_file, sha256_json, write_json

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
