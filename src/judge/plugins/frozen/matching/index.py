"""The index of an archive: every recorded request by its keys and places, with the context it was made in."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple
from urllib.parse import unquote

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import (
    RecordedExchange,
    RecordedResponse,
    RecordedSocketMessage,
    SiteRecording,
    header,
)
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.answers import fingerprint, holds_in_any_state
from judge.plugins.frozen.matching.contexts import (
    AUTHORIZATION,
    Context,
    chosen_login,
    content_of,
    cookies_of,
    counted,
    path_of,
    token_in,
)
from judge.plugins.frozen.matching.places import (
    ANY,
    PlaceDifference,
    Spot,
    Spots,
    Tree,
    ValuePath,
    differences,
    fitted,
    is_same_place,
    message_tree,
    tree_of,
)
from judge.plugins.frozen.matching.plays import (
    CLOCK_TOLERANCE_MS,
    Plays,
    RequestKey,
    RequestPair,
    changing_cookies,
    cookies_in,
    gaps_by,
    words_at,
)
from judge.plugins.frozen.matching.reads import ReadEffects
from judge.plugins.frozen.matching.requests import Keys, is_recorded_write, keys_of, varying_headers
from judge.plugins.frozen.matching.states import Learnt, ObservationGroup, RecordedObservation
from judge.plugins.frozen.matching.synthesis import accepts, without_conditions
from judge.plugins.frozen.matching.values import ReceivedValues, is_entered, is_masked, time_in
from judge.plugins.frozen.matching.writes import RecordedWrites
from judge.plugins.frozen.secrets import PLACEHOLDER
from judge.trajectory.redaction import is_secret_header

# Comparing each of them takes time, and of so many requests of one shape others are as near.
_MAX_NEAR = 200
# Shorter ones are in many values by chance.
_MIN_ENTERED = 6
_WORDS = re.compile(r"[^0-9A-Za-z]+")
# Of so many things, one can be taken for another.
_MIN_NAMED = 2
# A request or message in two plays: its trees, and the ticks when it was sent.
SentTwice = tuple[RequestPair, tuple[Tree, Tree], tuple[int, int]]


class IndexedRequest(NamedTuple):
    """A request to answer: its keys and its places, and the values that the participant entered so far.

    `plain` are its places with the secrets that `tree` has placeholders for.
    """

    keys: Keys
    tree: Tree
    plain: Tree
    entered: Collection[str] = ()


class Fit(NamedTuple):
    """Recorded requests that one matches. If it differs from them in what pages make up: where, and its places."""

    group: ObservationGroup
    is_exact: bool
    spots: Spots | None = None
    plain: Tree | None = None


class Index:
    """Everything learnt from an archive. Immutable while attempts are played."""

    def __init__(self, recording: SiteRecording) -> None:
        self.recording = recording
        self._exchanges = sorted(recording.exchanges, key=lambda each: (each.walk, each.began))
        self._by_walk: defaultdict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in self._exchanges:
            self._by_walk[exchange.walk].append(exchange)
        self._starts = {walk.name: walk.start_ms for walk in recording.walks}
        self._logins = frozenset(filter(None, (chosen_login(exchange.request) for exchange in self._exchanges)))
        self._varying = _varying(self._exchanges)
        self.received = ReceivedValues(self._exchanges)
        self._requests_by_id: dict[str, IndexedRequest] = {}
        self._classes: dict[str, str | None] = {}
        self._before = _writes_before(self._exchanges)
        self._plays = Plays(recording, self.received, self._request_of)
        self._spots_of = self._plays.spots
        # By shape: what may differ in its requests and messages, and the keys of those for which it is known.
        self._spots: defaultdict[str, list[Spots]] = defaultdict(list)
        self._known_keys: set[str] = set()
        self._paths: defaultdict[int, set[ValuePath]] = defaultdict(set)
        self._class_keys: dict[str, str] = {}
        # By the id of the exchange and the tick of each message that two plays sent: where they differ.
        self._message_spots: dict[tuple[str, int], Spots] = {}
        messages = list(self._sent_twice())
        for pair, trees, ticks in messages:
            self._learn(pair, trees, ticks)
        for pair, trees, ticks in messages:
            self._learn_orders(pair, trees, ticks)
        for known in self._spots.values():
            # What is known for any order comes first, because a class is the first known one.
            known.sort(key=lambda spots: -sum(spot.kind == "order" for spot in spots.values()))
        self._class_keys.clear()
        self._gaps = gaps_by(self._plays.pairs, self.class_of)
        self._changing = changing_cookies(self._plays.pairs, content_of)
        self._credentials = self._credential_headers()
        self._sent_tokens = {
            token_in(header(each.request.headers, name)) for each in self._exchanges for name in self._credentials
        }
        self._numbers: dict[str, int] = {}
        self._by_path: dict[str, int] = {}
        repeated = {walk.repeats for walk in recording.walks}
        scripted = {walk.name for walk in recording.walks if walk.is_reference or walk.repeats or walk.name in repeated}
        self.writes = RecordedWrites(self._exchanges, scripted, self._number_of, self.page)
        observations = list(self._observed())
        keys = [self._asked_by(each.exchange).keys for each in observations]
        classes = [self.class_of(each.exchange) for each in observations]
        self._full = _grouped(zip((each.full for each in keys), observations, strict=True))
        self._any_accept = _grouped(zip((each.any_accept for each in keys), observations, strict=True))
        self._by_class = _grouped(zip(classes, observations, strict=True))
        self._shapes: defaultdict[str, list[RecordedObservation]] = defaultdict(list)
        for each in observations:
            self._shapes[self._asked_by(each.exchange).tree.shape].append(each)
        # What the answers depend on.
        self.learnt = Learnt()
        self._parts: dict[tuple[int | str, ...], ObservationGroup] = {}
        self._at: defaultdict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in self._exchanges:
            self._at[exchange.request.url].append(exchange)

    # What a request is.

    def indexed_request(
        self, request: WireRequest, plain: WireRequest | None = None, entered: Collection[str] = ()
    ) -> IndexedRequest:
        """The keys and places of a request; `plain` is the same one with its secrets."""
        varying = sorted(self._varying.get(path_of(request.url), frozenset()))
        request = without_conditions(request)
        tree = tree_of(request, varying)
        return IndexedRequest(keys_of(request, varying), tree, tree_of(plain, varying) if plain else tree, entered)

    def _asked_by(self, exchange: RecordedExchange) -> IndexedRequest:
        if exchange.record_id not in self._requests_by_id:
            self._requests_by_id[exchange.record_id] = self.indexed_request(exchange.request)
        return self._requests_by_id[exchange.record_id]

    def _request_of(self, exchange: RecordedExchange) -> RequestKey:
        request = self._asked_by(exchange)
        return request.keys.any_accept, request.tree, self._before[exchange.record_id]

    def class_of(self, exchange: RecordedExchange) -> str:
        """Equal for recorded requests that differ only where two plays do, in ways that are understood."""
        known = self._class_keys.get(exchange.record_id)
        if known is None:
            request = self._asked_by(exchange)
            accept = partial(self._was_accepted, exchange, exchange.began)
            known = self._class_key(request.tree, accept) or request.keys.any_accept
            self._class_keys[exchange.record_id] = known
        return known

    def message_class(self, path: str, data: bytes, recorded: tuple[RecordedExchange, int] | None = None) -> str:
        """As `class_of`, for a message that a page sends over a socket.

        `recorded`: the exchange and tick of a recorded one. The site may repeat later what it made up.
        """
        tree = message_tree(path, data)
        accept: Any = partial(self._was_accepted, *recorded) if recorded else partial(self._is_acceptable, ())
        return self._class_key(tree, accept) or _exact(tree)

    def class_in(self, exchange: RecordedExchange, message: RecordedSocketMessage) -> str:
        """The class of a message of a recorded socket."""
        return self.message_class(exchange.path, message.data, (exchange, message.tick))

    def _class_key(self, tree: Tree, accept: Any) -> str | None:
        for spots in self._spots.get(tree.shape, ()):
            fit = fitted(tree, spots, accept)
            if fit is not None and fit.key in self._known_keys:
                return fit.key
        return None

    # What may stand at a place.

    def _learn(self, pair: RequestPair, trees: tuple[Tree, Tree], ticks: tuple[int, int]) -> None:
        if not pair.spots or not pair.is_sure:
            return
        for exchange, tree, tick in zip((pair.one, pair.other), trees, ticks, strict=True):
            fit = fitted(tree, pair.spots, partial(self._was_accepted, exchange, tick))
            if fit is not None:
                self._known_keys.add(fit.key)
                if pair.spots not in self._spots[tree.shape]:
                    self._spots[tree.shape].append(pair.spots)
                known = next(each for each in self._spots[tree.shape] if each == pair.spots)
                self._paths[id(known)].add(self._path(exchange, pair.spots))

    def _sent_twice(self) -> Iterator[SentTwice]:
        """What two plays sent: requests and messages over sockets, each with its trees and ticks."""
        for pair in sorted(self._plays.pairs, key=lambda pair: pair.one.began):
            trees = self._asked_by(pair.one).tree, self._asked_by(pair.other).tree
            yield pair, trees, (pair.one.began, pair.other.began)
            yield from self._messages_sent_twice(pair)

    def _messages_sent_twice(self, pair: RequestPair) -> Iterator[SentTwice]:
        ours, theirs = (
            [(each.tick, message_tree(exchange.path, each.data)) for each in exchange.messages if each.is_from_page]
            for exchange in (pair.one, pair.other)
        )
        for tick, tree in ours:
            near = [
                (place_differences, at) for at in theirs if (place_differences := differences(tree, at[1])) is not None
            ]
            if near:
                place_differences, other = min(near, key=lambda option: len(option[0]))
                theirs.remove(other)
                ticks = tick, other[0]
                spots = self._plays.spots_of(place_differences, pair.one, pair.other, ticks)
                for exchange, tick in zip((pair.one, pair.other), ticks, strict=True):
                    self._message_spots[exchange.record_id, tick] = spots
                yield RequestPair(pair.one, pair.other, spots), (tree, other[1]), ticks

    def _learn_orders(self, pair: RequestPair, trees: tuple[Tree, Tree], ticks: tuple[int, int]) -> None:
        """Learn from others at this path that the order of a list means nothing, which here was the same."""
        for spots in self._spots.get(trees[0].shape, ()):
            is_only_order = all(
                spot.kind == "order" or any(is_same_place(place, each) for each in pair.spots)
                for place, spot in spots.items()
            )
            if is_only_order and self._path(pair.one, pair.spots) in self._paths[id(spots)]:
                for exchange, tree, tick in zip((pair.one, pair.other), trees, ticks, strict=True):
                    if fit := fitted(tree, spots, partial(self._was_accepted, exchange, tick)):
                        self._known_keys.add(fit.key)

    def _path(self, exchange: RecordedExchange, spots: Spots) -> ValuePath:
        """The path of a request without the segments that differ between two plays."""
        path = self._asked_by(exchange).tree.root["path"]
        return tuple(ANY if ("path", at) in spots else segment for at, segment in enumerate(path))

    def _was_accepted(self, exchange: RecordedExchange, tick: int, spot: Spot, value: str) -> str | None:
        """What stands for a recorded value at a spot; `None` if it is not one of that spot."""
        if spot.kind == "issued":
            return self.token_class(value)
        if made := self._made(exchange.walk, value, tick):
            return made
        if spot.kind == "clock":
            return "time" if self._is_at(value, self._starts[exchange.walk] + spot.offset_ms) else None
        return None if self.received.before(exchange.walk, value, tick) else "new"

    def _is_acceptable(self, entered: Collection[str], spot: Spot, value: str) -> str | None:
        """What stands for a value at a spot now; `None` if it is not one of that spot."""
        if spot.kind == "issued":
            return self.token_class(value)
        if not value or _is_entered(value, entered) or self.received.anywhere(value):
            return None
        for walk in self._starts:
            if made := self._made(walk, value, math.inf):
                return made
        if spot.kind == "clock":
            # A time that the page has sent before is the recording's.
            is_now = self._is_at(value, self.recording.clock_ms + spot.offset_ms) or value in self._times
            return "time" if is_now else None
        return "new"

    def _made(self, walk: str, value: str, tick: float) -> str | None:
        """What a value stands for that a page made up and had sent before in a write, as the name of something.

        `None` for the only value that it made up at that place, because there is nothing to take it for.
        """
        write, place = self._makers.get((walk, value), (None, None))
        if write is None or write.began >= tick or self._made_counts[walk, place] < _MIN_NAMED:
            return None
        return f"made {self.class_of(write)} {self._time_of(write)}"

    @cached_property
    def _makers(self) -> Mapping[tuple[str, str], tuple[RecordedExchange, tuple[str, ValuePath]]]:
        """By walk and value that its page made up: the write that sent it first, with its shape and the place."""
        makers: dict[tuple[str, str], tuple[RecordedExchange, tuple[str, ValuePath]]] = {}
        for exchange, place, _, value in self._made_up_values():
            if is_recorded_write(exchange) and place[:1] != ("header",):
                shape = self._asked_by(exchange).tree.shape
                makers.setdefault((exchange.walk, value), (exchange, (shape, place)))
        return makers

    @cached_property
    def _times(self) -> frozenset[str]:
        """The times that pages sent as such."""
        return frozenset(value for _, _, spot, value in self._made_up_values() if spot.kind == "clock")

    def _made_up_values(self) -> Iterator[tuple[RecordedExchange, ValuePath, Spot, str]]:
        """What pages made up in requests: each value with its place and what is known about that."""
        for exchange in self._exchanges:
            tree = self._asked_by(exchange).tree
            for place, spot in self._spots_of.get(exchange.record_id, {}).items():
                fit = fitted(tree, {place: spot}, lambda _, value: value) if spot.kind in ("varies", "clock") else None
                yield from ((exchange, place, spot, value) for value in (fit.middles if fit else ()))

    @cached_property
    def _made_counts(self) -> Counter[tuple[str, tuple[str, ValuePath] | None]]:
        """By walk, shape and place: how many values its page made up there."""
        return Counter((walk, place) for (walk, _), (_, place) in self._makers.items())

    @staticmethod
    def _is_at(value: str, moment_ms: float) -> bool:
        time_ms = time_in(value)
        return time_ms is not None and abs(time_ms - moment_ms) <= CLOCK_TOLERANCE_MS

    def token_class(self, value: str) -> str | None:
        """What a value that the site issued stands for: the request that it answered, and its place there.

        A token obtained with another token alone stands for the same as that one.
        """
        if value not in self._classes:
            self._classes[value] = None
            origin = self.received.origin(value)
            if origin is not None:
                root = self._renewed(origin.exchange, origin.before)
                time = self._time_of(origin.exchange)
                own = f"{self.class_of(origin.exchange)} {time} {origin.before!r} {origin.ordinal}"
                self._classes[value] = root or own
        return self._classes[value]

    def _time_of(self, exchange: RecordedExchange) -> int:
        """How often a write was made before in its walk: each time, the site issues another thing."""
        if not is_recorded_write(exchange):
            return 0
        return sum(
            each.began < exchange.began and self.class_of(each) == self.class_of(exchange)
            for each in self._by_walk[exchange.walk]
        )

    def issued(self, exchange: RecordedExchange) -> Iterator[tuple[str, str]]:
        """What the site issues anew in each play, in an answer: what each value stands for, and the value."""
        gaps = self._gaps.get(self.class_of(exchange))
        for word in words_at(exchange, gaps) if gaps else ():
            if stands := self.token_class(word):
                yield stands, word

    def _renewed(self, exchange: RecordedExchange, before: str) -> str | None:
        """The class of the token with which an exchange renewed one, if it is of the same kind and no one logged in."""
        request = exchange.request
        text = f"{header(request.headers, AUTHORIZATION)} {request.body.decode('utf-8', 'replace')}"
        tokens = PLACEHOLDER.findall(text)
        if not tokens or any(len(each) < len("redacted-") + 16 for each in tokens):
            return None
        classes = [
            token_class for each in tokens if (token_class := self.token_class(each)) and repr(before) in token_class
        ]
        return classes[0] if classes else None

    # Which recorded requests one matches.

    def fits(self, request: IndexedRequest, accept: str) -> Iterator[Fit]:
        """The recorded requests that this one matches with certainty, most specific first.

        Of what was recorded for another `Accept` header, only answers of a type that this one accepts.
        """
        if full := self._full.get(request.keys.full):
            yield Fit(full, is_exact=True)
            same = self._accepted(self._by_class.get(self.class_of(full.observations[0].exchange)), accept)
            if same is not None and same.observations != full.observations:
                yield Fit(same, is_exact=True)
        observations = full.observations if full else ()
        other = self._accepted(self._any_accept.get(request.keys.any_accept), accept)
        if other is not None and other.observations != observations:
            observations = other.observations
            yield Fit(other, is_exact=False)
        for spots in self._spots.get(request.tree.shape, ()):
            fit = fitted(request.tree, spots, partial(self._is_acceptable, request.entered))
            group = fit and self._accepted(self._by_class.get(fit.key), accept)
            if fit is not None and group is not None and group.observations != observations:
                yield Fit(group, False, spots, request.plain)

    def near(self, request: IndexedRequest) -> list[Fit]:
        """The recorded requests that this one may match, nearest first: they differ where nothing certain is known."""
        options = []
        for each in self._shapes.get(request.tree.shape, ())[:_MAX_NEAR]:
            recorded = self._asked_by(each.exchange)
            place_differences = differences(request.tree, recorded.tree)
            known = self._spots_of.get(each.exchange.record_id)
            if place_differences is not None and all(
                self._may_differ(each.exchange, difference, request.entered)
                if known is None
                else _may_vary(known, difference)
                for difference in place_differences
            ):
                options.append((len(place_differences), recorded.keys.full))
        return [Fit(self._full[key], is_exact=False) for _, key in sorted(options)]

    def near_message(self, exchange: RecordedExchange, data: bytes, places: Iterable[int]) -> int | None:
        """Which of a socket's messages, at these places, one may be that differs where nothing certain is known."""
        tree = message_tree(exchange.path, data)
        for place in places:
            message = exchange.messages[place]
            known = self._message_spots.get((exchange.record_id, message.tick), {})
            place_differences = differences(tree, message_tree(exchange.path, message.data))
            if place_differences is not None and all(_may_vary(known, each) for each in place_differences):
                return place
        return None

    def _may_differ(self, exchange: RecordedExchange, difference: PlaceDifference, entered: Collection[str]) -> bool:
        """Whether a difference of a request (`one`) from a recorded one (`other`) may mean nothing."""
        if difference.is_order:
            # Two plays may have had the same order by chance.
            return True
        # Played only once: nobody knows whether the page makes up the value.
        if (stands := self.token_class(difference.other)) is not None and stands == self.token_class(difference.one):
            return True
        is_ours = (
            is_entered(exchange.request) or difference.place[:1] == ("path",) or _is_entered(difference.one, entered)
        )
        is_received = self.received.before(exchange.walk, difference.other, exchange.began)
        return not is_ours and not is_received and not self.received.anywhere(difference.one)

    def made_up(self, fit: Fit, exchange: RecordedExchange) -> tuple[tuple[str, str], ...]:
        """Pairs of a value that the page made up in the recorded request with this answer, and the present one."""
        if fit.spots is None or fit.plain is None:
            return ()
        return self._made_up(self._asked_by(exchange).tree, fit.spots, fit.plain)

    def _made_up(self, recorded: Tree, spots: Spots, plain: Tree) -> tuple[tuple[str, str], ...]:
        """Pairs of a recorded value that the page made up and the present one."""
        was, now = (fitted(tree, spots, lambda _, value: value) for tree in (recorded, plain))
        pairs = zip(was.middles, now.middles, strict=False) if was and now else ()
        return tuple(
            (value, here)
            for each, here in pairs
            # What the site issued is not the page's.
            if (value := self.received.plain(each)) and self.token_class(here) is None
        )

    def made_up_in_message(self, path: str, recorded: bytes, now: bytes) -> Iterator[tuple[str, str]]:
        """As `made_up`, for two messages over a socket."""
        was, here = (message_tree(path, data) for data in (recorded, now))
        for spots in self._spots.get(here.shape, ()) if was.shape == here.shape else ():
            yield from self._made_up(was, spots, here)

    def made_up_cookies(self, plain: WireRequest, exchange: RecordedExchange) -> Iterator[tuple[str, str]]:
        """Pairs of a recorded and a present value of cookies that differ in each play."""
        recorded, now = cookies_in(exchange.request), cookies_in(plain)
        for name in self._changing & recorded.keys() & now.keys():
            if value := self.received.plain(recorded[name]):
                yield unquote(value), unquote(now[name])

    def _accepted(self, group: ObservationGroup | None, accept: str) -> ObservationGroup | None:
        """The part of a group that answers a request with this `Accept` header."""
        if group is None:
            return None
        accepted = tuple(each for each in group.observations if _is_accepted(each.exchange, accept))
        if len(accepted) == len(group.observations):
            return group
        if not accepted:
            return None
        # The same one each time, because what is learnt of a group, and asked of it, is found by its identity.
        part: tuple[int | str, ...] = (id(group), *(each.exchange.record_id for each in accepted))
        return self._parts.setdefault(part, replace(group, observations=accepted))

    def knows_login(self, request: WireRequest) -> bool:
        """Whether the login in a request was recorded at its origin, if it has one, and the site issued its tokens."""
        login = chosen_login(request)
        tokens = (token_in(header(request.headers, name)) for name in self._credentials)
        return (login is None or login in self._logins) and all(
            not token or token in self._sent_tokens or self.token_class(token) is not None for token in tokens
        )

    def without_login(self, request: WireRequest) -> WireRequest:
        """The request without headers that say who asks."""
        other_headers = tuple((name, value) for name, value in request.headers if name.lower() not in self._credentials)
        return replace(request, headers=other_headers)

    def has_login(self, exchange: RecordedExchange) -> bool:
        """Whether a recorded request says who asked."""
        return any(header(exchange.request.headers, name) for name in self._credentials)

    def _credential_headers(self) -> frozenset[str]:
        """`Authorization`, and other secret headers, if a site issued one of their values."""
        header_names = {AUTHORIZATION}
        for exchange in self._exchanges:
            for name, value in exchange.request.headers:
                is_new = is_secret_header(name) and name.lower() not in (*header_names, "cookie")
                if is_new and self.received.before(exchange.walk, token_in(value), exchange.began):
                    header_names.add(name.lower())
        return frozenset(header_names)

    def alike(self, exchange: RecordedExchange) -> ObservationGroup:
        """All recordings of the same request."""
        return self._by_class[self.class_of(exchange)]

    def at(self, url: str) -> Sequence[RecordedExchange]:
        """Everything recorded under an address."""
        return self._at.get(url, ())

    # Writes, and the states that they lead to.

    @cached_property
    def reads(self) -> ReadEffects:
        """Which reads change later answers."""
        walks, groups = self._by_walk.values(), self._by_class.values()
        return ReadEffects(
            walks, groups, self.writes, lambda request: self.indexed_request(request).tree, self._changing
        )

    def label(self, request: WireRequest, exchange: RecordedExchange | None) -> int:
        """The number of a write; one that no context has if it was not recorded (`exchange`) with certainty."""
        number = self._numbers.get(self._write_key(exchange, request)) if exchange else None
        return number if number is not None else -self._by_path.get(_write_path(request), 0)

    def _write_key(self, exchange: RecordedExchange, request: WireRequest) -> str:
        """Equal for writes that ask for the same, with the same cookies."""
        return f"{self.class_of(exchange)} {sorted(self.context(request, ()).cookies)}"

    def message_label(self, url: str, data: bytes, *, is_certain: bool) -> int:
        """The number of a message that the page sent over a socket."""
        number = self._numbers.get(self.message_class(path_of(url), data))
        return number if number is not None and is_certain else -(self._by_path.get(path_of(url), 0))

    def context(self, request: WireRequest, writes: Iterable[int]) -> Context:
        """The state in which a request is made."""
        return Context(
            counted(writes), cookies_of(request.headers, self._changing, self._credentials, self.token_class)
        )

    def is_same_state(self, exchange: RecordedExchange, tick: int, writes: Iterable[int]) -> bool:
        """Whether these writes lead to the state in which a socket was at a tick, as far as it matters to it."""
        group = self._by_class.get(self.class_of(exchange))
        if group is None:
            return False
        now = self.learnt.state(group, counted(writes))
        return any(self.learnt.state(group, counted(each)) == now for each in self.writes.preceding(exchange, tick))

    def is_foreseen(self, exchange: RecordedExchange, before: Sequence[int], last: int) -> bool:
        """Whether a socket goes on as recorded after a write after others, which was not made over it.

        It was made in the same state when the socket was recorded, or it never leads to a message.
        """
        has_reply = self.writes.site_replies.get((exchange.path, last))
        return has_reply is False or any(
            each.number == last
            and exchange.began < each.began < exchange.ended
            and self.is_same_state(exchange, each.began, before)
            for each in self.writes.of(exchange)
        )

    def _observed(self) -> Iterator[RecordedObservation]:
        for exchange in self._exchanges:
            whole = self._entity(exchange)
            if whole is not None:
                before = self.writes.before(exchange)
                possible = self.writes.preceding(exchange, exchange.began)
                gaps = self._gaps.get(self.class_of(exchange), frozenset())
                time = self._time_of(exchange) if gaps else 0
                yield RecordedObservation(
                    whole,
                    f"{fingerprint(whole, gaps)} {time}",
                    self.context(exchange.request, before),
                    tuple(self.context(exchange.request, each) for each in possible),
                    holds_in_any_state(whole),
                )

    def page(self, document: RecordedExchange) -> int:
        """The number of a page, as of a write."""
        return self._number(f"page {self.class_of(document)}", "")

    def _number_of(self, exchange: RecordedExchange, message: RecordedSocketMessage | None) -> int:
        """The number of a recorded write, or of a message over a socket that writes."""
        if message is not None:
            return self._number(self.class_in(exchange, message), exchange.path)
        return self._number(self._write_key(exchange, exchange.request), _write_path(exchange.request))

    def _number(self, key: str, path: str) -> int:
        number = self._numbers.setdefault(key, len(self._numbers) + 1)
        self._by_path.setdefault(path, number)
        return number

    def _entity(self, exchange: RecordedExchange) -> RecordedExchange | None:
        """The exchange, with the complete answer in place of a `304`."""
        if exchange.answer is None or exchange.answer.status != 304:
            return exchange
        validator = header(exchange.request.headers, "if-none-match")
        since = header(exchange.request.headers, "if-modified-since")
        for other in reversed(self.recording.exchanges):
            whole = other.answer
            if whole is not None and whole.status == 200 and other.request.url == exchange.request.url:
                etag, modified = header(whole.headers, "etag"), header(whole.headers, "last-modified")
                if (etag and etag in validator) or (not validator and modified and modified == since):
                    return replace(exchange, answer=_with_fresh_headers(whole, exchange.answer))
        return None


