"""Values that differ on every visit: times near now, UUIDs, random fractions. Pure.

What looks like one is still an identity if a page received it (`identities`): a product's UUID names one product.
Hexadecimal digests are not among them, because persisted queries differ in nothing else. Only times that a program
probably made are included, not those that a person chose: within a day of now, and not on a full minute.
"""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

DAY_MS = 86_400_000
_MINUTE_MS = 60_000
_UUID = r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
_ISO = r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d(?::|%3A)\d\d(?::|%3A)\d\d\.\d{1,9}(?:Z|[+-]\d\d:?\d\d)?"
_EPOCH = r"(?<![\d.])1\d{9}(?:\d{3}(?:\d{3})?)?(?:\.\d+)?(?![\d.])"
_FRACTION = r"(?<![\d.\w])0?\.\d{8,}(?!\d)"
# jQuery's name for the callback of a JSONP request.
_CALLBACK = r"jQuery\d{15,25}_\d{13}"
_CHANGING = re.compile(
    rf"(?P<uuid>{_UUID})|(?P<callback>{_CALLBACK})|(?P<iso>{_ISO})|(?P<epoch>{_EPOCH})|(?P<fraction>{_FRACTION})"
)
_CLOCK = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_AGO = re.compile(r"\b\d+(?:\.\d+)? (?:milli)?(?:seconds?|minutes?|ms) ago\b|\bjust now\b")
# Elements whose attributes say that they contain a per-visit token.
_TOKEN_TAG = re.compile(r"<[^<>]{0,500}(?:csrf|xsrf|nonce|token|viewstate)[^<>]{0,1000}>", re.IGNORECASE)
_TOKEN_VALUE = re.compile(r"\b(value|content|nonce)=(\"[^\"]{8,}\"|'[^']{8,}')", re.IGNORECASE)
_TOKEN = re.compile(r"(?<![\w/.+-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_-]{24,}={0,2}(?![\w/.-])")


def changing_values(text: str) -> Iterator[str]:
    """Every value that looks like one that differs on each visit, in lower case."""
    return (found[0].lower() for found in _CHANGING.finditer(text))


def loosened(text: str, now_ms: int, identities: Collection[str] = frozenset()) -> str:
    """The text with each changing value replaced by the name of its kind, but for `identities`, in lower case."""

    def name_of(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        if found[0].lower() in identities:
            return found[0]
        if kind == "iso":
            return "{time}" if _is_machine_time(_iso_ms(found[0]), now_ms) else found[0]
        if kind == "epoch":
            return "{time}" if _is_machine_time(_epoch_ms(found[0]), now_ms) else found[0]
        return f"{{{kind}}}"

    return _CHANGING.sub(name_of, text)


def comparable(text: str, now_ms: int, identities: Collection[str] = frozenset()) -> str:
    """The text of an answer without values that differ in each: times, identifiers, tokens. `identities` stay."""
    text = _TOKEN_TAG.sub(lambda tag: _TOKEN_VALUE.sub(r"\1={token}", tag[0]), loosened(text, now_ms, identities))
    text = _CLOCK.sub(lambda found: "{time}" if _is_near(_clock_ms(found), now_ms) else found[0], text)
    return _TOKEN.sub("{token}", _AGO.sub("{time}", text))


def token_values(page: str) -> Iterator[str]:
    """The tokens in a page's forms and meta elements."""
    for tag in _TOKEN_TAG.finditer(page):
        for found in _TOKEN_VALUE.finditer(tag[0]):
            yield found[2][1:-1]


def _is_near(moment_ms: float | None, now_ms: int) -> bool:
    return moment_ms is not None and abs(moment_ms - now_ms) <= DAY_MS


def _is_machine_time(moment_ms: float | None, now_ms: int) -> bool:
    return _is_near(moment_ms, now_ms) and round(moment_ms or 0) % _MINUTE_MS != 0


def _epoch_ms(digits: str) -> float:
    whole, _, _ = digits.partition(".")
    return float(digits) * 1000 / float(10 ** max(0, len(whole) - 10))


def _iso_ms(text: str) -> float | None:
    return _parsed_ms(text.replace("%3A", ":"))


def _clock_ms(found: re.Match[str]) -> float | None:
    return _parsed_ms(f"{found['date']}T{found['time']}")


def _parsed_ms(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
