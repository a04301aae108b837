"""Learns from two plays of the same walk what differs in each: values in requests, texts of answers, cookies. Pure.

Both plays took the same actions on the site in the same initial state. What differs between them is nothing that a
person entered, chose or navigated to.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, SiteRecording, header
from judge.plugins.frozen.matching.places import (
    PlaceDifference,
    Spot,
    Spots,
    Tree,
    ValuePath,
    differences,
    is_one_value,
    spot_between,
)
from judge.plugins.frozen.matching.values import DAY_MS, ReceivedValues, is_masked, time_in

# Page time and real time run apart while a site is recorded, and walks are played at different speeds.
CLOCK_TOLERANCE_MS = 120_000
_CONTEXT_CHARS = 40
_MAX_ALIGNED_WORDS = 4_000
_MAX_COMPARED_BYTES = 2_000_000
_WORD = re.compile(r"[\w-]+|[^\w-]")
# A request or message: its key, its tree, and how many writes preceded it.
RequestKey = tuple[str, Tree, int]


class RequestPair(NamedTuple):
    """A request in two plays, and what is known about the places where they differ.

    `is_same_state`: it was made after as many writes, so that the answers too should say the same.
    """

    one: RecordedExchange
    other: RecordedExchange
    spots: Spots
    is_same_state: bool = True

    @property
    def is_sure(self) -> bool:
        """Whether everything that differs is understood."""
        return all(spot.kind != "unsure" for spot in self.spots.values())


class Plays:
    """The walks of a recording that were played twice. `sent_by` describes the request of an exchange."""

    def __init__(
        self, recording: SiteRecording, received: ReceivedValues, sent_by: Callable[[RecordedExchange], RequestKey]
    ) -> None:
        self._received = received
        self._starts = {walk.name: walk.start_ms for walk in recording.walks}
        walks: defaultdict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in recording.exchanges:
            walks[exchange.walk].append(exchange)
        self.pairs: list[RequestPair] = []
        for walk in recording.walks:
            if walk.repeats is not None:
                self.pairs += self._paired(walks[walk.repeats], walks[walk.name], sent_by)

    @property
    def spots(self) -> dict[str, Spots]:
        """By the id of each exchange whose request was found in the other play: where the two differ."""
        return {each.record_id: pair.spots for pair in self.pairs for each in (pair.one, pair.other)}

    def _paired(
        self,
        ones: Sequence[RecordedExchange],
        others: Sequence[RecordedExchange],
        sent_by: Callable[[RecordedExchange], RequestKey],
    ) -> Iterator[RequestPair]:
        remaining: defaultdict[str, list[RecordedExchange]] = defaultdict(list)
        for each in others:
            remaining[sent_by(each)[1].shape].append(each)
        alone = list(ones)
        # First what is equal; a request after another number of writes belongs to another state of the site.
        for is_equal, is_same_state in ((True, True), (False, True), (False, False)):
            still = []
            for one in alone:
                tree = sent_by(one)[1]
                near = [
                    (place_differences, each)
                    for each in remaining[tree.shape]
                    if not is_same_state or sent_by(one)[2] == sent_by(each)[2]
                    if not is_equal or sent_by(one)[0] == sent_by(each)[0]
                    if (place_differences := differences(tree, sent_by(each)[1])) is not None
                ]
                if near:
                    place_differences, other = min(near, key=lambda option: len(option[0]))
                    remaining[tree.shape].remove(other)
                    yield RequestPair(one, other, self.spots_of(place_differences, one, other), is_same_state)
                else:
                    still.append(one)
            alone = still

    def spots_of(
        self,
        place_differences: Iterable[PlaceDifference],
        one: RecordedExchange,
        other: RecordedExchange,
        ticks: tuple[int, int] | None = None,
    ) -> Spots:
        """What is known about the places where a request of one play differs from the other one's.

        `ticks`: when each was sent, if not at the start of its exchange.
        """
        spots: dict[ValuePath, Spot] = {}
        for each in place_differences:
            spot = self._spot(each, one, other, ticks or (one.began, other.began))
            known = spots.get(each.place)
            spots[each.place] = spot if known is None else _both(known, spot)
        return spots

    def _spot(
        self, each: PlaceDifference, one: RecordedExchange, other: RecordedExchange, ticks: tuple[int, int]
    ) -> Spot:
        if each.is_order:
            return Spot("order")
        is_whole = any(is_masked(value) and self._received.anywhere(value) for value in (each.one, each.other))
        # A received token is compared as a whole.
        spot = Spot("varies") if is_whole else spot_between(each.one, each.other)
        a, b = spot.middle(each.one), spot.middle(each.other)
        if not a or not b:
            return spot._replace(kind="unsure")
        is_received = self._received.before(one.walk, a, ticks[0]), self._received.before(other.walk, b, ticks[1])
        if is_received == (False, False):
            return self._made_up(spot, a, b, one, other)
        is_fresh = not self._received.before(one.walk, b, ticks[0]) and not self._received.before(
            other.walk, a, ticks[1]
        )
        return spot._replace(kind="issued" if all(is_received) and is_fresh else "unsure")

    def _made_up(self, spot: Spot, a: str, b: str, one: RecordedExchange, other: RecordedExchange) -> Spot:
        times = time_in(a), time_in(b)
        if times[0] is None or times[1] is None:
            return spot if is_one_value(a, b) else spot._replace(kind="unsure")
        offsets = times[0] - self._starts[one.walk], times[1] - self._starts[other.walk]
        if max(map(abs, offsets)) > 3_660 * DAY_MS:
            return spot
        if abs(offsets[0] - offsets[1]) > CLOCK_TOLERANCE_MS:
            return spot._replace(kind="unsure")
        return spot._replace(kind="clock", offset_ms=sum(offsets) / 2)


def _both(one: Spot, other: Spot) -> Spot:
    """What is known about a place that stands for several items of a list."""
    is_alike = (one.kind, one.prefix, one.suffix) == (other.kind, other.prefix, other.suffix)
    return one._replace(marks=one.marks | other.marks) if is_alike else one._replace(kind="unsure")


def changing_cookies(pairs: Iterable[RequestPair], content: Callable[[str], str]) -> frozenset[str]:
    """The names of the cookies whose content differs between two plays."""
    cookie_names: set[str] = set()
    for pair in pairs:
        one, other = (cookies_in(each.request) for each in (pair.one, pair.other))
        cookie_names |= {name for name in one.keys() & other.keys() if content(one[name]) != content(other[name])}
    return frozenset(cookie_names)


def cookies_in(request: WireRequest) -> dict[str, str]:
    """The cookies of a request."""
    pairs = (pair.strip().partition("=") for pair in header(request.headers, "cookie").split(";"))
    return {name: value for name, equals, value in pairs if equals}


# Where an answer differs between two plays: the text before it, and how often that text came before.
Gap = tuple[str, int]


def gaps_between(one: RecordedExchange, other: RecordedExchange) -> frozenset[Gap]:
    """Where the texts of two answers differ; nothing for long texts that differ in more than words."""
    text, again = text_of(one), text_of(other)
    if text is None or again is None or text == again:
        return frozenset()
    words = _WORD.findall(text), _WORD.findall(again)
    if len(words[0]) == len(words[1]):
        aligned = list(zip(*words, strict=True))
    elif max(map(len, words)) <= _MAX_ALIGNED_WORDS:
        aligned = _aligned(*words)
    else:
        return frozenset()
    gaps: set[Gap] = set()
    writer = _Writer()
    for a, b in aligned:
        if a != b:
            gaps.add(writer.gap())
        writer.write(a if a == b else "{}")
    return frozenset(gaps)


def _aligned(one: list[str], other: list[str]) -> list[tuple[str, str]]:
    aligned: list[tuple[str, str]] = []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal":
            aligned += zip(one[a:b], other[c:d], strict=True)
        else:
            aligned.append(("".join(one[a:b]), "".join(other[c:d])))
    return aligned


def without_gaps(text: str, gaps: frozenset[Gap]) -> str:
    """The text of an answer without the words at the gaps."""
    if not gaps:
        return text
    writer = _Writer()
    for word in _WORD.findall(text):
        writer.write("{}" if writer.gap() in gaps else word)
    return writer.text


def words_at(exchange: RecordedExchange, gaps: frozenset[Gap]) -> Iterator[str]:
    """The words at the gaps of an answer."""
    writer = _Writer()
    for word in _WORD.findall(text_of(exchange) or ""):
        is_gap = writer.gap() in gaps
        if is_gap:
            yield word
        writer.write("{}" if is_gap else word)


class _Writer:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._end = ""
        self._counts: defaultdict[str, int] = defaultdict(int)

    def gap(self) -> Gap:
        return self._end, self._counts[self._end]

    def write(self, word: str) -> None:
        self._counts[self._end] += 1
        self._parts.append(word)
        self._end = (self._end + word)[-_CONTEXT_CHARS:]

    @property
    def text(self) -> str:
        return "".join(self._parts)


_TEXT = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml)|application/(?:javascript|x-ndjson)|image/svg", re.I)


def text_of(exchange: RecordedExchange) -> str | None:
    """The received text, in the answer and over a socket; `None` if it is not text, or a very long one."""
    answer = exchange.answer
    if exchange.messages:
        return "\n".join(each.data.decode("latin-1") for each in exchange.messages if not each.is_from_page)
    body = answer.readable if answer else b""
    if answer is None or len(body) > _MAX_COMPARED_BYTES or not _TEXT.match(header(answer.headers, "content-type")):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def gaps_by(pairs: Iterable[RequestPair], key: Callable[[RecordedExchange], str]) -> Mapping[str, frozenset[Gap]]:
    """By request: where its answers differ between plays."""
    gaps: defaultdict[str, frozenset[Gap]] = defaultdict(frozenset)
    for pair in pairs:
        if pair.is_same_state:
            gaps[key(pair.one)] |= gaps_between(pair.one, pair.other)
    return gaps
