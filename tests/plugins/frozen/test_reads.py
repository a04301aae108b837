"""Which requests without a certain answer may change what is answered later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Match, Matcher
from plugins.frozen.made import answer, recording, request, walk

HOME = (request("/"), answer(b"home"))
FETCHED: HeaderPairs = (("Sec-Fetch-Dest", "empty"),)
JSON: HeaderPairs = (("Content-Type", "application/json"),)


def missed(asked: WireRequest, *pairs: tuple[WireRequest, RecordedResponse]) -> Match:
    """The match of a request that these ones of a walk do not answer."""
    match = Matcher(Index(recording(walk("w", HOME, *pairs)))).match(asked)
    assert match.grade in ("miss", "uncertain")
    return match


def setting(cookie: str) -> RecordedResponse:
    return answer(b"set", headers=(("Set-Cookie", cookie),))


def test_a_page_that_was_not_recorded_changes_nothing() -> None:
    assert missed(request("/other")).is_read
    assert missed(request("/list?page=3"), (request("/list?page=2"), answer(b"2"))).is_read


@pytest.mark.parametrize(
    "asked",
    [
        request("/save", "POST", b"a=1"),
        request("/item", "DELETE"),
        request("/save", "OPTIONS", headers=(("Access-Control-Request-Method", "PUT"),)),
        WireRequest("GET", "ws://shop.test/live"),
    ],
    ids=["form", "method", "preflight", "socket"],
)
def test_writes_and_sockets_may_change_everything(asked: WireRequest) -> None:
    assert not missed(asked).is_read


def test_a_query_that_is_sent_like_a_write_is_a_read() -> None:
    assert missed(request("/q", "POST", b'{"query": "{ runs }"}', JSON)).is_read


def test_a_link_like_a_recorded_one_with_side_effects_may_change_everything() -> None:
    link = (request("/cart/remove?id=1"), answer(status=302, headers=(("Location", "/cart"),)))
    assert not missed(request("/cart/remove?id=2"), link).is_read
    assert missed(request("/cart/remove?id=2")).is_read
    assert missed(request("/cart/show?id=2"), link).is_read


def test_a_read_that_sets_a_cookie_to_another_value_may_change_everything() -> None:
    seen = (request("/p/1"), setting("seen=1"))
    assert not missed(request("/p/2"), seen).is_read
    assert not missed(request("/p/2", headers=(("Cookie", "seen=0"),)), seen).is_read


def test_a_cookie_that_such_reads_always_set_to_what_it_is_changes_nothing() -> None:
    assert missed(request("/p/2", headers=(("Cookie", "lang=en"),)), (request("/p/1"), setting("lang=en"))).is_read


def test_a_read_between_different_answers_may_change_everything() -> None:
    def visited(path: str) -> tuple[WireRequest, RecordedResponse]:
        return request(path), answer(path.encode())

    changed = (request("/"), answer(b"home, seen: 1"))
    assert not missed(request("/p/2"), visited("/p/1"), changed).is_read
    assert missed(request("/about/us"), visited("/p/1"), changed).is_read
    assert missed(request("/p/2"), changed, visited("/p/1")).is_read


def test_a_read_between_different_cookies_may_change_everything() -> None:
    later = (request("/", headers=(("Cookie", "cart=1"),), step=2), answer(b"home"))
    added = (request("/price/1", headers=FETCHED, step=1), answer(b"5"))
    assert not missed(request("/price/2", headers=FETCHED), added, later).is_read


def test_a_page_like_one_that_writes_as_it_loads_may_change_everything() -> None:
    written: tuple[RecordedExchange, ...] = walk(
        "w",
        HOME,
        (request("/p/1", headers=(("Accept", "text/html"),), step=1), answer(b"page")),
        (request("/seen", "POST", b"id=1", (("Referer", "http://shop.test/p/1"),), step=1), answer(b"ok")),
        (request("/", step=2), answer(b"home")),
    )
    match = Matcher(Index(recording(written))).match(request("/p/2", headers=(("Accept", "text/html"),)))
    assert not match.is_read


def test_of_certain_answers_it_is_known_from_the_first_one_that_is_not_certain() -> None:
    matcher = Matcher(Index(recording(walk("w", HOME, (request("/save", "POST", step=1), answer(b"ok"))))))
    asked = [request("/"), request("/other"), request("/"), request("/save", "POST")]
    assert [matcher.match(each).is_read for each in asked] == [False, True, True, False]


READS, WRITES = ("news", "tasks", "boats"), ("seen", "liked")


@given(st.data())
def test_a_read_is_quiet_if_pages_wrote_nothing_after_any_one_like_it(data: st.DataObject) -> None:
    """The oracle is a page that writes after the answers of some kinds, and in some steps because it was clicked on."""
    writing = data.draw(st.sets(st.sampled_from(READS)))
    acts = st.one_of(st.sampled_from(WRITES), st.tuples(st.sampled_from(READS), st.integers(1, 3)))
    steps = data.draw(st.lists(st.lists(acts, min_size=1, max_size=2), max_size=5))
    pairs, followed = [HOME], {name: list[bool]() for name in READS}
    for step, done in enumerate(steps, 1):
        for place, each in enumerate(done):
            if isinstance(each, str):
                pairs.append((request(f"/{each}", "POST", b"x=1", step=step), answer(b"ok")))
                continue
            name, number = each
            pairs.append((request(f"/{name}/{number}", headers=FETCHED, step=step), answer(str(each).encode())))
            if name in writing:
                pairs.append((request(f"/{name}/mark", "POST", str(number).encode(), step=step), answer(b"ok")))
            later = (isinstance(one, str) or one[0] in writing for one in done[place + 1 :])
            followed[name].append(name in writing or any(later))
    matcher = Matcher(Index(recording(walk("w", *pairs))))
    for name in READS:
        match = matcher.match(request(f"/{name}/9", headers=FETCHED))
        assert match.is_quiet == (bool(followed[name]) and not any(followed[name]))
        assert not (match.is_quiet and name in writing)


def test_a_log_in_that_the_browser_asks_for_does_not_follow_its_page() -> None:
    page = request("/login", headers=(("Accept", "text/html"),), step=1)
    asked, done = answer(b"who are you?", 401), answer(status=302, headers=(("Location", "/"),))
    assert missed(request("/roadmap", headers=page.headers), (page, asked), (page, done)).is_read
    assert not missed(request("/roadmap", headers=page.headers), (page, answer(b"wait")), (page, done)).is_read
