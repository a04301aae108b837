import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, SiteRecording, Walk, header
from judge.plugins.frozen.kinds import kind_of
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from judge.plugins.frozen.matching.requests import canonical_body, is_write
from judge.plugins.frozen.secrets import Secrets, written_parts
from judge.trajectory.forms import parts_of
from plugins.frozen.made import AGAIN, MINUTE_MS, START_MS, answer, played_twice, recording, request, walk

JSON = (("Content-Type", "application/json"),)


def matcher(*walks: tuple[RecordedExchange, ...]) -> Matcher:
    return Matcher(Index(recording(*walks)))


def one(path: str, body: bytes = b"page", headers: HeaderPairs = (), status: int = 200) -> Matcher:
    return matcher(walk("w", (request(path), answer(body, status, headers=headers))))


def test_the_same_request_is_exact() -> None:
    match = one("/a").match(request("/a"))
    assert (match.grade, match.answer and match.answer.body, match.differs) == ("exact", b"page", ())


@pytest.mark.parametrize("path", ["/b", "/a?x=1", "https://shop.test/a", "http://other.test/a"])
def test_another_address_is_a_miss(path: str) -> None:
    assert one("/a").match(request(path)).grade == "miss"


def test_another_method_is_a_miss() -> None:
    assert one("/a").match(request("/a", "POST")).grade == "miss"


def graphql(variables: object, query: str = "query Runs($ids: [ID]) { runs }") -> bytes:
    return json.dumps({"query": query, "variables": variables}).encode()


def test_persisted_queries_do_not_answer_each_other() -> None:
    def body(digest: str) -> bytes:
        return json.dumps({"operationName": "AQuery", "extensions": {"sha256Hash": digest * 32}}).encode()

    index = Index(played_twice(lambda _: [(request("/q", "POST", body("ab"), JSON), answer(b"a"))]))
    assert Matcher(index).match(request("/q", "POST", body("cd"), JSON)).grade == "miss"


@pytest.mark.parametrize(
    ("method", "body", "expected"),
    [
        ("GET", b"", False),
        ("POST", b"a=1", True),
        ("POST", b'{"query": "{ runs }"}', False),
        ("POST", b'{"operationName": "SaveQuery", "extensions": {"persistedQuery": {"sha256Hash": "ab"}}}', True),
        ("POST", b'[{"query": "query A { a }"}, {"query": "mutation B { b }"}]', True),
        ("POST", b'{"query": "fragment F on A { a } mutation B { b }"}', True),
        ("DELETE", b"", True),
    ],
)
def test_writes(method: str, body: bytes, expected: bool) -> None:
    assert is_write(request("/q", method, body, JSON if body[:1] in b"[{" else ())) is expected


def test_a_multipart_body_matches_regardless_of_its_boundary() -> None:
    def parts(boundary: str) -> tuple[bytes, HeaderPairs]:
        body = f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--{boundary}--\r\n'
        return body.encode(), (("Content-Type", f"multipart/form-data; boundary={boundary}"),)

    body, headers = parts("one")
    replay_matcher = matcher(walk("w", (request("/up", "POST", body, headers), answer(b"saved"))))
    body, headers = parts("another")
    assert replay_matcher.match(request("/up", "POST", body, headers)).grade == "exact"


def test_the_answer_in_the_same_state_is_chosen() -> None:
    replay_matcher = matcher(
        walk(
            "w",
            (request("/cart"), answer(b"empty")),
            (request("/cart/add", "POST", b"id=1"), answer(status=303, headers=(("Location", "/cart"),))),
            (request("/cart"), answer(b"one lamp")),
        )
    )
    first = replay_matcher.match(request("/cart"))
    replay_matcher.match(request("/cart/add", "POST", b"id=1"))
    second = replay_matcher.match(request("/cart"))
    assert [(each.grade, each.answer and each.answer.body) for each in (first, second)] == [
        ("state", b"empty"),
        ("state", b"one lamp"),
    ]


def test_a_page_after_a_write_that_it_was_not_recorded_after_is_uncertain() -> None:
    replay_matcher = matcher(
        walk("w", (request("/cart"), answer(b"empty")), (request("/cart/add", "POST", b"id=1"), answer(b"ok")))
    )
    replay_matcher.match(request("/cart/add", "POST", b"id=1"))
    assert replay_matcher.match(request("/cart")).grade == "uncertain"


