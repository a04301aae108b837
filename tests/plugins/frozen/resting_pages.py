"""Generated sites whose pages keep what they get, and what is seen on them rests on.

`wrong` records such a site in some walks, and visits its archive and the site itself in another one. What a look, the
requests of a step, or the absence of others rests on must be certain answers only where both visits are the same.
Pages show what a document and later answers said, in the order in which they came or only the last one, and what they
assume that a write does. After some answers they write by themselves.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Match, Matcher
from judge.records.ledger import Frozen, LedgerEntry
from judge.records.reliance import Reliance
from judge.records.steps import Step
from plugins.frozen.made import SITE, recording, request, walk
from plugins.frozen.test_matching_oracle import VARIABLES, Page, Server, Site, Write
from shared.models import Action

PAGES, PARTS, WRITES = ("/", "/shop", "/news"), ("/list", "/days"), ("/save", "/undo", "/mark")
NUMBERS = 5
Kind = Literal["open", "ask", "write"]


class Do(NamedTuple):
    """What a participant does: it opens a page, or lets the page ask for a part or write something."""

    kind: Kind
    path: str
    number: int = 0


class Case(NamedTuple):
    """`writing` are the parts after which pages write by themselves; `keeps`: a page shows all answers."""

    site: Site
    writing: frozenset[str]
    keeps: bool
    walks: list[list[Do]]
    visit: list[Do]


def make_case(seed: int) -> Case:
    """The case with this number."""
    dice = random.Random(f"resting {seed}")
    parts = [f"{part}/{number}" for part in PARTS for number in range(NUMBERS)]
    shown = (Page(path, frozenset(dice.sample(VARIABLES, dice.randint(0, 2)))) for path in (*PAGES, *parts))
    writes = (Write(path, dice.choice(VARIABLES), dice.choice(("set", "add", "reset", "copy"))) for path in WRITES)
    walks = [_walk(dice) for _ in range(dice.randint(1, 2))]
    # Of what was never asked for, nobody knows that pages write after it.
    asked = sorted({each.path for one in walks for each in one if each.kind == "ask"})
    writing = frozenset(each for each in asked if dice.random() < 0.5)
    # A recorded walk, with something else in it: done once more, or not recorded. It often ends on a new page.
    visit = [*dice.choice(walks), *([Do("open", dice.choice(PAGES))] if dice.random() < 0.5 else [])]
    for _ in range(dice.randint(0, 2)):
        others = (_do(dice), Do("ask", dice.choice(PARTS), dice.randrange(NUMBERS)), dice.choice(visit))
        visit.insert(dice.randint(0, len(visit)), dice.choice(others))
    return Case(Site(tuple(shown), tuple(writes)), writing, dice.random() < 0.5, walks, visit)


def _walk(dice: random.Random) -> list[Do]:
    return [_do(dice) for _ in range(dice.randint(1, 5))]


def _do(dice: random.Random) -> Do:
    paths: Mapping[Kind, Sequence[str]] = {"open": PAGES, "ask": PARTS, "write": WRITES[:2]}
    kind = dice.choice([*paths, "ask"])
    return Do(kind, dice.choice(paths[kind]), dice.randrange(NUMBERS))


# What a request gets, if anything.
Answered = Callable[[WireRequest], RecordedResponse | None]


@dataclass
class Visit:
    """A browser: what its page shows after each step, and what it sent in each."""

    case: Case
    answer: Answered
    page: str = SITE + "/"
    shown: list[str] = field(default_factory=list)
    looks: list[list[str]] = field(default_factory=list)
    sent: list[list[tuple[str, str, bytes]]] = field(default_factory=list)
    exchanges: list[tuple[WireRequest, RecordedResponse | None]] = field(default_factory=list)

    def walk(self, does: Sequence[Do]) -> None:
        for step, do in enumerate([Do("open", "/"), *does]):
            self.sent.append([])
            self._do(do, step)
            self.looks.append(list(self.shown))

    def _do(self, do: Do, step: int) -> None:
        if do.kind == "open":
            self.page = SITE + do.path
            answer = self._send(request(do.path, headers=(("Sec-Fetch-Dest", "document"),), step=step))
            self.shown = [answer or "a page of the judge's own"]
        elif do.kind == "ask":
            answer = self._send(self._fetch(f"{do.path}/{do.number}", step))
            if answer and do.path in self.case.writing:
                self._send(self._fetch("/mark", step, str(do.number)))
            self._show(answer)
        else:
            # What is sent depends on what is shown.
            value = (do.number + len(self.shown)) % NUMBERS
            self.shown.append(f"assumed {value}")
            self._show(self._send(self._fetch(do.path, step, str(value))))

    def _show(self, answer: str) -> None:
        self.shown = self.shown if not answer else [*self.shown, answer] if self.case.keeps else [answer]

    def _fetch(self, path: str, step: int, body: str = "") -> WireRequest:
        headers = (("Sec-Fetch-Dest", "empty"), ("Referer", self.page))
        return request(path, "POST" if body else "GET", body.encode(), headers, step)

    def _send(self, wire: WireRequest) -> str:
        self.sent[-1].append((wire.method, wire.url, wire.body))
        answer = self.answer(wire)
        self.exchanges.append((wire, answer))
        return answer.body.decode() if answer else ""


def _live(case: Case, does: Sequence[Do]) -> Visit:
    visit = Visit(case, Server(case.site).answer)
    visit.walk(does)
    return visit


def _recorded(case: Case) -> Index:
    walks: list[tuple[RecordedExchange, ...]] = []
    for number, does in enumerate(case.walks):
        walks.append(walk(f"w{number}", *_live(case, does).exchanges))
    return Index(recording(*walks))


def wrong(case: Case, counts: Counter[str]) -> str | None:
    """What rests on certain answers only, but differs from the live site. Counts looks by what they rest on."""
    entries: list[LedgerEntry] = []
    matcher = Matcher(_recorded(case))

    def answer(wire: WireRequest) -> RecordedResponse | None:
        match = matcher.match(wire)
        entries.append(_entry(wire, match))
        return match.answer

    live, frozen = _live(case, case.visit), Visit(case, answer)
    frozen.walk(case.visit)
    does = [Do("open", "/"), *case.visit]
    steps = [
        Step(
            index=step,
            url=SITE,
            title="",
            is_loaded=do.kind == "open",
            action=Action(tool=_tool_after(does, step), params={}),
        )
        for step, do in enumerate(does)
    ]
    reliance = Reliance.of(Frozen(archives=()).with_ledger(entries), steps)
    for step in range(len(does)):
        is_same = frozen.looks[step] == live.looks[step]
        counts[f"{reliance.of_look(step)}, {'same' if is_same else 'other'}"] += 1
        if reliance.of_look(step) == "full" and not is_same:
            return f"look {step}: {frozen.looks[step]}, live {live.looks[step]}"
        if reliance.of_requests(step) == "full" and frozen.sent[step] != live.sent[step]:
            return f"requests of step {step}: {frozen.sent[step]}, live {live.sent[step]}"
    writes = [[one for each in visit.sent for one in each if one[0] == "POST"] for visit in (frozen, live)]
    if reliance.absent == "full" and writes[0] != writes[1]:
        return f"writes: {writes[0]}, live {writes[1]}"
    return None


def _tool_after(does: Sequence[Do], step: int) -> str:
    if step + 1 == len(does):
        return "finish"
    return "browser_navigate" if does[step + 1].kind == "open" else "browser_click"


def _entry(wire: WireRequest, match: Match) -> LedgerEntry:
    return LedgerEntry(
        step=wire.step, method=wire.method, url=wire.url, kind=match.kind, grade=match.grade, miss=match.miss,
        is_read=match.is_read, is_quiet=match.is_quiet,
    )  # fmt: skip
