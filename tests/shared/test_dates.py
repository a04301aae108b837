"""Dates in texts, relative to a day; other braces stay as they are."""

from contextlib import suppress
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.dates import all_resolved, day_in, has_dates, mentions_dates, resolved_dates, with_dates, written_dates
from shared.fields import Invalid

MONDAY = date(2026, 11, 23)
# Far enough from the ends of the calendar for every offset below.
DAYS = st.dates(date(1000, 1, 1), date(5000, 1, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{today}", "2026-11-23"),
        ("Fly on {today+30d:%B %-d, %Y}.", "Fly on December 23, 2026."),
        ("{today-1d} and {today+2w}", "2026-11-22 and 2026-12-07"),
        ("{today+3m:%b %y}", "Feb 27"),
        ("{today+1y:%A, %d/%m}", "Tuesday, 23/11"),
        ("{next friday}", "2026-11-27"),
        ("{next monday:%a %-m/%-d}", "Mon 11/30"),
        ("{next sunday+7d:%j}", "340"),
        ("{today:100 %%, %Y}", "100 %, 2026"),
    ],
)
def test_a_date_is_written_out(text: str, expected: str) -> None:
    assert resolved_dates(text, MONDAY) == expected


@pytest.mark.parametrize(
    ("day", "text", "expected"),
    [
        (date(2026, 1, 31), "{today+1m}", "2026-02-28"),
        (date(2024, 2, 29), "{today+1y}", "2025-02-28"),
        (date(2026, 12, 31), "{today+1d}", "2027-01-01"),
        (date(2026, 1, 31), "{today-2m}", "2025-11-30"),
    ],
)
def test_a_day_that_a_month_does_not_have_is_its_last(day: date, text: str, expected: str) -> None:
    assert resolved_dates(text, day) == expected


@pytest.mark.parametrize(
    "text",
    [r"\d{4}-\d{2}", "{name}", "{next page}", "{todays_special}", '{"a": 1}', "{{today}}", "{", "}{", "{}", "today}"],
)
def test_other_braces_stay_as_they_are(text: str) -> None:
    assert (resolved_dates(text, MONDAY), has_dates(text)) == (text, False)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("on {today+x}", 4, "'{today+x}' is not a date"),
        ("{Today}", 1, "'{Today}' is not a date"),
        ("{today+30}", 1, "'{today+30}' is not a date"),
        ("a {today+1d:%Q}", 13, "'%Q' is not a part of a date"),
        ("a {today:soon}", 10, "the format 'soon' contains no date directive"),
        ("a {today+1d", 3, "'{today+1d' has no closing brace"),
        ("{today+9999y}", 1, "'{today+9999y}' is outside the calendar"),
        ("{next friday-}", 1, "'{next friday-}' is not a date"),
    ],
)
def test_what_looks_like_a_date_and_is_none_is_an_error_with_its_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        resolved_dates(text, MONDAY)
    assert (caught.value.column, caught.value.problem) == (column, problem)


@given(day=DAYS, count=st.integers(-999, 999))
def test_an_offset_in_days_is_that_many_days(day: date, count: int) -> None:
    assert resolved_dates(f"{{today{count:+d}d}}", day) == (day + timedelta(days=count)).isoformat()


@given(day=DAYS, number=st.integers(0, 6))
def test_the_next_weekday_is_one_of_the_seven_days_after_today(day: date, number: int) -> None:
    name = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")[number]
    result = date.fromisoformat(resolved_dates(f"{{next {name}}}", day))
    assert result.weekday() == number
    assert 1 <= (result - day).days <= 7


@given(day=DAYS, text=st.text())
def test_a_text_without_dates_is_unchanged(day: date, text: str) -> None:
    if not has_dates(text):
        assert resolved_dates(text, day) == text


@given(text=st.text(alphabet="{}today+-:%Ynext friday019dwmQ ", max_size=40))
def test_a_text_is_written_out_or_refused_and_then_has_no_dates_left(text: str) -> None:
    with suppress(Invalid):
        resolved = resolved_dates(text, MONDAY)
        assert has_dates(text) or resolved == text
        return
    with pytest.raises(Invalid) as caught:
        resolved_dates(text, MONDAY)
    assert 1 <= (caught.value.column or 0) <= len(text)


@given(day=DAYS)
def test_the_dates_of_a_text_are_known_by_how_they_are_written(day: date) -> None:
    text = "from {today:%B %-d, %Y} to {today+3d} in {place}"
    result = written_dates(text, day)
    assert set(result.values()) == {"{today:%B %-d, %Y}", "{today+3d}"}
    assert all(spelling in resolved_dates(text, day) for spelling in result)


TABLES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["{today}", "{next friday:%B}", "{x}", "plain", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "pattern"]), inner, max_size=2),
)


@given(value=TABLES, day=DAYS)
def test_dates_are_written_out_at_any_depth_and_nothing_else_changes(value: object, day: date) -> None:
    text = all_resolved(value, day)
    assert not mentions_dates(text)
    assert mentions_dates(value) or text == value
    assert all_resolved(text, day) == text


def test_in_a_pattern_a_date_matches_literally_and_a_mistake_is_named_with_its_key() -> None:
    table = {"pattern": [{"any": "{today:%d.%m.}"}, "{today:%d.%m.}"], "other": "{today:%d.%m.}", "kept": "{today}"}
    assert with_dates(table, ("pattern", "other", "none"), MONDAY) == {
        "pattern": [{"any": "23.11."}, r"23\.11\."],
        "other": "23.11.",
        "kept": "{today}",
    }
    with pytest.raises(Invalid) as caught:
        with_dates({"steps": [{"name": "on {today+x}"}]}, ("steps",), MONDAY)
    assert (caught.value.key, caught.value.column) == ("steps", 4)


@given(day=st.dates())
def test_a_day_is_read_as_it_is_written(day: date) -> None:
    assert day_in(day.isoformat()) == day


@pytest.mark.parametrize("value", ["2026-13-01", "today", "20261123", 20261123, None, "2026-11-23T00:00"])
def test_what_is_not_a_day_is_none(value: object) -> None:
    assert day_in(value) is None