def test_a_missed_write_makes_pages_uncertain_but_not_files() -> None:
    script = (("Sec-Fetch-Dest", "script"),)
    replay_matcher = matcher(
        walk(
            "w",
            (request("/"), answer(b"home")),
            (request("/app.js", headers=script), answer(b"js", mime="text/javascript", headers=(("ETag", '"1"'),))),
        )
    )
    assert replay_matcher.match(request("/save", "POST", b"x=1")).grade == "miss"
    assert replay_matcher.match(request("/")).grade == "uncertain"
    assert replay_matcher.match(request("/app.js", headers=script)).grade == "exact"


def test_different_answers_in_the_same_state_come_in_their_order_and_then_are_uncertain() -> None:
    replay_matcher = matcher(walk("w", *((request("/poll"), answer(f"{part} %".encode())) for part in (10, 50, 90))))
    answers = [replay_matcher.match(request("/poll")) for _ in range(4)]
    assert [each.grade for each in answers] == ["order", "order", "order", "uncertain"]
    assert [each.answer and each.answer.body for each in answers[:3]] == [b"10 %", b"50 %", b"90 %"]


def test_a_cookie_selects_among_answers() -> None:
    dark, light = (("Cookie", "theme=dark"),), (("Cookie", "theme=light"),)
    replay_matcher = matcher(
        walk("w", (request("/", headers=dark), answer(b"dark")), (request("/", headers=light), answer(b"light")))
    )
    assert replay_matcher.match(request("/", headers=light)).answer == answer(b"light")
    assert replay_matcher.match(request("/", headers=(("Cookie", "theme=blue"),))).grade == "uncertain"


def test_a_cookie_that_differs_in_each_play_does_not_matter() -> None:
    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        cookie = f"sid={play}f8e7d6c5b4a39281706"
        return [
            (request("/"), answer(b"home", headers=(("Set-Cookie", cookie),))),
            (request("/me", headers=(("Cookie", cookie),)), answer(b"Ada")),
        ]

    matcher = Matcher(Index(played_twice(pairs)))
    assert matcher.match(request("/me", headers=(("Cookie", "sid=0a1b2c3d4e5f60718293"),))).grade == "exact"


def test_an_etag_that_the_browser_has_is_answered_304() -> None:
    replay_matcher = one("/a", headers=(("ETag", '"v1"'), ("Cache-Control", "no-cache")))
    match = replay_matcher.match(request("/a", headers=(("If-None-Match", 'W/"v1"'),)))
    assert (match.grade, match.answer and match.answer.status, match.answer and match.answer.body) == (
        "synthesised",
        304,
        b"",
    )
    assert replay_matcher.match(request("/a", headers=(("If-None-Match", '"old"'),))).grade == "exact"


def test_a_recorded_304_stands_for_the_whole_answer() -> None:
    tagged = (("ETag", '"v1"'),)
    replay_matcher = matcher(
        walk(
            "w",
            (request("/a"), answer(b"whole", headers=tagged)),
            (request("/save", "POST"), answer(b"ok")),
            (request("/a", headers=(("If-None-Match", '"v1"'),)), answer(b"", 304, headers=tagged)),
        )
    )
    replay_matcher.match(request("/save", "POST"))
    match = replay_matcher.match(request("/a"))
    assert (match.grade, match.answer and match.answer.body) == ("exact", b"whole")


@pytest.mark.parametrize(
    ("requested", "body", "place"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-2", b"89", "bytes 8-9/10"),
        ("bytes=20-30", b"", "bytes */10"),
    ],
)
def test_a_range_is_cut_from_the_whole(requested: str, body: bytes, place: str) -> None:
    match = one("/film", b"0123456789").match(request("/film", headers=(("Range", requested),)))
    assert match.answer is not None
    assert (match.grade, match.answer.body) == ("synthesised", body)
    assert header(match.answer.headers, "content-range") == place


def test_a_range_is_cut_from_a_recorded_part() -> None:
    part = answer(b"2345", 206, headers=(("Content-Range", "bytes 2-5/10"),))
    replay_matcher = matcher(walk("w", (request("/film", headers=(("Range", "bytes=2-5"),)), part)))
    answers = replay_matcher.match(request("/film", headers=(("Range", "bytes=3-4"),)))
    assert (answers.grade, answers.answer and answers.answer.body) == ("synthesised", b"34")


