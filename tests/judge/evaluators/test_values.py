from collections.abc import Mapping
from typing import Any

import pytest

from judge.evaluators.values import are_among, is_value, json_differences, keys_beside, of_name, of_path, text_of


@pytest.mark.parametrize(
    ("expected", "actual", "is_equal"),
    [
        ("Oak*", "oak desk", False), ("Oak*", "Oak desk", True), ("a b", " a  b ", True), ("7", 7, True),
        ("[7]", [7], False), ("{}", {}, False), ("true", True, True), ("é", "e", False),
        (7, 7.0, True), (7, " 7 ", True), (7, "7.5", False), (7, "seven", False), (1, True, False), (7, None, False),
        (7, [7], False), (0, "", False),
        (True, "TRUE", True), (True, 1, False), (True, "yes", False), (False, 0, False), (None, None, True),
        (None, "null", True), (None, "", False), (None, 0, False),
        ([1, "a"], ["1", "a"], True), ([1], [1, 2], False), ([1, 2], [2, 1], False), ([], {}, False), ([1], 1, False),
        ({"a": 1}, {"a": "1", "b": 2}, True), ({"a": None}, {}, False), ({"a": 1}, [("a", 1)], False),
    ],
)  # fmt: skip
def test_a_value_is_the_expected_one(expected: Any, actual: Any, is_equal: bool) -> None:
    assert bool(is_value(expected, actual)) is is_equal


@pytest.mark.parametrize(
    ("expected", "content", "beside"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ["b"]),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, ["a.y"]),
        ({"a": [1]}, {"a": [1, 2], "b": []}, ["a[1]", "b"]),
        ({"a[*].x": 1}, {"a": [{"x": 1}, {"x": 1, "y": 2}]}, ["a[1].y"]),
        ({"a[1]": 1}, {"a": [0, 1]}, ["a[0]"]),
        ({"a.b": 1}, {"a.b": 1, "a": {"b": 1}}, ["a"]),
        ({"[0]": 1}, [1, 2], ["$[1]"]),
        ({"a": 1}, {"a": {"deep": 1}}, ["a.deep"]),
        ({"a": 1}, "text", []),
    ],
)
def test_keys_to_which_no_expected_value_leads_are_named(
    expected: Mapping[str, Any], content: Any, beside: list[str]
) -> None:
    assert list(keys_beside(expected, content)) == beside


@pytest.mark.parametrize(
    ("expected", "values", "are_all"),
    [
        ({"a": 1}, {"a": [1]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, True),
        ({"a": [1, 2]}, {"a": [1, 3]}, False),
        ({"a": 1}, {}, False),
        ({"a": 1, "b": 2}, {"a": [1], "b": [3]}, False),
        ({}, {}, True),
    ],
)
def test_each_value_is_among_the_expected_ones(
    expected: Mapping[str, Any], values: Mapping[str, list[Any]], are_all: bool
) -> None:
    assert are_among(expected, lambda name: values.get(name, [])) is are_all


def test_a_name_that_occurs_twice_has_no_single_value() -> None:
    pairs = [("a", "1"), ("b", "2"), ("a", "3")]
    assert [of_name(pairs, name) for name in ("b", "a", "c")] == [["2"], [["1", "3"]], []]


def test_what_differs_is_named_with_what_was_found_and_what_nobody_sees() -> None:
    assert list(json_differences("post_data", {"a": 1, "b.c": "x"}, {"a": 1, "b": {"c": "x"}})) == []
    (one, two) = json_differences("post_data", {"a": "pay", "b": 2, "c": 3}, {"a": "p\u0430y", "b": 5, "c": 3})
    assert (one.name, one.difference != "", two.name, two.difference) == ("a", True, "b", "")
    assert of_path({"a.b": 1, "a": {"b": 2}}, "a.b") == [1]
    assert text_of({"é": None}) == '{"é": null}'
