"""Finds the values in an archive that name something, among those that look as if they differed on each visit. Pure.

A value that a page received before it sent it is the site's: a UUID of a product, a time in a list. So is one in an
address to which the browser navigated. Another one that a page sent first is the page's own invention, which the site
may repeat afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from judge.plugins.frozen.encodings import decoded
from judge.plugins.frozen.exchanges import Answer, Exchange, header
from judge.plugins.frozen.matching.loose import changing_values

_MAX_READ_BYTES = 8_000_000


class Identities(NamedTuple):
    """Values in lower case. `received` are those of the site; `shared` those that several walks received."""

    received: frozenset[str]
    shared: frozenset[str]


def identities_in(exchanges: Iterable[Exchange]) -> Identities:
    """The identities in a recording, whose exchanges may be in any order."""
    walks: defaultdict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        walks[exchange.walk].append(exchange)
    counts = Counter(value for walk in walks.values() for value in _received_in(walk))
    return Identities(frozenset(counts), frozenset(value for value, count in counts.items() if count > 1))


def _received_in(walk: Sequence[Exchange]) -> set[str]:
    """The values that a walk received before it sent them."""
    events = sorted((event for exchange in walk for event in _events(exchange)), key=lambda event: event[0])
    sent: set[str] = set()
    received: set[str] = set()
    for _, is_sent, text in events:
        values = set(changing_values(text))
        if is_sent:
            sent |= values - received
        else:
            received |= values - sent
    return received


def _events(exchange: Exchange) -> Iterator[tuple[int, bool, str]]:
    """What was sent and received, each with its tick."""
    request = exchange.request
    cookies = header(request.headers, "cookie")
    if header(request.headers, "sec-fetch-mode") == "navigate":
        yield exchange.began, False, request.url
    yield exchange.began, True, f"{request.url}\n{cookies}\n{_text(request.body)}"
    if exchange.answer is not None:
        yield exchange.ended, False, _answered(exchange.answer)
    for message in exchange.messages:
        yield message.tick, message.sent, _text(message.data)


def _answered(answer: Answer) -> str:
    body = decoded(answer.body, header(answer.headers, "content-encoding"))
    named = "\n".join(value for name, value in answer.headers if name.lower() in ("location", "set-cookie", "link"))
    return f"{named}\n{_text(answer.body if body is None else body)}"


def _text(data: bytes) -> str:
    return data[:_MAX_READ_BYTES].decode("utf-8", "replace")
