"""The index of an archive: every recorded request by its keys, with the context it was made in."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from urllib.parse import urljoin

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import Answer, Exchange, Recording, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.answers import fingerprint, holds_in_any_state, tokens_in
from judge.plugins.frozen.matching.contexts import (
    Context,
    Places,
    Sessions,
    chosen_login,
    cookies_of,
    counted,
    path_of,
    session_authorizations,
    session_cookies,
    shared_prefix,
)
from judge.plugins.frozen.matching.identities import identities_in
from judge.plugins.frozen.matching.keys import Key, is_write, key_of, varying_headers
from judge.plugins.frozen.matching.loose import loosened
from judge.plugins.frozen.matching.protobuf import in_order
from judge.plugins.frozen.matching.states import Group, Learnt, Observation, Written
from judge.plugins.frozen.matching.synthesis import accepts, without_conditions

_NO_WRITES = frozenset({"beacon", "report", "prefetch", "icon", "source_map"})
# Words in links with side effects, which sites should not have, but many do.
_VERBS = re.compile(
    r"(?:^|[/_?&=.-])(?:add|remove|delete|del|log_?out|log_?in|sign_?out|sign_?in|toggle|save|update|set|unset|create|buy"
    r"|vote|like|reset|clear|switch|enable|disable|subscribe|unsubscribe|mark|move|copy|undo|accept|dismiss)(?:$|[/_?&=.-])",
    re.IGNORECASE,
)
_HEARTBEAT_BYTES = 2
# How a page says what it has received, or that it is still there: with whatever count it has reached.
_SIGNAL = re.compile(
    rb"""\d*\s*[\[{]\s*(?:"(?:type|event|action|topic)"\s*:\s*)?"(?:ack|ping|pong|heartbeat|keep-?alive)"[^{}]*"""
    rb"""(?:\{[^{}]*\}[^{}]*)?[\]}]\s*"""
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f]")
_NUMBERS = re.compile(r"\d+")


class Index:
    """Everything learnt from an archive. Immutable while attempts are played."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        exchanges = sorted(recording.exchanges, key=lambda each: (each.walk, each.began))
        self.sessions = Sessions(session_cookies(exchanges), session_authorizations(exchanges))
        self._logins = frozenset(filter(None, (chosen_login(exchange.request) for exchange in exchanges)))
        self._varying = _varying(exchanges)
        self.identities = identities_in(exchanges)
        self._tokens = frozenset(token for exchange in exchanges for token in tokens_in(exchange))
        self._numbers: dict[str, int] = {}
        self._by_path: dict[str, int] = {}
        self.places: dict[int | str, Places] = {}
        self._walk_writes: dict[str, list[tuple[int, int, int, int]]] = {}
        self.prefix = shared_prefix({each.path for each in exchanges if not each.is_socket})
        for exchange in exchanges:
            if is_recorded_write(exchange):
                self._number(exchange)
        observations = list(self._observed(exchanges))
        self._written = self._writes_in_any_order(observations)
        self._full = self._grouped(observations, lambda key: key.full)
        self._any_accept = self._grouped(observations, lambda key: key.any_accept)
        self._loose = self._grouped(observations, lambda key: key.loose)
        self._any_order = self._grouped(observations, lambda key: key.any_order)
        self._parts: dict[tuple[int | str, ...], Group] = {}
        self._paths: defaultdict[str, list[Exchange]] = defaultdict(list)
        for exchange in exchanges:
            self._paths[exchange.request.url].append(exchange)

    def key(self, request: WireRequest, now_ms: int) -> Key:
        """The keys of a request."""
        varying = self._varying.get(path_of(request.url), frozenset())
        return key_of(without_conditions(request), now_ms, varying, self._tokens, self.identities.received)

    def groups(self, key: Key, accept: str) -> Iterator[tuple[Group, bool]]:
        """The recorded requests with these keys, most specific first, and whether they match exactly.

        Of what was recorded for another `Accept` header, only answers of a type that this one accepts.
        """
        if full := self._full.get(key.full):
            yield full, True
        seen = full.observations if full else ()
        for group in (self._any_accept.get(key.any_accept), self._loose.get(key.loose)):
            accepted = group and self._accepted(group, accept)
            if accepted is not None and accepted.observations != seen:
                seen = accepted.observations
                yield accepted, False

    def _accepted(self, group: Group, accept: str) -> Group | None:
        """The part of a group that answers a request with this `Accept` header."""
        kept = tuple(each for each in group.observations if _is_accepted(each.exchange, accept))
        if len(kept) == len(group.observations):
            return group
        if not kept:
            return None
        # The same one each time, because what is learnt of a group, and asked of it, is found by its identity.
        part: tuple[int | str, ...] = (id(group), *(each.exchange.record_id for each in kept))
        return self._parts.setdefault(part, replace(group, observations=kept))

    def in_any_order(self, key: Key) -> Group | None:
        """The recorded requests with the same list items, even where the order of a list may be the change itself."""
        return self._any_order.get(key.any_order)

    def knows_login(self, request: WireRequest) -> bool:
        """Whether the login in a request was recorded at its origin, if it has one."""
        login = chosen_login(request)
        return login is None or login in self._logins

    def at(self, url: str) -> Sequence[Exchange]:
        """Everything that was recorded under an address."""
        return self._paths.get(url, ())

    def label(self, request: WireRequest, now_ms: int, *, is_certain: bool) -> int:
        """The number of a write; one that no context has if it was not recorded, or did not answer as recorded."""
        key = self.key(request, now_ms)
        number = self._numbers.get(key.loose)
        if number is None and self.is_idle(key):
            number = min(self._written[key.any_order].numbers)
        if number is not None and is_certain:
            return number
        known = number if number is not None else self._by_path.get(_write_path(request), 0)
        return -known

    def message_label(self, url: str, data: bytes, now_ms: int, *, is_certain: bool) -> int:
        """The number of a message that the page sent over a socket."""
        number = self._numbers.get(self.message_key(url, data, now_ms))
        return number if number is not None and is_certain else -(self._by_path.get(path_of(url), 0))

    def message_key(self, url: str, data: bytes, now_ms: int) -> str:
        """The key of a message that a page sends over a socket."""
        return message_key(url, data, now_ms, self.identities.received)

    def cookies_of(self, request: WireRequest, now_ms: int) -> frozenset[tuple[str, str]]:
        """The cookies of a request that may reflect the state, and its login."""
        return cookies_of(request.headers, self.sessions, now_ms, self.identities.received)

    def writes_before(self, exchange: Exchange, tick: int) -> Counter[int]:
        """Writes by others between the start of an exchange and a tick, which may have caused what arrived then."""
        writes = self._walk_writes.get(exchange.walk, ())
        return Counter(
            number for began, _, number, source in writes if exchange.began < began < tick and source != exchange.number
        )

    @cached_property
    def learnt(self) -> Learnt:
        """What the answers depend on."""
        return Learnt(self._full.values(), self._any_order.values(), self._written.values())

    def is_idle(self, key: Key) -> bool:
        """Whether a write changed nothing wherever it was recorded, whatever the order of its lists."""
        written = self._written.get(key.any_order)
        return written is not None and all(map(self.learnt.is_idle, written.numbers))

    def _writes_in_any_order(self, observations: Iterable[tuple[Key, Observation]]) -> dict[str, Written]:
        found: defaultdict[str, list[tuple[int, Observation]]] = defaultdict(list)
        for key, each in observations:
            if is_recorded_write(each.exchange):
                found[key.any_order].append((self._numbers[key.loose], each))
        return {
            key: Written(frozenset(number for number, _ in each), tuple(one for _, one in each))
            for key, each in found.items()
        }

    def _number(self, exchange: Exchange) -> None:
        number = self._numbers.setdefault(self.key(exchange.request, exchange.at_ms).loose, len(self._numbers) + 1)
        self._by_path.setdefault(_write_path(exchange.request), number)
        pages = {path_of(referer)} if (referer := header(exchange.request.headers, "referer")) else set()
        if exchange.answer and (location := header(exchange.answer.headers, "location")):
            pages.add(path_of(urljoin(exchange.request.url, location)))
        self._place(number, Places(frozenset({exchange.path}), frozenset(pages)))

    def _place(self, key: int | str, new: Places) -> None:
        known = self.places.get(key, Places(frozenset(), frozenset()))
        self.places[key] = Places(known.paths | new.paths, known.pages | new.pages)

    def _observed(self, exchanges: Sequence[Exchange]) -> Iterator[tuple[Key, Observation]]:
        by_walk: defaultdict[str, list[Exchange]] = defaultdict(list)
        for exchange in exchanges:
            by_walk[exchange.walk].append(exchange)
        for walk in by_walk.values():
            writes = sorted(self._writes(walk))
            self._walk_writes[walk[0].walk] = writes
            for exchange in walk:
                made = self._entity(exchange)
                if made is None:
                    continue
                before = counted(label for began, ended, label, _ in writes if ended < exchange.began)
                overlapping = counted(label for began, _, label, _ in writes if began < exchange.began)
                cookies = self.cookies_of(exchange.request, exchange.at_ms)
                self._note_cookies(exchange, cookies)
                yield (
                    self.key(exchange.request, exchange.at_ms),
                    Observation(
                        made,
                        fingerprint(made, self.identities.shared),
                        Context(before, cookies),
                        Context(overlapping, cookies),
                        holds_in_any_state(made),
                    ),
                )

    def _writes(self, walk: Iterable[Exchange]) -> Iterator[tuple[int, int, int, int]]:
        """The writes of a walk: when each began and ended, its number, and that of its exchange."""
        for exchange in walk:
            if is_recorded_write(exchange):
                number = self._numbers[self.key(exchange.request, exchange.at_ms).loose]
                yield exchange.began, exchange.ended, number, exchange.number
            for tick, data in sent_data(exchange):
                key = self.message_key(exchange.request.url, data, exchange.at_ms)
                number = self._numbers.setdefault(key, len(self._numbers) + 1)
                self._by_path.setdefault(exchange.path, number)
                self._place(number, Places(frozenset({exchange.path}), frozenset({"/"})))
                yield tick, tick, number, exchange.number

    def _note_cookies(self, exchange: Exchange, cookies: frozenset[tuple[str, str]]) -> None:
        referer = header(exchange.request.headers, "referer")
        for name, _ in cookies:
            if name not in self.places:
                # A cookie is first sent after the page that set it.
                self._place(name, Places(frozenset({path_of(referer) if referer else exchange.path}), frozenset()))

    def _entity(self, exchange: Exchange) -> Exchange | None:
        """The exchange, with the complete answer in place of a `304`."""
        if exchange.answer is None or exchange.answer.status != 304:
            return exchange
        wanted = header(exchange.request.headers, "if-none-match")
        since = header(exchange.request.headers, "if-modified-since")
        for other in reversed(self.recording.exchanges):
            whole = other.answer
            if whole is not None and whole.status == 200 and other.request.url == exchange.request.url:
                etag, modified = header(whole.headers, "etag"), header(whole.headers, "last-modified")
                if (etag and etag in wanted) or (not wanted and modified and modified == since):
                    return replace(exchange, answer=_with_fresh_headers(whole, exchange.answer))
        return None

    def _grouped(self, observations: Iterable[tuple[Key, Observation]], part: Callable[[Key], str]) -> dict[str, Group]:
        found: defaultdict[str, list[Observation]] = defaultdict(list)
        for key, observation in observations:
            found[part(key)].append(observation)
        groups = ((key, _whole_ones(each)) for key, each in found.items())
        return {key: Group(each[0].exchange.path, each, self.places, self.prefix) for key, each in groups}