def test_a_range_is_not_cut_from_an_encoded_answer() -> None:
    replay_matcher = one("/film", b"0123456789", headers=(("Content-Encoding", "gzip"),))
    assert replay_matcher.match(request("/film", headers=(("Range", "bytes=0-1"),))).grade == "miss"


def test_a_preflight_for_a_recorded_request_is_answered() -> None:
    replay_matcher = matcher(
        walk("w", (request("/api", "PUT"), answer(b"ok", headers=(("Access-Control-Allow-Origin", "*"),))))
    )
    requested = (("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Headers", "x-a"))
    match = replay_matcher.match(request("/api", "OPTIONS", headers=requested))
    assert match.answer is not None
    assert (match.grade, match.answer.status) == ("synthesised", 204)
    assert header(match.answer.headers, "access-control-allow-headers") == "x-a"
    assert replay_matcher.match(request("/other", "OPTIONS", headers=requested)).grade == "miss"


def test_a_recorded_failure_is_not_a_miss() -> None:
    match = matcher(walk("w", (request("/gone"), None))).match(request("/gone"))
    assert (match.grade, match.answer, match.exchange and match.exchange.failure) == ("exact", None, "unreachable")


MISSES = [
    ("/", (("Sec-Fetch-Dest", "document"),), "decisive"),
    ("/", (("Accept", "text/html,*/*"),), "decisive"),
    ("/a.js", (("Sec-Fetch-Dest", "script"),), "decisive"),
    ("/a.css", (("Accept", "text/css,*/*;q=0.1"),), "decisive"),
    ("/api", (("Sec-Fetch-Dest", "empty"),), "decisive"),
    ("ws://shop.test/", (), "decisive"),
    ("/a.png", (("Sec-Fetch-Dest", "image"),), "cosmetic"),
    ("/a.woff2", (("Sec-Fetch-Dest", "font"),), "cosmetic"),
    ("/a.mp4", (("Sec-Fetch-Dest", "video"),), "cosmetic"),
    ("/favicon.ico", (), "harmless"),
    ("/a.js.map", (), "harmless"),
    ("/next", (("Sec-Purpose", "prefetch"),), "harmless"),
    ("/csp", (("Sec-Fetch-Dest", "report"),), "harmless"),
]


@pytest.mark.parametrize(("path", "headers", "expected"), MISSES)
def test_classes_of_misses(path: str, headers: HeaderPairs, expected: str) -> None:
    assert matcher().match(request(path, headers=headers)).miss == expected


def test_a_beacon_is_harmless_and_an_unknown_write_is_decisive() -> None:
    beacon = (("Sec-Fetch-Dest", "empty"), ("Sec-Fetch-Mode", "no-cors"))
    assert matcher().match(request("/b", "POST", b"x", beacon)).miss == "harmless"
    assert matcher().match(request("/b", "POST", b"x", (("Sec-Fetch-Dest", "empty"),))).miss == "decisive"


@given(st.binary(max_size=300), st.text(max_size=60))
def test_any_body_has_a_canonical_form(body: bytes, mime_type: str) -> None:
    assert canonical_body(body, mime_type) == canonical_body(body, mime_type)
    assert canonical_body(body, "multipart/form-data; boundary=x") is not None


@given(
    st.lists(
        st.tuples(st.text("abc", min_size=1), st.binary(max_size=30).filter(lambda data: b"--" not in data)), max_size=5
    )
)
def test_parts_are_read_as_they_were_written(fields: list[tuple[str, bytes]]) -> None:
    mime_type = "multipart/form-data; boundary=mark"
    body = b"".join(
        b'--mark\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), data)
        for name, data in fields
    )
    parts = parts_of(body + b"--mark--\r\n", mime_type)
    assert [(part.name, part.data) for part in parts] == fields
    assert parts_of(written_parts(parts, mime_type), mime_type) == parts


@given(st.text(max_size=80), st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4).map(tuple))
def test_every_request_is_for_something(path: str, headers: HeaderPairs) -> None:
    assert kind_of(request("/" + path.replace("://", ""), headers=headers))


FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


