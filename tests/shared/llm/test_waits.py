"""How long providers ask to wait, in all the forms in which they and their gateways say it."""

import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.llm.waits import duration_s, told_wait_s

NOW_S = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC).timestamp()
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "25s"}


def told_s(headers: dict[str, str] | None = None, body: Any = "") -> float:
    text = body if isinstance(body, str) else json.dumps(body)
    return told_wait_s(headers or {}, text, now_s=NOW_S)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": ""}, 0.0),
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "999999"}, 999999.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "22s"}, 22.0),
        ({"retry-after": str(int(NOW_S) + 40)}, 40.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "20", "retry-after": "2"}, 0.02),
        ({"x-ms-retry-after-ms": "700"}, 0.7),
        ({"x-retry-after": "7"}, 7.0),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-tokens": "6ms"}, 0.006),
        # Only what is used up has to be renewed.
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "8.64s",
                "x-ratelimit-remaining-tokens": "5000",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            8.64,
        ),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "3s"}, 3.0),
        ({"retry-after": "3", "x-ratelimit-reset-requests": "6m0s"}, 3.0),
        ({"x-ratelimit-reset": str(int(NOW_S) + 12)}, 12.0),
        ({"x-ratelimit-reset": str((int(NOW_S) + 12) * 1000)}, 12.0),
        ({"x-rate-limit-reset": "15"}, 15.0),
        ({"x-ratelimit-reset-after": "4.5"}, 4.5),
        ({"ratelimit-reset": "33"}, 33.0),
        ({"ratelimit": "limit=100, remaining=0, reset=30"}, 30.0),
        ({"ratelimit": '"default";r=0;t=31'}, 31.0),
        ({"anthropic-ratelimit-requests-reset": "2026-01-01T12:00:21Z"}, 21.0),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-01-01T11:00:21Z"}, 0.0),
    ],
)
def test_headers_ask_for_seconds_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert told_s(headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"code": 429, "message": "Quota exceeded.", "details": [RETRY_INFO]}}, 25.0),
        ({"error": {"details": [{"retryDelay": "25.125s"}]}}, 25.125),
        ({"error": {"details": [{"retryDelay": {"seconds": "25"}}]}}, 25.0),
        ({"error": {"message": "Please retry in 25.1s."}}, 25.1),
        # The error of another endpoint as text, as gateways pass it on.
        ({"error": {"message": "RateLimitError: " + json.dumps({"error": {"details": [RETRY_INFO]}})}}, 25.0),
        ({"error": {"message": f"provider says: { ({'error': {'details': [RETRY_INFO]}}) }"}}, 25.0),
        ({"error": {"metadata": {"headers": {"Retry-After": "9"}}}}, 9.0),
        ({"error": {"metadata": {"headers": {"X-RateLimit-Reset": str((int(NOW_S) + 12) * 1000)}}}}, 12.0),
        ({"error": {"retry_after": 17}}, 17.0),
        ({"error": {"retry_after_ms": 1700}}, 1.7),
        ({"error": {"retryAfterMs": "1700"}}, 1.7),
        ({"error": {"retry_after_seconds": 3.5}}, 3.5),
        ({"error": {"retry_after": None}}, 0.0),
        ("Rate limit reached for m on requests per min (RPM): Limit 3, Used 3. Please try again in 20s.", 20.0),
        ("Limit 30000, Used 29870, Requested 1511. Please try again in 2.762s. Visit our site", 2.762),
        ("Please try again in 1m30s.", 90.0),
        ("Please try again in 7m12.5s. Need more tokens?", 432.5),
        ("Please try again in 6m0s", 360.0),
        ("Please try again in 500ms.", 0.5),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please retry after 24 seconds.", 24.0),
        ("Try again in 1 minute and 30 seconds", 90.0),
        ("Try again after 2 minutes.", 120.0),
        ("Too many requests, please wait 30 seconds before trying again", 30.0),
        ("You can retry your request after: 5s", 5.0),
        ("Limit resets in 45s", 45.0),
        ("Retry-After: 12", 12.0),
        ("retry in 3", 3.0),
        ("Available again in about 10 seconds", 10.0),
        ("wait for another 15 sec", 15.0),
        ("WAIT 5 MINUTES", 300.0),
        # Numbers that are not waits.
        ("Rate limit: 20 requests per 1m. Slow down.", 0.0),
        ("Please try again later (request 12345)", 0.0),
        ("The answer was cut after 30s", 0.0),
        ("Please try again in a moment", 0.0),
        ("Retry with model gpt-4", 0.0),
        ("Try again in 2026-01-01", 0.0),
        ("Please wait: see https://a.test/5s", 0.0),
        ({"error": {"message": "bad gateway"}}, 0.0),
    ],
)
def test_bodies_ask_for_seconds_in_every_form(body: Any, seconds: float) -> None:
    assert told_s(body=body) == pytest.approx(seconds)


def test_the_longest_of_several_requests_to_wait_counts() -> None:
    assert told_s({"retry-after": "1"}, {"error": {"details": [RETRY_INFO]}}) == 25.0


def test_a_body_does_not_take_long_to_read() -> None:
    hostile = "try again in " + "1s" * 9_000 + "retry" * 9_000 + "\"'" * 9_000
    assert told_s(body=hostile) > 0


@given(
    hours=st.integers(0, 48),
    minutes=st.integers(0, 59),
    milliseconds=st.integers(1, 59_999),
    phrase=st.sampled_from(["Please try again in {}.", "retry after {}", 'x "retryDelay": "{}"', "Wait {} please"]),
)
def test_every_duration_is_read_as_it_was_written(hours: int, minutes: int, milliseconds: int, phrase: str) -> None:
    seconds = milliseconds / 1000
    text = f"{hours}h" * (hours > 0) + f"{minutes}m" * (hours + minutes > 0) + f"{seconds:.3f}s"
    expected = hours * 3600 + minutes * 60 + seconds
    assert duration_s(text) == pytest.approx(expected)
    assert told_s(body=phrase.format(text)) == pytest.approx(expected)


@given(st.text(max_size=200), st.dictionaries(st.sampled_from(["retry-after", "ratelimit-reset"]), st.text()))
def test_any_text_is_read_without_an_error(body: str, headers: dict[str, str]) -> None:
    assert told_s(headers, body) >= 0
