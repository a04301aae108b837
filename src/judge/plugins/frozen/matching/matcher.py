"""The matcher of one attempt: which recorded answer each of its requests gets, and how certain the match is.

In this order: method, address, canonical body, `Range` and `Accept` exactly; the state, where several answers were
recorded; changing values and unordered lists; what follows by the rules of HTTP. Everything else is a miss.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import Answer, Exchange, header
from judge.plugins.frozen.kinds import Kind, kind_of, miss_class
from judge.plugins.frozen.matching.contexts import AUTHORIZATION, Context, counted
from judge.plugins.frozen.matching.index import Index, is_writing_link
from judge.plugins.frozen.matching.keys import differing, is_write
from judge.plugins.frozen.matching.states import Choice, Group, choose, fitting_in
from judge.plugins.frozen.matching.synthesis import (
    after_preflight,
    head_of,
    is_preflight,
    not_modified,
    part_of,
    preflight,
    without_range,
)
from judge.plugins.frozen.secrets import Secrets
from judge.records.ledger import Grade, MissClass

# No page sees the answers to these.
_UNSEEN = frozenset({"beacon", "report"})
# Increased with every change that may give another answer.
MATCHER = "4"


@dataclass(frozen=True)
class Match:
    """The answer to a request. `exchange` is `None` for a miss, whose class is `miss`.

    `answer` is the exchange's, or follows from it; `None` for a miss and for a recorded failure. `others` are the other
    recordings of a socket in the same state.
    """

    kind: Kind
    grade: Grade
    exchange: Exchange | None = None
    answer: Answer | None = None
    differs: tuple[str, ...] = ()
    miss: MissClass | None = None
    others: tuple[Exchange, ...] = ()


@dataclass(frozen=True)
class _Found:
    group: Group
    choice: Choice
    is_same: bool
    answer: Answer | None
    is_made: bool = False

    @property
    def grade(self) -> Grade:
        if self.choice.how == "nearest":
            return "uncertain"
        if self.is_made:
            return "synthesised"
        if not self.is_same:
            return "fuzzy"
        if self.choice.how == "order":
            return "order"
        return "exact" if self.group.is_one else "state"


@dataclass
class Matcher:
    """Answers the requests of one attempt from an index. `walk` is the one preferred at first."""

    index: Index
    secrets: Secrets = field(default_factory=Secrets)
    walk: str = ""
    _writes: list[int] = field(default_factory=list)
    _asked: defaultdict[object, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def now_ms(self) -> int:
        """The start of the page's clock."""
        return self.index.recording.clock_ms

    def match(self, request: WireRequest) -> Match:
        """The answer to a request. Counts the request as made: a write changes later answers."""
        asked = self.secrets.request(request)
        kind = kind_of(asked)
        context = self.context(asked)
        found = self._find(asked, context)
        if found is None:
            match = Match(kind, "miss", miss=miss_class(asked, kind))
        else:
            match = self._matched(asked, kind, found)
            if kind == "socket":
                fitting = fitting_in(found.group, context, self.index.learnt)
                match = replace(match, others=tuple(each.exchange for each in fitting))
        self._note(asked, match)
        return match

    def context(self, request: WireRequest) -> Context:
        """The state in which a request is made."""
        return Context(counted(self._writes), self.index.cookies_of(request, self.now_ms))

    def sent(self, url: str, data: bytes, *, is_certain: bool) -> None:
        """Note a message that the page sent over a socket."""
        self._writes.append(self.index.message_label(url, data, self.now_ms, is_certain=is_certain))

    @property
    def writes(self) -> Sequence[int]:
        """The writes so far."""
        return self._writes

    def _matched(self, asked: WireRequest, kind: Kind, found: _Found) -> Match:
        exchange = found.choice.observation.exchange
        self._asked[found.choice.situation] += 1
        if kind in ("document", "frame") and found.choice.how != "nearest" and not found.group.is_timeless:
            # The pages of one walk belong together: their tokens and sessions.
            self.walk = exchange.walk
        differs = () if found.is_same and not found.is_made else differing(asked, exchange.request)
        answer, grade = found.answer, found.grade
        if grade == "uncertain" and kind in _UNSEEN:
            grade = "exact" if found.is_same else "fuzzy"
        if answer is not None and (unchanged := not_modified(asked, answer)):
            answer, grade = unchanged, grade if grade == "uncertain" else "synthesised"
        return Match(kind, grade, exchange, answer, differs)

    def _note(self, asked: WireRequest, match: Match) -> None:
        if match.kind in ("beacon", "report", "prefetch", "icon", "source_map", "socket"):
            return
        is_link = match.answer is not None and is_writing_link(asked, match.answer)
        if is_write(asked) or is_link:
            certain = match.grade not in ("uncertain", "miss")
            self._writes.append(self.index.label(asked, self.now_ms, is_certain=certain))

    def _find(self, asked: WireRequest, context: Context) -> _Found | None:
        if not self.index.knows_login(asked):
            return self._without_login(asked)
        best = self._recorded(asked, context)
        if best is not None and best.choice.how != "nearest":
            return best
        made = self._made(asked, context)
        if made is None or (best is not None and made.choice.how == "nearest"):
            return best
        return made

    def _without_login(self, asked: WireRequest) -> _Found | None:
        """The answer that was recorded without a login, if any: answers to other logins would let anyone in."""
        headers = tuple((name, value) for name, value in asked.headers if name.lower() != AUTHORIZATION)
        bare = replace(asked, headers=headers)
        best = self._recorded(bare, self.context(bare))
        if best is None or header(best.choice.observation.exchange.request.headers, AUTHORIZATION):
            return None
        return replace(best, choice=best.choice._replace(how="nearest"))

    def _recorded(self, asked: WireRequest, context: Context) -> _Found | None:
        """The best recorded answer: a certain one, or else the first approximate one."""
        nearest: _Found | None = None
        key = self.index.key(asked, self.now_ms)
        for group, is_same in self.index.groups(key, header(asked.headers, "accept")):
            choice = choose(group, context, self.index.learnt, walk=self.walk, asked=self._asked)
            found = _Found(group, choice, is_same, choice.observation.exchange.answer)
            if choice.how != "nearest":
                return found
            nearest = nearest or found
        if mixed := self.index.in_any_order(key):
            choice = choose(mixed, context, self.index.learnt, walk=self.walk, asked=self._asked)
            is_idle = mixed.is_one and self.index.is_idle(key)
            found = _Found(mixed, choice, False, choice.observation.exchange.answer)
            if is_idle and choice.how != "nearest":
                return found
            # Otherwise, the order may be what the request is about.
            nearest = nearest or replace(found, choice=choice._replace(how="nearest"))
        return nearest

    def _made(self, asked: WireRequest, context: Context) -> _Found | None:
        """An answer derived from a recorded one."""
        if is_preflight(asked):
            return self._preflight(asked)
        if asked.method == "HEAD":
            whole = self._recorded(replace(asked, method="GET"), context)
            return whole and replace(whole, answer=whole.answer and head_of(whole.answer), is_made=True)
        if not header(asked.headers, "range"):
            return None
        whole = self._recorded(without_range(asked), context)
        for each in (whole, *self._parts(asked, context)):
            if each is not None and each.answer is not None and (part := part_of(asked, each.answer)):
                return replace(each, answer=part, is_made=True)
        return None

    def _parts(self, asked: WireRequest, context: Context) -> Iterator[_Found]:
        """Recorded parts of the requested range."""
        for exchange in self.index.at(asked.url):
            if exchange.answer is not None and exchange.answer.status == 206:
                ranged = header(exchange.request.headers, "range")
                other = without_range(asked)
                found = self._recorded(replace(other, headers=(*other.headers, ("Range", ranged))), context)
                if found is not None:
                    yield found

    def _preflight(self, asked: WireRequest) -> _Found | None:
        for exchange in self.index.at(asked.url):
            if exchange.request.method == after_preflight(asked) and exchange.answer is not None:
                for group, _ in self.index.groups(
                    self.index.key(exchange.request, exchange.at_ms), header(exchange.request.headers, "accept")
                ):
                    if answer := preflight(asked, exchange.answer):
                        choice = Choice(group.observations[0], "certain")
                        return _Found(group, choice, is_same=False, answer=answer, is_made=True)
        return None