@pytest.mark.parametrize(
    ("referer", "began", "step", "last", "grade"),
    [
        ("/", 5, 0, 1, "exact"),
        # The page before may have sent it, or a step of the participant.
        ("/", 0, 0, 1, "uncertain"),
        ("/before", 5, 0, 1, "uncertain"),
        ("/", 5, 1, 1, "uncertain"),
        # By hand, or in a log-in, everything is one step.
        ("/", 5, 0, 0, "uncertain"),
    ],
)
def test_a_write_that_a_page_makes_by_itself_as_it_loads_may_come_before_or_after_its_other_requests(
    referer: str, began: int, step: int, last: int, grade: str
) -> None:
    page = request("/", headers=(("Sec-Fetch-Dest", "document"),))
    seen = request("/seen", "POST", headers=(("Referer", f"http://shop.test{referer}"),), step=step)
    requests = (page, request("/part"), seen, request("/later", step=last))
    ticks = ((1, 3), (4, 4) if began == 5 else (8, 9), (began, began), (20, 20))
    loads = zip(walk("w", *((each, answer()) for each in requests)), ticks, strict=True)
    known = matcher(tuple(replace(each, began=at[0], ended=at[1]) for each, at in loads))
    order = (page, seen, request("/part")) if began == 5 else (page, request("/part"))
    assert [known.match(each).grade for each in order][-1] == grade


@pytest.mark.parametrize(
    ("requested", "grade"),
    [
        (("seen", "part"), "exact"),
        (("seen", "page"), "uncertain"),
        (("seen", "next", "seen next", "part"), "uncertain"),
    ],
)
def test_a_write_that_a_page_makes_as_it_loads_counts_for_the_page_itself_and_for_later_steps(
    requested: Sequence[str], grade: str
) -> None:
    def own(path: str, step: int) -> WireRequest:
        return request("/seen", "POST", path.encode(), (("Referer", f"http://shop.test{path}"),), step=step)

    document = (("Sec-Fetch-Dest", "document"),)
    requests = {
        "page": request("/", headers=document),
        "part": request("/part"),
        "seen": own("/", 0),
        "next": request("/next", headers=document, step=1),
        "seen next": own("/next", 1),
    }
    known = matcher(walk("w", *((each, answer(name.encode())) for name, each in requests.items())))
    assert [known.match(requests[name]).grade for name in ("page", *requested)][-1] == grade


@pytest.mark.parametrize(
    ("ids", "now"),
    [
        ((("k3j9x1aa", "p0z7q2bb"), ("m2n8b4cc", "t5v1c6dd")), ("z9y8x7ee", "q1w2e3ff")),
        (
            ((str(START_MS + 10), str(START_MS + 20)), (str(START_MS + 60_011), str(START_MS + 60_019))),
            (str(START_MS + 12), str(START_MS + 17)),
        ),
    ],
    ids=["random", "times"],
)
@pytest.mark.parametrize(("chosen", "grades"), [(0, ["exact", "exact"]), (1, ["uncertain", "uncertain"])])
def test_of_things_that_the_page_named_itself_another_one_is_another_thing(
    ids: tuple[tuple[str, str], ...], now: tuple[str, str], chosen: int, grades: list[str]
) -> None:
    def requests(names: tuple[str, str], dropped: int) -> list[WireRequest]:
        milk, bread = (
            request(f"/todos/{name}", "PUT", text) for name, text in zip(names, (b"milk", b"bread"), strict=True)
        )
        return [milk, bread, request(f"/todos/{names[dropped]}", "DELETE"), request("/todos")]

    index = Index(played_twice(lambda play: [(each, answer(b"done")) for each in requests(ids[play], 0)]))
    matcher = Matcher(index, walk="w")
    assert [matcher.match(each).grade for each in requests(now, chosen)] == ["fuzzy", "fuzzy", *grades]


@pytest.mark.parametrize(("minutes", "grades"), [(0, ["fuzzy", "fuzzy"]), (60, ["uncertain", "uncertain"])])
def test_a_time_may_be_one_that_the_page_has_sent_before_but_not_any_time_near_another_walk(
    minutes: int, grades: list[str]
) -> None:
    later = 60 * MINUTE_MS
    first = [(f"/a?t={START_MS + at + 5}", f"/b?t={START_MS + at + 9}") for at in (0, later, 2 * later)]
    plays = [
        walk(name, *((request(path), answer()) for path in paths)) for name, paths in zip("uvw", first, strict=True)
    ]
    walks = (Walk("u", START_MS), Walk("v", START_MS + later), Walk("w", START_MS + 2 * later, repeats="v"))
    matcher = Matcher(Index(SiteRecording(walks, tuple(each for play in plays for each in play))), walk="w")
    now = START_MS + minutes * MINUTE_MS + 7
    assert [matcher.match(request(f"{path}?t={now}")).grade for path in ("/a", "/b")] == grades


