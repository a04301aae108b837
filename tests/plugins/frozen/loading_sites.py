"""Generated sites whose pages make a write of their own as they load, before or after their other requests.

`wrong` records such a site in some walks, visits the archive and the site itself in another one, and compares what both
say. What a page requests as it loads may show the state before or after its own write: it could on the site itself.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import RecordedResponse
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from plugins.frozen.made import SITE, recording, request, walk
from plugins.frozen.test_matching_oracle import SURE, VARIABLES, Page, Server, Site, Write

PAGES, PARTS, WRITES = ("/", "/shop", "/news"), ("/cart", "/seen", "/menu"), ("/save", "/visit", "/undo")
# A write: its path and the value that it sends.
Written = tuple[str, int]


class Step(NamedTuple):
    """What a participant does: it writes something, goes to a page or asks for a part of one, in this order.

    `is_form`: it writes by a form, whose answer is a page too.
    """

    write: Written | None = None
    is_form: bool = False
    page: str = ""
    part: str = ""


class Case(NamedTuple):
    """`own` is what each page writes as it loads, if anything, and `parts` are what it requests then."""

    site: Site
    own: dict[str, Written | None]
    parts: dict[str, list[str]]
    walks: list[list[Step]]
    steps: list[Step]
    seed: int


class Request(NamedTuple):
    """A request, what the site answers, and what else it might have."""

    request: WireRequest
    live: RecordedResponse
    others: tuple[RecordedResponse, ...] = ()


def make_case(seed: int) -> Case:
    """The case with this number."""
    dice = random.Random(f"loading {seed}")
    shown = (Page(path, frozenset(dice.sample(VARIABLES, dice.randint(0, 2)))) for path in (*PAGES, *PARTS))
    writes = (Write(path, dice.choice(VARIABLES), dice.choice(("set", "add", "reset", "copy"))) for path in WRITES)
    own = {page: _written(dice) if dice.random() < 0.6 else None for page in PAGES}
    walks = [_walk(dice) for _ in range(dice.randint(1, 3))]
    steps = _walk(dice) if dice.random() < 0.5 else [each for each in dice.choice(walks) if dice.random() < 0.8]
    parts = {page: dice.sample(PARTS, 2) for page in PAGES}
    return Case(Site(tuple(shown), tuple(writes)), own, parts, walks, steps, seed)


def _written(dice: random.Random) -> Written:
    return dice.choice(WRITES), dice.randint(0, 2)


def _walk(dice: random.Random) -> list[Step]:
    return [
        Step(
            _written(dice) if dice.random() < 0.3 else None,
            dice.random() < 0.5,
            dice.choice(PAGES) if dice.random() < 0.6 else "",
            dice.choice(PARTS) if dice.random() < 0.4 else "",
        )
        for _ in range(dice.randint(1, 8))
    ]


def played(case: Case, steps: Sequence[Step], dice: random.Random, *, leaves_early: bool = True) -> Iterator[Request]:
    """Play steps on the site. `leaves_early`: the participant may go on before a page has written anything."""
    server, page, number = Server(case.site), "", 0

    def sent(path: str, written: Written | None = None, headers: HeaderPairs = ()) -> WireRequest:
        referer = (("Referer", SITE + page),) if page else ()
        path, body = (written[0], str(written[1]).encode()) if written else (path, b"")
        return request(path, "POST" if written else "GET", body, (*referer, *headers), number)

    document = (("Sec-Fetch-Dest", "document"),)
    for write, is_form, goes_to, part in steps:
        number += 1
        if write:
            yield _answered(sent("", write, document if is_form else ()), server)
        if goes_to:
            yield _answered(sent(goes_to, headers=document), server)
            page, own = goes_to, case.own[goes_to]
            before, after = (Server(case.site, dict(server.values)) for _ in range(2))
            loading = [sent(each) for each in case.parts[goes_to]]
            if own and (place := dice.randint(0, 3 if leaves_early else 2)) < 3:
                loading.insert(place, sent("", own))
            if own:
                after.answer(sent("", own))
            for each in loading:
                others = (before.answer(each), after.answer(each)) if each.method == "GET" else ()
                yield Request(each, server.answer(each), others)
        if part:
            number += 1
            yield _answered(sent(part), server)


def _answered(wire_request: WireRequest, server: Server) -> Request:
    return Request(wire_request, server.answer(wire_request))


def flagged(case: Case, grades: Counter[str] | None = None) -> str | None:
    """The first answer of a recorded walk that is not certain, although only the order of what pages do differs."""
    plays = [
        list(played(case, steps, random.Random(f"{case.seed} {at}"), leaves_early=False))
        for at, steps in enumerate(case.walks)
    ]
    known = recording(
        *(walk(f"w{at}", *((one.request, one.live) for one in each)) for at, each in enumerate(plays) if each)
    )
    index = Index(replace(known, walks=tuple(replace(each, is_reference=True) for each in known.walks)))
    for at, steps in enumerate(case.walks):
        matcher = Matcher(index, walk=f"w{at}")
        for wire_request, _, _ in played(case, steps, random.Random(f"{case.seed} again {at}"), leaves_early=False):
            match = matcher.match(wire_request)
            if grades is not None:
                grades[match.grade] += 1
            if match.grade not in SURE:
                return f"w{at}: {wire_request.method} {wire_request.url} {wire_request.step}: {match.grade}"
    return None


def wrong(case: Case, grades: Counter[str] | None = None) -> str | None:
    """The first thing that the archive says without a flag, and that is wrong."""
    walks = [list(played(case, each, random.Random(f"{case.seed} {at}"))) for at, each in enumerate(case.walks)]
    items = [walk(f"w{at}", *((one.request, one.live) for one in each)) for at, each in enumerate(walks) if each]
    if not items:
        return None
    matcher = Matcher(Index(recording(*items)))
    for wire_request, live, others in played(case, case.steps, random.Random(f"{case.seed} visit")):
        match = matcher.match(wire_request)
        if grades is not None:
            grades[match.grade] += 1
        bodies = [each.body for each in (live, *others)]
        if match.grade in SURE and (match.answer is None or match.answer.body not in bodies):
            said = match.answer and match.answer.body
            return (
                f"{wire_request.method} {wire_request.url} {wire_request.step}: {match.grade} {said!r}, live {bodies}"
            )
    return None