def _is_accepted(exchange: Exchange, accept: str) -> bool:
    answer = exchange.answer
    # A server may ignore the header.
    is_same = answer is None or header(exchange.request.headers, "accept") == accept
    return is_same or (answer is not None and accepts(accept, header(answer.headers, "content-type")))


def _whole_ones(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """The observations without those that the page aborted, if others were complete."""
    whole = [each for each in observations if each.exchange.is_whole or each.exchange.failure]
    return tuple(whole or observations)


def is_recorded_write(exchange: Exchange) -> bool:
    """Whether the exchange may have changed something on the site."""
    request, answer = exchange.request, exchange.answer
    if exchange.is_socket or kind_of(request) in _NO_WRITES:
        return False
    return is_write(request) or (answer is not None and is_writing_link(request, answer))


def is_writing_link(request: WireRequest, answer: Answer) -> bool:
    """Whether a link has side effects: it redirects, and its address contains such a word."""
    is_redirect = answer.status in (302, 303, 307) and request.method == "GET"
    return is_redirect and bool(_VERBS.search(request.url.partition("://")[2].partition("/")[2]))


def sent_data(exchange: Exchange) -> Iterator[tuple[int, bytes]]:
    """Messages of the page over a socket that may have changed something: neither heartbeats nor greetings."""
    received = [message.tick for message in exchange.messages if not message.sent]
    greeted = received[0] if received else exchange.began
    counts: defaultdict[bytes, int] = defaultdict(int)
    for message in exchange.messages:
        counts[message.data] += message.sent
    for message in exchange.messages:
        is_heartbeat = len(message.data) <= _HEARTBEAT_BYTES or counts[message.data] >= 3 or is_signal(message.data)
        if message.sent and message.tick > greeted and not is_heartbeat:
            yield message.tick, message.data


def is_signal(data: bytes) -> bool:
    """Whether a message only tells the site what the page has received, or that it is still there."""
    return _SIGNAL.fullmatch(data) is not None


def message_key(url: str, data: bytes, now_ms: int, identities: Collection[str] = frozenset()) -> str:
    """The key of a message that a page sends over a socket."""
    text = loosened(_ordered(data), now_ms, identities)
    if is_signal(data):
        text = _NUMBERS.sub("{number}", text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return f"message {loosened(url, now_ms, identities)} {digest}"


def _ordered(data: bytes) -> str:
    """The message as text; one in protocol buffers with its fields in a fixed order."""
    try:
        text = data.decode()
        if not _CONTROLS.search(text):
            return text
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
    return in_order(data) or text


def _write_path(request: WireRequest) -> str:
    return f"{request.method} {path_of(request.url)}"


def _varying(exchanges: Iterable[Exchange]) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for exchange in exchanges:
        if exchange.answer is not None and (vary := header(exchange.answer.headers, "vary")):
            found[exchange.path] |= varying_headers(vary)
    return found


def _with_fresh_headers(whole: Answer, fresh: Answer) -> Answer:
    """The complete answer with the headers that a `304` updated."""
    names = {name.lower() for name, _ in fresh.headers} - {"content-length", "transfer-encoding", "connection"}
    kept = tuple((name, value) for name, value in whole.headers if name.lower() not in names)
    return replace(whole, headers=(*kept, *((name, value) for name, value in fresh.headers if name.lower() in names)))
