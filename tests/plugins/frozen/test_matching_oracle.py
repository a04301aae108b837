"""The matcher against an oracle: small generated servers, recorded in some walks and replayed in others.

A replayed answer says what the server would say, or it is graded uncertain or a miss.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from plugins.frozen.made import answer, recording, request, walk

VARIABLES = ("a", "b", "c")
SURE = ("exact", "state", "order", "fuzzy", "synthesised")


@dataclass(frozen=True)
class Write:
    """What a POST does to a variable."""

    path: str
    variable: str
    effect: Literal["set", "add", "reset", "copy"]
    # Only then: the variable that decides whether it is done at all.
    unless: str = ""


@dataclass(frozen=True)
class Page:
    path: str
    shows: frozenset[str]
    shows_theme: bool = False


@dataclass(frozen=True)
class Site:
    pages: tuple[Page, ...]
    writes: tuple[Write, ...]


@dataclass
class Server:
    site: Site
    values: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VARIABLES, 0))

    def answer(self, wire_request: WireRequest) -> RecordedResponse:
        path, cookie = wire_request.url.removeprefix("http://shop.test"), dict(wire_request.headers).get("Cookie", "")
        for page in self.site.pages:
            if wire_request.method == "GET" and page.path == path:
                text = {name: self.values[name] for name in sorted(page.shows)}
                return answer(f"{path} {text} {cookie if page.shows_theme else ''}".encode())
        for write in self.site.writes:
            if wire_request.method == "POST" and write.path == path:
                return self.answer_to_write(write, int(wire_request.body))
        return answer(b"not found", 404)

    def answer_to_write(self, write: Write, value: int) -> RecordedResponse:
        if write.unless and self.values[write.unless]:
            return answer(b"locked")
        before = self.values[write.variable]
        others = [name for name in VARIABLES if name != write.variable]
        after = {"set": value, "add": before + value, "reset": 0, "copy": self.values[others[0]]}[write.effect]
        self.values[write.variable] = after
        return answer(f"now {after}".encode())


PATHS = st.sampled_from(["/", "/a", "/a/more", "/b", "/list", "/x/y"])
WRITES = st.builds(
    Write,
    path=st.sampled_from(["/a/do", "/b/do", "/a/undo", "/save", "/x/y/z"]),
    variable=st.sampled_from(VARIABLES),
    effect=st.sampled_from(["set", "add", "reset", "copy"]),
    unless=st.sampled_from(["", "", *VARIABLES]),
)
PAGES = st.builds(
    Page, path=PATHS, shows=st.frozensets(st.sampled_from(VARIABLES), max_size=2), shows_theme=st.booleans()
)
SITES = st.builds(
    Site,
    pages=st.lists(PAGES, min_size=1, max_size=5, unique_by=lambda page: page.path).map(tuple),
    writes=st.lists(WRITES, min_size=1, max_size=4, unique_by=lambda write: write.path).map(tuple),
)


@st.composite
def requests(draw: st.DrawFn, site: Site) -> WireRequest:
    theme = draw(st.sampled_from(["", "", "theme=dark", "theme=light"]))
    headers = (("Cookie", theme),) if theme else ()
    if draw(st.integers(0, 2)):
        return request(draw(st.sampled_from(site.pages)).path, headers=headers)
    chosen = draw(st.sampled_from(site.writes))
    return request(chosen.path, "POST", str(draw(st.integers(0, 2))).encode(), headers)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Site, list[list[WireRequest]], list[WireRequest]]:
    site = draw(SITES)
    requested = st.lists(requests(site), min_size=1, max_size=14)
    return site, draw(st.lists(requested, min_size=1, max_size=3)), draw(requested)


def recorded(site: Site, walks: list[list[WireRequest]]) -> Index:
    items: list[tuple[RecordedExchange, ...]] = []
    for number, wire_request in enumerate(walks):
        server = Server(site)
        items.append(walk(f"w{number}", *((each, server.answer(each)) for each in wire_request)))
    return Index(recording(*items))


# `benchmarks/frozen oracle` compares 40,000 of them.
@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(cases())
def test_a_replayed_answer_is_the_servers_or_uncertain_or_a_miss(
    case: tuple[Site, list[list[WireRequest]], list[WireRequest]],
) -> None:
    site, walks, requested = case
    matcher, server = Matcher(recorded(site, walks)), Server(site)
    grades: Counter[str] = Counter()
    for each in requested:
        live, match = server.answer(each), matcher.match(each)
        grades[match.grade] += 1
        if match.grade in SURE:
            assert match.answer is not None
            assert (match.answer.status, match.answer.body) == (live.status, live.body), (each, match)
    event(f"sure {sum(grades[grade] for grade in SURE) * 4 // len(requested)}/4")


@given(cases())
def test_a_recorded_walk_is_replayed_as_it_was(case: tuple[Site, list[list[WireRequest]], list[WireRequest]]) -> None:
    site, walks, _ = case
    index = recorded(site, walks)
    for number, wire_request in enumerate(walks):
        matcher, server = Matcher(index, walk=f"w{number}"), Server(site)
        for each in wire_request:
            live, match = server.answer(each), matcher.match(each)
            assert match.grade in SURE, (each, match)
            assert match.answer is not None
            assert match.answer.body == live.body
