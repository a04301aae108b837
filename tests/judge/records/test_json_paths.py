"""Paths into JSON values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.json_paths import names_in, parse_path, values_at
from shared.fields import Invalid

CART = {"items": [{"sku": "D-1", "tags": ["a", "b"]}, {"sku": "L-9"}], "a.b": {"": 1}, "total": 3}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("total", [3]),
        ("$.total", [3]),
        ("items[0].sku", ["D-1"]),
        ("items[*].sku", ["D-1", "L-9"]),
        ("items[*].tags[*]", ["a", "b"]),
        ("$['a.b']", [{"": 1}]),
        ('["a.b"][""]', [1]),
        ("items[].sku", ["D-1", "L-9"]),
        ("items[0][sku]", ["D-1"]),
        ("$", [CART]),
        ("items[2].sku", []),
        ("items.sku", []),
        ("total.x", []),
        ("missing", []),
    ],
)
def test_a_path_leads_to_values(path: str, values: list[object]) -> None:
    assert values_at(CART, parse_path(path)) == values


@pytest.mark.parametrize(("path", "column"), [("a[", 2), ("a b", 2), ("a[0]b", 5), ("a..b", 2), ("a.", 2)])
def test_a_mistake_is_placed(path: str, column: int) -> None:
    with pytest.raises(Invalid) as caught:
        parse_path(path)
    assert caught.value.column == column


def test_the_names_on_the_way_are_known() -> None:
    assert names_in(parse_path("$.user.keys[0]['api key']")) == ["user", "keys", "api key"]


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters='"'), max_size=9), st.integers(), max_size=5
    )
)
def test_every_name_can_be_quoted(table: dict[str, int]) -> None:
    for name, value in table.items():
        assert values_at(json.loads(json.dumps(table)), parse_path(f'["{name}"]')) == [value]


@given(st.text(max_size=30))
def test_any_text_is_either_a_path_or_refused(text: str) -> None:
    try:
        path = parse_path(text)
    except Invalid:
        return
    values_at(CART, path)
