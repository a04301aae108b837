"""Where values come from: which the site sent, when, and in which answer. Pure.

A received value is the site's, so that another one means something else. It may be found in any notation:
plain, escaped, or as the placeholder that stands for a secret in requests.
"""

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.binary import data_content
from judge.plugins.frozen.secrets import PLACEHOLDER, placeholder

DAY_MS = 86_400_000
_MAX_READ_BYTES = 8_000_000
# Shorter values are found as whole words only.
_MIN_PART_CHARS = 4
_CONTEXT_CHARS = 12
_TOKEN = re.compile(r"[^\s\"'<>&;,(){}\[\]\\]{16,4000}")
_MIN_TOKEN_CHARS = 16
_CUT_TOKEN = re.compile(r"[\w-]{17,200}")
_DIGEST = re.compile(r"redacted-[0-9a-f]{16}")
_EPOCH = re.compile(r"\d{10}(?:\d{3}(?:\d{3})?)?(?:\.\d+)?")


class ValueSource(NamedTuple):
    """Where a value was received first: the exchange, the text before it, and how often that text came before."""

    exchange: RecordedExchange
    before: str
    ordinal: int


class _Text(NamedTuple):
    tick: int
    exchange: RecordedExchange
    text: str


class ReceivedValues:
    """What the site sent in each walk of a recording."""

    def __init__(self, exchanges: Iterable[RecordedExchange]) -> None:
        self._exchanges = tuple(exchanges)
        if any(_DIGEST.search(value) for each in self._exchanges for _, value in each.request.headers):
            # It takes seconds for large archives, which no page should wait for.
            _ = self._placeholders
        self.anywhere = lru_cache(maxsize=10_000)(self._anywhere)
        self.origin = lru_cache(maxsize=10_000)(self._origin)

    def before(self, walk: str, value: str, tick: int) -> bool:
        """Whether a walk received the value until a tick, or a person entered it in the address bar.

        A value that the site only repeats after the page sent it is the page's.
        """
        if is_masked(value):
            source = self._placeholders.get(walk, {}).get(value)
            return source is not None and source.tick <= tick
        first = next((each.tick for each in self._texts.get(walk, ()) if _contains(each.text, value)), tick + 1)
        return first <= tick and not any(
            sent_at < first and _contains(text, value) for sent_at, text in self._texts_by_walk[walk]
        )

    def plain(self, value: str) -> str | None:
        """What a placeholder stands for, if it was received; any other value as it is."""
        if not is_masked(value):
            return value
        return next((each[value].text for each in self._placeholders.values() if value in each), None)

    def _anywhere(self, value: str) -> bool:
        """Whether any walk received the value."""
        if is_masked(value):
            return any(value in each for each in self._placeholders.values())
        return any(_contains(each.text, value) for texts in self._texts.values() for each in texts)

    def _origin(self, value: str) -> ValueSource | None:
        """Where a value was received first."""
        if is_masked(value):
            source = next((each[value] for each in self._placeholders.values() if value in each), None)
            return None if source is None else _origin_in(source, source.text)
        if len(value) < _MIN_PART_CHARS:
            return None
        for texts in self._texts.values():
            for each in texts:
                if value in each.text:
                    return _origin_in(each, value)
        return None

    @cached_property
    def _texts(self) -> Mapping[str, list[_Text]]:
        texts_by_walk: defaultdict[str, list[_Text]] = defaultdict(list)
        for exchange in self._exchanges:
            texts_by_walk[exchange.walk] += (_Text(tick, exchange, text) for tick, text in _received(exchange))
        return {walk: sorted(each, key=lambda text: text.tick) for walk, each in texts_by_walk.items()}

    @cached_property
    def _texts_by_walk(self) -> Mapping[str, list[tuple[int, str]]]:
        texts_by_walk: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for exchange in self._exchanges:
            request = exchange.request
            # What was entered in the address bar is received by the page.
            if not is_entered(request):
                texts_by_walk[exchange.walk].append((exchange.began, f"{request.url}\n{_text(request.body)}"))
            texts_by_walk[exchange.walk] += (
                (each.tick, _text(each.data)) for each in exchange.messages if each.is_from_page
            )
        return texts_by_walk

    @cached_property
    def _placeholders(self) -> Mapping[str, dict[str, _Text]]:
        """By walk and placeholder: the token itself, with its exchange and tick."""
        placeholders: defaultdict[str, dict[str, _Text]] = defaultdict(dict)
        # Every walk received the same scripts.
        tokens_in = lru_cache(maxsize=None)(_tokens_in)
        for walk, texts in self._texts.items():
            for each in texts:
                for name, value in tokens_in(each.text).items():
                    placeholders[walk].setdefault(name, _Text(each.tick, each.exchange, value))
        self._add_beginnings(placeholders)
        return placeholders

    def _add_beginnings(self, placeholders: Mapping[str, dict[str, _Text]]) -> None:
        """Add what pages cut from the beginnings of tokens, at the lengths that explain what they sent in headers."""
        sent = {each for one in self._exchanges for _, value in one.request.headers for each in _DIGEST.findall(value)}
        unknown = sent.difference(*placeholders.values())
        if not unknown:
            return
        tokens = [
            (known, each)
            for known in placeholders.values()
            for each in tuple(known.values())
            if _CUT_TOKEN.fullmatch(each.text)
        ]
        lengths = {
            length
            for _, each in tokens
            for length in range(_MIN_TOKEN_CHARS, len(each.text))
            if placeholder(each.text[:length]) in unknown
        }
        for known, each in tokens:
            for text in (each.text[:length] for length in lengths):
                known.setdefault(placeholder(text), each._replace(text=text))


