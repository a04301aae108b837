"""How long a provider asks to wait before a request is repeated: in its headers, or in the text of its error.

Gateways and free tiers use every form: standard and private headers, Google's RetryInfo, and sentences.
"""

import datetime
import email.utils
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_TEXT = 20_000
# Larger numbers are a time since 1970: in seconds, from the second one in milliseconds.
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
_UNITS_S: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PIECE = (
    r"(\d{1,9}(?:\.\d{1,9})?)\s?(milliseconds?|msecs?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
    r"(?![a-z])"
)
_DURATION = rf"{_PIECE}(?:(?:,? and |,? ?){_PIECE})*"
_pieces = re.compile(_PIECE, re.IGNORECASE)
_duration = re.compile(_DURATION, re.IGNORECASE)
_WORDS = r"(?:in|after|for|at least|about|approximately|another|is|until|the next)"
_sentence = re.compile(
    r"(?:try again|try your request again|retry(?:ing)?|retry (?:your|this|the) request|wait(?:ing)?|resets?|available|"
    rf"available again|limit reset|back off|backoff)\b[\s:=(~-]{{0,3}}(?:{_WORDS}\b[\s:=(~]{{0,3}}){{0,3}}"
    rf"(?P<time>{_DURATION}|(?P<plain>\d{{1,6}}(?:\.\d{{1,9}})?)(?![\d.:/%\w-]))",
    re.IGNORECASE,
)
# Fields of an error that name the wait: in JSON, or in JSON inside of a text.
_field = re.compile(
    r"""[\\"']{1,4}(?P<name>retry[_-]?(?:delay|after|in)(?:[_-]?(?P<unit>ms|millis(?:econds)?|s|secs|seconds))?)"""
    r"""[\\"']{1,4}\s?[:=]\s?[\\"']{0,4}(?:\{\s?[\\"']{1,4}seconds[\\"']{1,4}\s?:\s?[\\"']{0,4})?"""
    rf"""(?P<time>{_DURATION}|(?P<plain>\d{{1,13}}(?:\.\d{{1,9}})?))""",
    re.IGNORECASE,
)
# The fields of the `RateLimit` header, in its older and newer form.
_standard = re.compile(r"(?:^|[;,\s])(?:t|reset)\s*=\s*(\d{1,9})")


def told_wait_s(headers: Mapping[str, str], body: str, *, now_s: float | None = None) -> float:
    """The seconds that an error's headers and body ask for; 0 if they ask for nothing.

    What asks for a retry counts before what only says when a limit is renewed.

    >>> told_wait_s({"Retry-After": "7"}, "")
    7.0
    >>> told_wait_s({}, "Rate limit reached. Please try again in 1m30s.")
    90.0
    """
    now = time.time() if now_s is None else now_s
    lower_headers = {name.lower(): value for name, value in headers.items()}
    text = body[:_MAX_TEXT]
    within = {name.lower(): value for name, value in _headers_within(text)}
    delay = max(_asked_s(lower_headers, now), _asked_s(within, now), *_in_text(text), 0.0)
    return delay or max(_renewed_s(lower_headers, now), _renewed_s(within, now))


def duration_s(text: str) -> float | None:
    """The seconds of a duration such as "22s", "1m30s", "500 ms" or "1 minute and 30 seconds"; `None` for others.

    >>> [duration_s(text) for text in ("1m30s", "500 ms", "1 minute and 30 seconds", "soon")]
    [90.0, 0.5, 90.0, None]
    """
    match = _duration.fullmatch(text.strip())
    return None if match is None else _seconds(match[0])


def _seconds(duration: str) -> float:
    total = 0.0
    for number, name in _pieces.findall(duration):
        lower = name.lower()
        is_ms = lower == "ms" or lower.startswith(("milli", "msec"))
        total += float(number) * _UNITS_S["ms" if is_ms else lower[0]]
    return total


def _asked_s(headers: Mapping[str, str], now_s: float) -> float:
    """What `Retry-After` and its private forms ask for."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := _number(headers.get(name, ""))) is not None:
            return max(0.0, milliseconds / 1000)
    for name in ("retry-after", "x-retry-after"):
        if (seconds := _value_s(headers.get(name, ""), now_s)) is not None:
            return seconds
    return 0.0


def _renewed_s(headers: Mapping[str, str], now_s: float) -> float:
    """When the used-up limits are renewed; a limit of which something remains was not exceeded."""
    used_up, others = [0.0], [0.0]
    for name, value in headers.items():
        if "ratelimit" in name.replace("rate-limit", "ratelimit") and "reset" in name:
            remaining = _number(headers.get(name.replace("reset", "remaining"), ""))
            (used_up if remaining is None or remaining <= 0 else others).append(_value_s(value, now_s) or 0.0)
    used_up += map(float, _standard.findall(headers.get("ratelimit", "")))
    return max(used_up) or max(others)


def _value_s(value: str, now_s: float) -> float | None:
    """The seconds that a header's value stands for: a number, a duration, a time since 1970, or a date."""
    number = _number(value)
    if number is not None:
        if number >= _EPOCH_S:
            number = (number / 1000 if number >= _EPOCH_MS else number) - now_s
        return max(0.0, number)
    if (duration := duration_s(value)) is not None:
        return duration
    for parse in (email.utils.parsedate_to_datetime, datetime.datetime.fromisoformat):
        try:
            at = parse(value.strip())
            at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
            return max(0.0, at.timestamp() - now_s)
        except (ValueError, OverflowError):
            continue
    return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    # Not a number, or not a finite one.
    return number if abs(number) < float("inf") else None


def _in_text(text: str) -> Iterator[float]:
    """What fields and sentences of an error ask for."""
    for match in _field.finditer(text):
        if match["plain"] is None:
            yield _seconds(match["time"])
        else:
            is_ms = (match["unit"] or "").lower().startswith("m")
            yield float(match["plain"]) / (1000 if is_ms else 1)
    for match in _sentence.finditer(text):
        yield float(match["plain"]) if match["plain"] is not None else _seconds(match["time"])


def _headers_within(text: str) -> Iterator[tuple[str, str]]:
    """The headers of another endpoint, which gateways repeat inside of their error."""
    try:
        pending: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            inner = value.get("headers")
            if isinstance(inner, dict):
                yield from ((str(name), str(each)) for name, each in inner.items())
            pending += value.values()
        elif isinstance(value, list):
            pending += value
