"""The matcher of one attempt: which recorded answer each of its requests gets, and how certain the match is.

In this order: method, address, canonical body, `Range` and `Accept` exactly; requests that differ only where two plays
of a walk do; what follows by the rules of HTTP; requests that may mean the same, as uncertain. Of several answers, the
one in the same state. Everything else is a miss.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, header, without_headers
from judge.plugins.frozen.kinds import RequestKind, kind_of, miss_class
from judge.plugins.frozen.matching.binary import as_text, is_binary
from judge.plugins.frozen.matching.contexts import Context
from judge.plugins.frozen.matching.index import Fit, Index
from judge.plugins.frozen.matching.requests import differing, is_write, is_writing_link
from judge.plugins.frozen.matching.states import ObservationGroup, Selection, choose, fitting_in
from judge.plugins.frozen.matching.synthesis import (
    after_preflight,
    head_of,
    is_preflight,
    not_modified,
    part_of,
    preflight,
    without_range,
)
from judge.plugins.frozen.matching.writes import NO_PAGE, is_sent_by
from judge.plugins.frozen.secrets import Secrets
from judge.records.ledger import Grade, MissClass

# No page sees the answers to these.
_UNSEEN = frozenset({"beacon", "report"})
# Shorter ones stand in other texts too.
_MIN_MADE_UP_CHARS = 6
# Increased with every change that may give another answer.
MATCHER = "8"


@dataclass(frozen=True)
class Match:
    """The answer to a request. `exchange` is `None` for a miss, whose class is `miss`.

    `answer` is the exchange's, or follows from it; `None` for a miss and for a recorded failure. `others` are the other
    recordings of a socket in the same state. `is_read` and `is_quiet` are as in `LedgerEntry`.
    """

    kind: RequestKind
    grade: Grade
    exchange: RecordedExchange | None = None
    answer: RecordedResponse | None = None
    differs: tuple[str, ...] = ()
    miss: MissClass | None = None
    others: tuple[RecordedExchange, ...] = ()
    is_read: bool = False
    is_quiet: bool = False


@dataclass(frozen=True)
class _Match:
    fit: Fit
    choice: Selection
    answer: RecordedResponse | None
    is_made: bool = False

    @property
    def grade(self) -> Grade:
        if self.choice.how == "nearest":
            return "uncertain"
        if self.is_made:
            return "synthesised"
        if not self.fit.is_exact:
            return "fuzzy"
        if self.choice.how == "order":
            return "order"
        return "exact" if self.fit.group.is_one else "state"


@dataclass
class Matcher:
    """Answers the requests of one attempt from an index. `walk` is the one preferred at first."""

    index: Index
    secrets: Secrets = field(default_factory=Secrets)
    walk: str = ""
    # Whether an answer was missing or not certain.
    is_unsure: bool = False
    _writes: list[int] = field(default_factory=list)
    _times_requested: defaultdict[object, int] = field(default_factory=lambda: defaultdict(int))
    _entered: list[str] = field(default_factory=list)
    # Recorded values that the page made up, and those that it makes up now.
    _now: dict[str, str] = field(default_factory=dict)
    # The walks that answered writes which other walks answered differently.
    _bound: dict[int, str] = field(default_factory=dict)
    # The page that a step loaded: the step, its address and its number, and which of the writes are its own.
    _load: tuple[int, str, int] = (-1, "", NO_PAGE)
    _own: set[int] = field(default_factory=set)
    # What the site issued, by what it stands for, and what other plays have in its place.
    _issued: dict[str, str] = field(default_factory=dict)
    _instead: dict[str, str] = field(default_factory=dict)

    def match(self, request: WireRequest) -> Match:
        """The answer to a request. Counts the request as made: a write changes later answers."""
        plain = self._as_recorded(request)
        redacted_request = self.secrets.request(plain)
        kind = kind_of(redacted_request)
        context = self.index.context(redacted_request, self.state(request.step))
        answer_match = self._find(redacted_request, context, plain)
        if answer_match is None:
            match = Match(kind, "miss", miss=miss_class(redacted_request, kind))
        else:
            self._note_made_up(plain, answer_match)
            match = self._matched(redacted_request, kind, answer_match)
            if kind == "socket":
                alike = self.index.alike(answer_match.choice.observation.exchange)
                fitting = fitting_in(alike, context, self.index.learnt)
                match = replace(match, others=tuple(each.exchange for each in fitting))
        is_write = self._note(redacted_request, match, is_divided=bool(answer_match and answer_match.choice.is_divided))
        is_certain = match.grade not in ("uncertain", "miss")
        self.is_unsure |= not is_certain
        # Until then, it is of no consequence.
        if self.is_unsure:
            reads = self.index.reads
            # A certain document replaces whatever asked for it.
            is_safe = is_certain and kind == "document"
            is_effective = is_write or (kind == "socket" and not is_certain)
            is_read = not is_effective and (is_safe or not reads.may_change(redacted_request))
            match = replace(
                match, is_read=is_read, is_quiet=is_read and not is_certain and reads.is_quiet(redacted_request)
            )
        if kind == "document":
            self._note_load(redacted_request, match)
        return match

    def _note_load(self, request: WireRequest, match: Match) -> None:
        """Note the page that a step loads."""
        is_known = match.exchange is not None and match.grade != "uncertain"
        page = self.index.page(match.exchange) if match.exchange is not None and is_known else NO_PAGE
        self._load, self._own = (request.step, request.url, page), set()

    def state(self, step: int, count: int | None = None) -> Sequence[int]:
        """The first writes, as many as `count`, as they count in a step: see `RecordedWrites`."""
        if self._load[0] != step or not self.index.writes.own(self._load[2]):
            return self._writes[:count]
        return [*(each for place, each in enumerate(self._writes[:count]) if place not in self._own), self._load[2]]

    def entered(self, texts: Iterable[str]) -> None:
        """Note what the participant entered: a page did not make it up."""
        self._entered += texts

    def note_socket_message(self, url: str, data: bytes, *, is_certain: bool) -> None:
        """Note a message that the page sent over a socket."""
        self._writes.append(self.index.message_label(url, data, is_certain=is_certain))

    def as_recorded(self, data: bytes) -> bytes:
        """What a page sends, with the recorded values in place of those that it made up itself."""
        pairs = [(now, recorded) for recorded, now in self._now.items()]
        return _exchanged(data, [*pairs, *((quote(now, safe=""), quote(recorded, safe="")) for now, recorded in pairs)])

    def as_now(self, data: bytes) -> bytes:
        """What the site sends, with the page's values in place of the recorded ones."""
        return _exchanged(data, [*self._now.items(), *self._instead.items()])

    def _as_recorded(self, request: WireRequest) -> WireRequest:
        if not self._now:
            return request
        url = self.as_recorded(request.url.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        return replace(request, url=url, body=self.as_recorded(request.body))

    def _note_made_up(self, plain: WireRequest, match: _Match) -> None:
        exchange = match.choice.observation.exchange
        self._keep(self.index.made_up(match.fit, exchange))
        self._keep(self.index.made_up_cookies(plain, exchange))
        for stands, value in self.index.issued(exchange):
            # The answers of several plays may be mixed, but a thing keeps its name.
            known = self._issued.setdefault(stands, value)
            if known != value and min(len(known), len(value)) >= _MIN_MADE_UP_CHARS:
                self._instead[value] = known

    def note_message(self, path: str, recorded: bytes, now: bytes) -> None:
        """Note what the page made up in a message over a socket."""
        self._keep(self.index.made_up_in_message(path, recorded, now))

    def _keep(self, made_up: Iterable[tuple[str, str]]) -> None:
        """Keep what the page made up, so that it gets its own value where the site repeats the recorded one."""
        for recorded, now in made_up:
            is_new = recorded != now and recorded not in self._now and now not in self._now.values()
            if is_new and min(len(recorded), len(now)) >= _MIN_MADE_UP_CHARS:
                self._now[recorded] = now

    @property
    def writes(self) -> Sequence[int]:
        """The writes so far."""
        return self._writes

    def _matched(self, request: WireRequest, kind: RequestKind, match: _Match) -> Match:
        exchange = match.choice.observation.exchange
        self._times_requested[match.choice.situation] += 1
        if kind in ("document", "frame") and match.choice.how != "nearest" and not match.fit.group.is_timeless:
            # The pages of one walk belong together: their tokens and sessions.
            self.walk = exchange.walk
        differs = () if match.fit.is_exact and not match.is_made else differing(request, exchange.request)
        answer, grade = match.answer, match.grade
        if grade == "uncertain" and kind in _UNSEEN:
            grade = "exact" if match.fit.is_exact else "fuzzy"
        if answer is not None and (unchanged := not_modified(request, answer)):
            answer, grade = unchanged, grade if grade == "uncertain" else "synthesised"
        return Match(kind, grade, exchange, self._answer(exchange, answer), differs)

    def _answer(self, exchange: RecordedExchange, answer: RecordedResponse | None) -> RecordedResponse | None:
        """The answer with the values that the page made up itself. A stream gets them in each piece."""
        if answer is None or not (self._now or self._instead) or exchange.chunks or not exchange.is_whole:
            return answer
        body = answer.decoded
        if body is None or (changed := self.as_now(body)) == body:
            return answer
        other_headers = without_headers(answer.headers, "content-encoding", "content-length", "etag")
        return replace(answer, headers=(*other_headers, ("Content-Length", str(len(changed)))), body=changed)

    def _note(self, request: WireRequest, match: Match, *, is_divided: bool) -> bool:
        """Note a request that counts as a write. Returns whether it does."""
        if match.kind in ("beacon", "report", "prefetch", "icon", "source_map", "socket"):
            return False
        is_link = match.answer is not None and is_writing_link(request, match.answer)
        is_counted = is_write(request) or is_link
        if is_counted:
            is_certain = match.grade not in ("uncertain", "miss")
            number = self.index.label(request, match.exchange if is_certain else None)
            if request.step == self._load[0] and is_sent_by(request, self._load[1]):
                self._own |= {len(self._writes)} if number in self.index.writes.own(self._load[2]) else set()
            self._writes.append(number)
            if is_divided and match.exchange is not None:
                self._bound[number] = match.exchange.walk
        return is_counted

    def _find(self, request: WireRequest, context: Context, plain: WireRequest) -> _Match | None:
        if not self.index.knows_login(request):
            return self._without_login(request)
        best = self._recorded(request, context, plain)
        if best is not None and best.choice.how != "nearest":
            return best
        derived_match = self._derived(request, context)
        if derived_match is None or (best is not None and derived_match.choice.how == "nearest"):
            return best
        return derived_match

    def _without_login(self, request: WireRequest) -> _Match | None:
        """The answer recorded without a login, if any: answers to other logins would let anyone in."""
        bare = self.index.without_login(request)
        best = self._recorded(bare, self.index.context(bare, self.state(request.step)))
        if best is None or self.index.has_login(best.choice.observation.exchange):
            return None
        return replace(best, choice=best.choice._replace(how="nearest"))

    def _recorded(self, request: WireRequest, context: Context, plain: WireRequest | None = None) -> _Match | None:
        """The best recorded answer: a certain one, or else the first approximate one."""
        nearest: _Match | None = None
        accept = header(request.headers, "accept")
        known = self.index.indexed_request(request, plain, self._entered)
        for fit in self.index.fits(known, accept):
            choice = self._choose(fit.group, context)
            recorded_match = _Match(fit, choice, choice.observation.exchange.answer)
            if choice.how != "nearest":
                return recorded_match
            nearest = nearest or recorded_match
        if nearest is not None:
            return nearest
        for fit in self.index.near(known):
            choice = self._choose(fit.group, context)
            return _Match(fit, choice._replace(how="nearest"), choice.observation.exchange.answer)
        return None

    def _choose(self, group: ObservationGroup, context: Context) -> Selection:
        return choose(
            group, context, self.index.learnt, walk=self.walk, times_requested=self._times_requested, bound=self._bound
        )

    def _derived(self, request: WireRequest, context: Context) -> _Match | None:
        """An answer derived from a recorded one."""
        if is_preflight(request):
            return self._preflight(request)
        if request.method == "HEAD":
            whole = self._recorded(replace(request, method="GET"), context)
            return whole and replace(whole, answer=whole.answer and head_of(whole.answer), is_made=True)
        if not header(request.headers, "range"):
            return None
        whole = self._recorded(without_range(request), context)
        for each in (whole, *self._parts(request, context)):
            if each is not None and each.answer is not None and (part := part_of(request, each.answer)):
                return replace(each, answer=part, is_made=True)
        return None

    def _parts(self, request: WireRequest, context: Context) -> Iterator[_Match]:
        """Recorded parts of the requested range."""
        for exchange in self.index.at(request.url):
            if exchange.answer is not None and exchange.answer.status == 206:
                ranged = header(exchange.request.headers, "range")
                other = without_range(request)
                part_match = self._recorded(replace(other, headers=(*other.headers, ("Range", ranged))), context)
                if part_match is not None:
                    yield part_match

    def _preflight(self, request: WireRequest) -> _Match | None:
        for exchange in self.index.at(request.url):
            if exchange.request.method == after_preflight(request) and exchange.answer is not None:
                for fit in self.index.fits(
                    self.index.indexed_request(exchange.request), header(exchange.request.headers, "accept")
                ):
                    if answer := preflight(request, exchange.answer):
                        choice = Selection(fit.group.observations[0], "certain")
                        return _Match(fit, choice, answer=answer, is_made=True)
        return None


def _exchanged(data: bytes, pairs: Iterable[tuple[str, str]]) -> bytes:
    """The data with the second of each pair in place of the first."""
    has_lengths = is_binary(as_text(data))
    for old, new in pairs:
        # Another length would contradict those that binary data states.
        if not has_lengths or len(old.encode()) == len(new.encode()):
            data = data.replace(old.encode(), new.encode())
    return data