def form_page(token: str) -> bytes:
    return f'<form><input type="hidden" name="csrf_token" value="{token}"></form>'.encode()


def test_tokens_that_pages_gave_out_match_each_other_and_no_other_value_does() -> None:
    one, other = "7ad834b53d7a8f66b4c84303ad8cc2b8", "75d01ca6ce1b5bb9e08debcc33835b54"
    secrets = Secrets()

    def visit(name: str, token: str, field: str) -> tuple[RecordedExchange, ...]:
        pairs = (
            (request(), answer(form_page(token))),
            (request("/save", "POST", body_with(token, field), FORM), answer()),
        )
        return tuple(map(secrets.exchange, walk(name, *pairs)))

    plays = visit("a", one, "ship"), visit("b", other, "berth"), visit(f"b{AGAIN}", "9" * 31 + "a", "berth")
    index = Index(recording(*plays))
    assert (
        Matcher(index, secrets).match(request("/save", "POST", body_with("f" * 32, "berth"), FORM)).grade == "uncertain"
    )
    again = Matcher(index, secrets)
    again.match(request())
    assert again.match(request("/save", "POST", body_with(one, "berth"), FORM)).grade == "fuzzy"


def body_with(token: str, field: str) -> bytes:
    return f"csrf_token={token}&{field}=1".encode()


def test_a_write_that_an_answer_changed_with_makes_others_uncertain() -> None:
    page, one, two = request("/a/"), request("/a/do", "POST", b"1"), request("/a/do", "POST", b"2")
    done, other = answer(b"done"), answer(b"other")
    first = walk("w1", (page, answer(b"before")), (one, done), (page, answer(b"after")), (two, other))
    second = walk("w2", (two, other), (one, done), (page, answer(b"after")))
    matcher = Matcher(Index(recording(first, second)))
    assert [matcher.match(each).grade for each in (one, one, page)][-1] == "uncertain"


def test_a_write_whose_repetition_changes_nothing_may_have_changed_something_the_first_time() -> None:
    page, write = request("/a"), request("/b/do", "POST", b"1")
    walk_once = walk(
        "w1", (write, answer(b"now 1")), (page, answer(b"1")), (write, answer(b"now 1")), (page, answer(b"1"))
    )
    matcher = Matcher(Index(recording(walk_once)))
    assert matcher.match(page).grade == "uncertain"


def test_a_page_that_was_only_seen_after_a_write_is_uncertain_without_it() -> None:
    text, other, write = request("/a"), request("/b"), request("/b/do", "POST", b"1")
    first = walk(
        "w1", (text, answer(b"0")), (write, answer(b"now 1")), (other, answer(b"b")), (write, answer(b"now 1"))
    )
    second = walk("w2", (text, answer(b"0")), (other, answer(b"b")))
    matcher = Matcher(Index(recording(first, second)))
    assert [matcher.match(each).grade for each in (write, text)] == ["exact", "uncertain"]


def bearer(path: str, token: str) -> WireRequest:
    return request(path, headers=(("Authorization", f"Bearer {token}"),))


def log_in(user: str, token: str) -> tuple[WireRequest, RecordedResponse]:
    body = json.dumps({"user": user, "password": "sea-green"}).encode()
    issued = json.dumps({"access_token": token, "for": user}).encode()
    return request("/login", "POST", body, JSON), answer(issued, mime="application/json")


