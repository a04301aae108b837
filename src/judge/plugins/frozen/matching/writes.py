"""The writes of recorded walks: what may have changed something on the site, and what it may have preceded. Pure."""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedSocketMessage, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.messages import is_idle
from judge.plugins.frozen.matching.requests import is_recorded_write

# Instead of the number of a page.
NO_PAGE = 0
# The number of a write: an exchange's, or one of its messages'.
NumberOf = Callable[[RecordedExchange, RecordedSocketMessage | None], int]


class RecordedWrite(NamedTuple):
    """A write of a walk: when it began and ended, its number, and its exchange's.

    `page` is the number of the page that made it by itself in the step that loaded it.
    """

    began: int
    ended: int
    number: int
    source: int
    page: int = NO_PAGE


class PageLoad(NamedTuple):
    """A page that a step loaded: its document, the tick when the step ended, and whether it was loaded by no write."""

    document: RecordedExchange
    ended: float
    is_safe: bool


class RecordedWrites:
    """The writes of all walks, each in its order.

    While a page loads, the order of its writes and its other requests is arbitrary. Until the step ends, the page
    itself, which has a number like a write, therefore stands for its writes.
    """

    def __init__(
        self,
        exchanges: Sequence[RecordedExchange],
        scripted: Collection[str],
        number_of: NumberOf,
        page_of: Callable[[RecordedExchange], int],
    ) -> None:
        """`scripted` are the names of walks that scripts played."""
        self._scripted = scripted
        self._exchanges: defaultdict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in exchanges:
            self._exchanges[exchange.walk].append(exchange)
        self._last_steps = {
            walk: max(step or 0 for each in own for step in (each.request.step, *(one.step for one in each.messages)))
            for walk, own in self._exchanges.items()
        }
        self._page_of = page_of
        self._loads: dict[tuple[str, int], PageLoad | None] = {}
        self._writes: defaultdict[str, list[RecordedWrite]] = defaultdict(list)
        for exchange in exchanges:
            self._writes[exchange.walk] += self._of_exchange(exchange, number_of)
        for writes in self._writes.values():
            writes.sort()
        own: defaultdict[int, set[int]] = defaultdict(set)
        for write in (each for writes in self._writes.values() for each in writes):
            if write.page != NO_PAGE:
                own[write.page].add(write.number)
        self._own = {page: frozenset(numbers) for page, numbers in own.items()}

    def own(self, page: int) -> frozenset[int]:
        """The numbers of the writes that a page makes as it loads."""
        return self._own.get(page, frozenset())

    def of(self, exchange: RecordedExchange) -> Sequence[RecordedWrite]:
        """The writes of the walk of an exchange."""
        return self._writes.get(exchange.walk, ())

    def has_after(self, exchange: RecordedExchange) -> bool:
        """Whether there was a write after an exchange began, in its step."""
        end = self._end_of_step(exchange)
        return any(exchange.began < each.began < end for each in self.of(exchange))

    def _of_exchange(self, exchange: RecordedExchange, number_of: NumberOf) -> Iterator[RecordedWrite]:
        if is_recorded_write(exchange):
            load = self._load_of(exchange)
            is_own = load is not None and is_sent_by(exchange.request, load.document.request.url)
            page = self._page_of(load.document) if load is not None and is_own else NO_PAGE
            yield RecordedWrite(exchange.began, exchange.ended, number_of(exchange, None), exchange.number, page)
        for place in sorted(self.in_messages(exchange)):
            message = exchange.messages[place]
            yield RecordedWrite(message.tick, message.tick, number_of(exchange, message), exchange.number)

    def in_messages(self, exchange: RecordedExchange) -> frozenset[int]:
        """The places of a socket's messages from the page that may have changed something.

        None of them is a greeting: what a page says in the step in which it opened the socket, before the site says
        anything or if that step loaded the page. Loading a page is safe (RFC 9110, 9.2.1).
        """
        # Old archives have no steps of messages.
        own, end_of_step = exchange.request.step, self._end_of_step(exchange)
        from_site = (place for place, message in enumerate(exchange.messages) if not message.is_from_page)
        load = self._load_of(exchange)
        end = next(from_site, math.inf) if self._is_step(exchange) else 0
        end = math.inf if load is not None and load.is_safe else end
        return frozenset(
            place
            for place, message in enumerate(exchange.messages)
            if message.is_from_page and not is_idle(message.data)
            if place >= end or (message.tick >= end_of_step if message.step is None else message.step > own)
        )

    def _end_of_step(self, exchange: RecordedExchange) -> float:
        """The tick when the next step of a walk made its first request."""
        later = (each.began for each in self._exchanges[exchange.walk] if each.request.step > exchange.request.step)
        return min(later, default=math.inf)

    def _is_step(self, exchange: RecordedExchange) -> bool:
        """Whether the step of an exchange is one action. A log-in, and a walk by hand, is one step with everything."""
        return exchange.walk in self._scripted or exchange.request.step < self._last_steps[exchange.walk]

    def _load_of(self, exchange: RecordedExchange) -> PageLoad | None:
        """The page that the step of an exchange loaded, if that had begun before the exchange did."""
        key = walk, step = exchange.walk, exchange.request.step
        if key not in self._loads:
            in_step = (each for each in self._exchanges[walk] if each.request.step == step)
            documents = [each for each in in_step if kind_of(each.request) == "document"]
            is_safe, ended = not any(map(is_recorded_write, documents)), self._end_of_step(exchange)
            is_load = bool(documents) and self._is_step(exchange)
            self._loads[key] = PageLoad(documents[-1], ended, is_safe) if is_load else None
        load = self._loads[key]
        return load if load is not None and exchange.began > load.document.began else None

    def before(self, exchange: RecordedExchange) -> Sequence[int]:
        """The numbers of the writes that had ended when an exchange began, and by the loading page."""
        return next(self.preceding(exchange, exchange.began))

    def preceding(self, exchange: RecordedExchange, tick: int) -> Iterator[Sequence[int]]:
        """As `before`, for what an exchange did at a tick, with none, some and all of the writes under way."""
        load, page, since = self._load_of(exchange), NO_PAGE, math.inf
        if load is not None and tick < load.ended:
            page, since = self._page_of(load.document), load.document.began
        others = [each for each in self.of(exchange) if each.page != page or each.began < since]
        under_way = [each for each in others if each.began < tick <= each.ended]
        loading = [page] if self.own(page) else []
        for count in range(len(under_way) + 1):
            yield [*(each.number for each in others if each.ended < tick or each in under_way[:count]), *loading]

    def during(self, exchange: RecordedExchange, tick: int) -> Counter[int]:
        """Writes by others between the start of an exchange and a tick, which may have caused what arrived then."""
        return Counter(
            each.number
            for each in self.of(exchange)
            if exchange.began < each.began < tick and each.source != exchange.number
        )

    def since_ms(self, exchange: RecordedExchange, tick: int, at_ms: int) -> int | None:
        """How long before `at_ms` of an exchange, its `tick`, the last request began that may have caused it."""
        sources = [each.source for each in self.of(exchange) if exchange.began < each.began < tick]
        if not sources or sources[-1] == exchange.number:
            return None
        cause = next(each for each in self._exchanges[exchange.walk] if each.number == sources[-1])
        return None if cause.is_socket else exchange.at_ms + at_ms - cause.at_ms

    @cached_property
    def site_replies(self) -> Mapping[tuple[str, int], bool]:
        """By path of a socket and write: whether the site ever said something next."""
        replies: defaultdict[tuple[str, int], bool] = defaultdict(bool)
        for each in (each for walk in self._exchanges.values() for each in walk if each.is_socket):
            is_from_site = {message.tick: not message.is_from_page for message in each.messages}
            events = sorted([*(write.began for write in self.of(each)), *is_from_site, each.ended])
            for write in self.of(each):
                if each.began < write.began < each.ended and write.source != each.number:
                    following = events[bisect_right(events, write.began)]
                    replies[each.path, write.number] |= is_from_site.get(following, False)
        return replies


def is_sent_by(request: WireRequest, page_url: str) -> bool:
    """Whether the page at an address sent a request."""
    return header(request.headers, "referer") == page_url