def _tokens_in(text: str) -> Mapping[str, str]:
    """The tokens in a text, by their placeholders."""
    tokens: dict[str, str] = {}
    for token in _TOKEN.finditer(text):
        for value in {token[0], token[0].partition("=")[2], html.unescape(token[0])}:
            if len(value) >= _MIN_TOKEN_CHARS:
                for notation in {value, quote(value, safe="")}:
                    tokens.setdefault(placeholder(notation), value)
    return tokens


def is_masked(value: str) -> bool:
    """Whether a placeholder stands for a secret in it."""
    return PLACEHOLDER.search(value) is not None


def _contains(text: str, value: str) -> bool:
    if len(value) < _MIN_PART_CHARS:
        return re.search(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])", text) is not None
    notations = {
        value,
        unquote(value),
        quote(value, safe="", errors="surrogateescape"),
        html.escape(value),
        json.dumps(value)[1:-1],
    }
    return any(each in text for each in notations)


def _origin_in(source_text: _Text, value: str) -> ValueSource:
    text = next((text for tick, text in _received(source_text.exchange) if tick == source_text.tick), "")
    at = text.find(value)
    before = text[max(0, at - _CONTEXT_CHARS) : at]
    return ValueSource(source_text.exchange, before, text.count(before, 0, at) if before else 0)


def _received(exchange: RecordedExchange) -> Iterator[tuple[int, str]]:
    """What was received, each with its tick."""
    if is_entered(exchange.request):
        yield exchange.began, exchange.request.url
    if exchange.answer is not None:
        yield exchange.ended, _answered(exchange.answer)
    for message in exchange.messages:
        if not message.is_from_page:
            yield message.tick, _text(message.data)


def is_entered(request: WireRequest) -> bool:
    """Whether the browser was sent to the address, rather than led there by a page."""
    site = header(request.headers, "sec-fetch-site")
    return kind_of(request) == "document" and (site == "none" or not (site or header(request.headers, "referer")))


def _answered(answer: RecordedResponse) -> str:
    header_text = "\n".join(
        value for name, value in answer.headers if name.lower() in ("location", "set-cookie", "link")
    )
    return f"{header_text}\n{_text(answer.readable)}"


def _text(data: bytes) -> str:
    """The data as text, and what stands in the fields of binary data."""
    content = data_content(data)
    fields = "" if isinstance(content, str) else json.dumps(content)
    return data[:_MAX_READ_BYTES].decode("utf-8", "replace") + fields


def time_in(value: str) -> float | None:
    """The time that a value stands for, in milliseconds since 1970: a number of 10, 13 or 16 digits, or ISO 8601."""
    if _EPOCH.fullmatch(value):
        whole = value.partition(".")[0]
        return float(value) * 1000 / 10.0 ** (len(whole) - 10)
    if len(value) < 16 or "T" not in value.upper():
        return None
    try:
        moment = datetime.fromisoformat(value.replace("%3A", ":"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