@pytest.mark.parametrize(
    ("user", "token", "grade"),
    [("ada", "one", "exact"), ("ada", "two", "uncertain"), ("ada", "never issued", "miss"), ("bob", "two", "exact")],
)
def test_a_token_stands_for_the_log_in_that_issued_it(user: str, token: str, grade: str) -> None:
    tokens = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("one", "two", "never issued")}
    secrets = Secrets()
    first = walk("w1", log_in("ada", tokens["one"]), (bearer("/one", tokens["one"]), answer(b"Ada's")))
    second = walk("w2", log_in("bob", tokens["two"]), (bearer("/two", tokens["two"]), answer(b"Bob's")))
    index = Index(recording(*(tuple(map(secrets.exchange, each)) for each in (first, second))))
    matcher = Matcher(index, secrets)
    matcher.match(log_in(user, "")[0])
    path = "/two" if token == "two" else "/one"
    assert matcher.match(bearer(path, tokens[token])).grade == grade


@pytest.mark.parametrize(("length", "grade"), [(16, "exact"), (20, "miss")])
def test_what_a_page_cuts_from_a_token_stands_for_the_page_that_had_it(length: int, grade: str) -> None:
    one, two = (hashlib.sha256(name).hexdigest() for name in (b"one", b"two"))
    secrets = Secrets()
    first = walk("w1", (request(), answer(form_page(one))), (bearer("/a", one[:16]), answer(b"a")))
    second = walk("w2", (request(), answer(form_page(two))))
    matcher = Matcher(Index(recording(*(tuple(map(secrets.exchange, each)) for each in (first, second)))), secrets)
    assert matcher.match(bearer("/a", two[:length])).grade == grade


def test_a_token_that_another_one_renewed_stands_for_the_same_log_in() -> None:
    one, two = (hashlib.sha256(name).hexdigest() for name in (b"one", b"two"))
    secrets, login = Secrets(), log_in("ada", one)
    renewed = bearer("/refresh", one), log_in("ada", two)[1]
    index = Index(recording(tuple(map(secrets.exchange, walk("w", login, renewed, (bearer("/a", two), answer(b"a")))))))
    matcher = Matcher(index, secrets)
    assert [matcher.match(each).grade for each in (login[0], bearer("/a", one))] == ["exact", "exact"]


@pytest.mark.parametrize(
    ("login", "path", "expected"),
    [
        ("redacted-ab", "/a", ("state", b"inside")),
        ("redacted-cd", "/a", ("uncertain", b"who?")),
        ("redacted-ab", "/b", ("exact", b"inside")),
        ("redacted-cd", "/b", ("miss", None)),
        ("redacted-cd", "/c", ("miss", None)),
    ],
)
def test_a_login_that_was_never_recorded_gets_only_what_was_recorded_without_one(
    login: str, path: str, expected: tuple[str, bytes | None]
) -> None:
    known = (("Authorization", "redacted-ab"),)
    recorded = matcher(
        walk(
            "w",
            (request("/a"), answer(b"who?", 401)),
            (request("/a", headers=known), answer(b"inside")),
            (request("/b", headers=known), answer(b"inside")),
        )
    )
    match = recorded.match(request(path, headers=(("Authorization", login),)))
    assert (match.grade, match.answer and match.answer.body) == expected


def request_accepting(path: str, accept: str) -> WireRequest:
    return request(path, headers=(("Accept", accept),))


def nodes(play: int, number: int, accept: str) -> WireRequest:
    """An address in which jQuery counts from the present time, so that numbers of one request are later another's."""
    return request_accepting(f"/nodes?_={START_MS + play * MINUTE_MS + number}", accept)


def test_an_address_that_changes_with_the_clock_is_not_mistaken_for_one_of_another_type() -> None:
    index = Index(
        played_twice(
            lambda play: [
                (nodes(play, 7, "application/json"), answer(b"[]", mime="application/json")),
                (nodes(play, 8, "text/html"), answer(b"<p>")),
            ]
        )
    )
    match = Matcher(index).match(nodes(0, 9, "text/html"))
    assert (match.grade, match.answer and match.answer.body) == ("fuzzy", b"<p>")


@pytest.mark.parametrize(
    ("accept", "grade"),
    [
        ("*/*", "fuzzy"),
        ("text/*;q=0.5", "fuzzy"),
        ("text/html, application/xml", "fuzzy"),
        ("", "fuzzy"),
        ("application/json", "uncertain"),
    ],
)
def test_what_was_recorded_for_another_accept_header_answers_only_if_its_type_is_accepted(
    accept: str, grade: str
) -> None:
    recorded = matcher(walk("w", (request_accepting("/a", "text/html;q=0.9"), answer(b"page"))))
    assert recorded.match(request_accepting("/a", accept)).grade == grade


