"""`Retry-After`, and keys in error texts. `test_adapters` has what all adapters do over the wire."""

import datetime

import pytest

from shared.llm.http import retry_after_s, without_secret

NOW_S = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("999999", 300.0),
        ("nan", 0.0),
        ("soon", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_bounds(value: str | None, seconds: float) -> None:
    assert retry_after_s({} if value is None else {"retry-after": value}, now_s=NOW_S) == seconds


def test_milliseconds_outrank_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "20", "retry-after": "2"}) == 0.02


def test_an_error_text_is_one_bounded_line_without_the_key() -> None:
    assert without_secret("bad\n key  k-1 " + "x" * 999, "k-1", limit=20) == "bad key [key] xxxxxx"