def _grouped(observed: Iterable[tuple[str, RecordedObservation]]) -> dict[str, ObservationGroup]:
    groups: defaultdict[str, list[RecordedObservation]] = defaultdict(list)
    for key, observation in observed:
        groups[key].append(observation)
    return {key: ObservationGroup(_whole_ones(each)) for key, each in groups.items()}


def _may_vary(known: Spots, difference: PlaceDifference) -> bool:
    """Whether a difference from what was played twice may mean nothing; `known` is where the two plays differ."""
    if difference.is_order:
        # Both plays may have had the same order by chance.
        return True
    spots = [spot for place, spot in known.items() if is_same_place(difference.place, place)]
    # What the site issues names something, unless it is a token: another one is another thing.
    return bool(spots) and (is_masked(difference.other) or spots[0].kind != "issued")


def _exact(tree: Tree) -> str:
    return f"{tree.kind} {json.dumps(tree.root, sort_keys=True)}"


def _is_entered(value: str, entered: Collection[str]) -> bool:
    """Whether a participant entered the value, or a part of it: a word, or more than chance explains."""
    return any(
        each == value
        or (len(each) >= _MIN_ENTERED and each in value)
        or (len(value) >= _MIN_ENTERED and value in each)
        or each in _WORDS.split(value)
        for each in entered
        if each
    )