def test_the_answers_of_one_type_follow_in_their_order_beside_those_of_another() -> None:
    index = Index(
        played_twice(
            lambda play: [
                (nodes(play, 1, "application/json"), answer(b"[]", mime="application/json")),
                (nodes(play, 2, "text/html"), answer(b"first")),
                (nodes(play, 3, "text/html"), answer(b"second")),
            ]
        )
    )
    matcher = Matcher(index, walk="w")
    answers = [matcher.match(nodes(0, number, "text/html")) for number in (7, 8)]
    assert [match.answer and match.answer.body for match in answers] == [b"first", b"second"]


def test_a_picture_that_the_browser_always_aborts_is_answered_as_it_was_in_each_state() -> None:
    logo = request("/logo.png", headers=(("Sec-Fetch-Dest", "image"),))
    pairs = [
        (logo, answer(b"none", 404)),
        (request("/save", "POST"), answer(b"saved")),
        (logo, answer(b"none, Ada", 404)),
    ]
    exchanges = list(walk("w", *pairs))
    index = Index(recording([exchanges[0], exchanges[1], replace(exchanges[2], is_whole=False)]))
    matcher = Matcher(index)
    answers = [matcher.match(each) for each, _ in pairs]
    assert [(each.grade, each.answer and each.answer.body) for each in answers] == [
        ("state", b"none"),
        ("exact", b"saved"),
        ("state", b"none, Ada"),
    ]


def test_an_answer_that_the_page_aborted_is_not_given_where_another_was_complete() -> None:
    aborted, complete = walk("w", (request("/a"), answer(b"pa")), (request("/a"), answer(b"page")))
    answers = matcher((replace(aborted, is_whole=False), complete)).match(request("/a"))
    assert (answers.grade, answers.answer and answers.answer.body) == ("exact", b"page")


def test_a_request_during_a_write_is_answered_as_before_and_as_after_it() -> None:
    saved, read_request = walk("w", (request("/save", "POST"), answer(b"saved")), (request("/list"), answer(b"list")))
    index = Index(recording((replace(saved, began=1, ended=4), replace(read_request, began=2, ended=3))))
    before, after = Matcher(index), Matcher(index)
    after.match(request("/save", "POST"))
    assert [each.match(request("/list")).grade for each in (before, after)] == ["exact", "exact"]


def test_a_write_without_an_effect_on_an_answer_does_not_matter_to_it() -> None:
    mark, save, read_request = request("/mark", "POST"), request("/save", "POST"), request("/a")
    done, before, after = answer(b"done"), answer(b"before"), answer(b"after")
    first = walk("w", (read_request, before), (mark, done), (read_request, before), (save, done), (read_request, after))
    replay_matcher = matcher(first, walk("v", (save, done)))
    answers = [replay_matcher.match(each) for each in (save, read_request)][1]
    assert (answers.grade, answers.answer and answers.answer.body) == ("state", b"after")


def signed(content: bytes, play: int) -> HeaderPairs:
    """A cookie in three parts: its content, when it was made, and a signature."""
    text = base64.urlsafe_b64encode(content).decode().rstrip("=")
    return (("Cookie", f"session={text}.aGk{play}xQ.c2lnbmF0dXJl{play}"),)


def test_a_signed_cookie_is_compared_by_its_content() -> None:
    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        return [
            (request("/", headers=signed(b'{"lang": "en"}', play)), answer(b"hello")),
            (request("/", headers=signed(b'{"lang": "de"}', play)), answer(b"hallo")),
        ]

    answers = Matcher(Index(played_twice(pairs))).match(request("/", headers=signed(b'{"lang": "de"}', 2)))
    assert (answers.grade, answers.answer and answers.answer.body) == ("state", b"hallo")


def test_a_cookie_that_the_page_makes_up_is_its_own_where_the_site_repeats_it() -> None:
    def cookie(play: int) -> HeaderPairs:
        return (("Cookie", f"device={play}k3j9x1aa{play}"),)

    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        return [(request("/", headers=cookie(play)), answer(f"device {play}k3j9x1aa{play}".encode()))]

    answers = Matcher(Index(played_twice(pairs))).match(request("/", headers=cookie(2)))
    assert (answers.grade, answers.answer and answers.answer.body) == ("exact", b"device 2k3j9x1aa2")
