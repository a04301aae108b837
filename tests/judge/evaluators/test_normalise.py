import json
from datetime import date
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.evaluators.normalise import NormaliseError, ValueType, is_same, normalise, only_value, parse_number, string

DAYS = st.dates(min_value=date(1000, 1, 1), max_value=date(9999, 12, 31))
MONTHS = "January February March April May June July August September October November December".split()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,299", "1299"), ("1.299,50", "1299.50"), ("1 299.5", "1299.5"), ("1'299", "1299"), ("1,299,000", "1299000"),
        ("12,5", "12.5"), ("0,125", "0.125"), ("3.125", "3.125"), ("-3", "-3"), ("−3", "-3"), ("12 %", "12"),
    ],
)  # fmt: skip
def test_a_number_is_read_regardless_of_its_separators(text: str, number: str) -> None:
    assert parse_number(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1,29,3", "1.299,50.3", "3x", "1-2", "9" * 50])
def test_what_is_not_one_number_is_none(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("€12.50", ("12.50", "EUR")), ("12,50 €", ("12.50", "EUR")), ("EUR 1.299", ("1299", "EUR")),
        ("US$ 3", ("3", "USD")), ("about 5 dollars", ("5", "USD")), ("costs £1,000", ("1000", "GBP")),
        ("3 uſd", ("3", "USD")),
    ],
)  # fmt: skip
def test_a_currency_is_known_by_symbol_code_or_word(text: str, value: tuple[str, str]) -> None:
    assert only_value(text, "currency") == (Decimal(value[0]), value[1])


@pytest.mark.parametrize(
    "text",
    ["2024-03-05", "2024/3/5", "5 March 2024", "the 5th of March 2024", "March 5, 2024", "Mar 5 2024", "05.03.2024",
     "03/05/2024", "at 2024-03-05T10:00:00Z"],
)  # fmt: skip
def test_a_date_is_read_in_the_usual_formats(text: str) -> None:
    assert only_value(text, "date") == date(2024, 3, 5)


def test_a_date_with_slashes_is_month_first_unless_that_is_impossible() -> None:
    assert only_value("31/12/2024", "date") == date(2024, 12, 31)


@pytest.mark.parametrize(
    "text",
    ["a, b and c", "The letters are: a, b, c.", "- a\n- b\n- c", "1. a\n2. b\n3. c", "a; b; c", '["a", "b", "c"]',
     'Here: ["A", "B", "C"]'],
)  # fmt: skip
def test_a_list_is_read_however_it_is_written(text: str) -> None:
    expected = normalise(["a", "b", "c"], "list")
    assert only_value(text, "list", expected=expected) == expected


def test_numbers_in_a_list_may_have_zeros_at_their_end() -> None:
    expected = normalise([1.5, 2, 100], "list")
    assert is_same(only_value("100, 1.50 and 2.0", "list", expected=expected), expected, "list")


@pytest.mark.parametrize(
    "text", ["[" * 1_200 + "]" * 1_200, '{"a":' * 900 + "1" + "}" * 900, '{"a": 1e999}', '{"a": 2, "a": 1}']
)
def test_json_that_other_programs_would_refuse_is_not_a_value(text: str) -> None:
    with pytest.raises(NormaliseError):
        only_value(text, "json")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("3 or 4", "number"),
        ("yes, no", "boolean"),
        ("€1 or €2", "currency"),
        ('{"total": 5} {"total": 6}', "json"),
        ('```json\n{"total": 5}\n```\nor ["6"]', "json"),
    ],
)
def test_two_different_values_answer_nothing(text: str, kind: ValueType) -> None:
    with pytest.raises(NormaliseError, match="2 different"):
        only_value(text, kind)


def test_the_same_value_twice_is_one() -> None:
    assert only_value("3, that is 3.0", "number") == 3
    assert only_value('{"a": 1, "b": 2}, in short {"b": 2.0, "a": 1}', "json") == {"a": 1, "b": 2}


def test_two_lists_are_not_one_of_them() -> None:
    expected = normalise(["a", "b"], "list")
    assert only_value('["a", "b"] or ["c", "d"]', "list", expected=expected) != expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("many", "number"),
        ("$3 Mio.", "currency"),
        ("$3 Mio.", "number"),
        (True, "number"),
        ("x", "list"),
        ("soon", "date"),
        (float("nan"), "number"),
    ],
)
def test_a_declared_value_of_another_type_is_refused(value: Any, kind: ValueType) -> None:
    with pytest.raises(NormaliseError):
        normalise(value, kind)


@given(DAYS)
def test_a_day_is_the_same_in_every_format(day: date) -> None:
    month = MONTHS[day.month - 1]
    for spelling in (day.isoformat(), f"{day.day} {month} {day.year:04}", f"{month} {day.day}, {day.year:04}"):
        assert only_value(f"on {spelling}.", "date") == day


@given(st.text(max_size=300), st.sampled_from(get_args(ValueType)))
def test_any_text_has_one_value_or_none_of_a_type(text: str, kind: ValueType) -> None:
    try:
        value = only_value(text, kind)
    except NormaliseError:
        return
    assert is_same(value, value, kind)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_json_in_an_answer_is_what_was_put_there(value: Any) -> None:
    expected = normalise([value], "json")
    assert is_same(only_value(f"Here it is:\n```json\n{json.dumps([value])}\n```", "json"), expected, "json")


@given(st.text(max_size=60))
def test_a_string_is_the_same_when_it_is_normalised_again(text: str) -> None:
    assert string(string(text)) == string(text)