def _writes_before(exchanges: Sequence[RecordedExchange]) -> dict[str, int]:
    """By the id of each exchange: how many writes of its walk had ended when it began."""
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for exchange in exchanges:
        if is_recorded_write(exchange):
            ends[exchange.walk].append(exchange.ended)
    return {each.record_id: sum(end < each.began for end in ends[each.walk]) for each in exchanges}


def _is_accepted(exchange: RecordedExchange, accept: str) -> bool:
    answer = exchange.answer
    # A server may ignore the header.
    is_same = answer is None or header(exchange.request.headers, "accept") == accept
    return is_same or (answer is not None and accepts(accept, header(answer.headers, "content-type")))


def _whole_ones(observations: Sequence[RecordedObservation]) -> tuple[RecordedObservation, ...]:
    """The observations without those that the page aborted, if others were complete.

    A browser aborts images itself that it cannot show. Such a one stays where none is complete in its context.
    """
    whole = [each for each in observations if each.exchange.is_whole or each.exchange.failure]
    contexts = {each.context for each in whole}
    whole_observations = [
        each for each in observations if each in whole or (_is_picture(each) and each.context not in contexts)
    ]
    return tuple(whole_observations if whole else observations)


def _is_picture(each: RecordedObservation) -> bool:
    return each.exchange.answer is not None and kind_of(each.exchange.request) == "image"


def _write_path(request: WireRequest) -> str:
    return f"{request.method} {path_of(request.url)}"


def _varying(exchanges: Iterable[RecordedExchange]) -> Mapping[str, frozenset[str]]:
    names_by_path: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for exchange in exchanges:
        if exchange.answer is not None and (vary := header(exchange.answer.headers, "vary")):
            names_by_path[exchange.path] |= varying_headers(vary)
    return names_by_path


def _with_fresh_headers(whole: RecordedResponse, fresh: RecordedResponse) -> RecordedResponse:
    """The complete answer with the headers that a `304` updated."""
    names = {name.lower() for name, _ in fresh.headers} - {"content-length", "transfer-encoding", "connection"}
    other_headers = tuple((name, value) for name, value in whole.headers if name.lower() not in names)
    return replace(
        whole, headers=(*other_headers, *((name, value) for name, value in fresh.headers if name.lower() in names))
    )
