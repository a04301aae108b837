"""A value that was received or entered is never ignored; what a page makes up differs between two plays of a walk."""

import json
import random
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedResponse
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from plugins.frozen.made import MINUTE_MS, START_MS, answer, played_twice, recording, request, walk

JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
QUERY = "query P($id: ID!) { product(id: $id) { name } }"


def graphql(value: str) -> WireRequest:
    body = json.dumps({"query": QUERY, "variables": {"id": value}}).encode()
    return request("/graphql", "POST", body, JSON)


PLACES: dict[str, Callable[[str], WireRequest]] = {
    "path": lambda value: request(f"/products/{value}"),
    "parameter": lambda value: request(f"/product?id={value}"),
    "deleted": lambda value: request(f"/cart/{value}", "DELETE"),
    "form": lambda value: request("/cart", "POST", f"id={value}&n=1".encode(), FORM),
    "JSON": lambda value: request("/cart", "POST", json.dumps({"items": [{"id": value}]}).encode(), JSON),
    "JSON in a parameter": lambda value: request("/q?variables=" + json.dumps({"id": value}).replace('"', "%22")),
    "GraphQL": graphql,
}
KINDS: dict[str, st.SearchStrategy[str]] = {
    "UUID": st.uuids(version=4).map(str),
    "upper case": st.uuids(version=4).map(lambda value: str(value).upper()),
    "a time near the recording": st.integers(1, 80_000_000).map(lambda ms: str(START_MS + ms)),
    "a fraction": st.integers(10**8, 10**12).map(lambda digits: f"0.{digits}1"),
    "base 36": st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=5, max_size=11),
    "a slug": st.sampled_from(["brass-lamp", "deck-chair", "rope-12mm", "oak-oar"]),
}


def list_exchange(*values: str) -> tuple[WireRequest, RecordedResponse]:
    return request("/"), answer(json.dumps([{"id": value} for value in values]).encode(), mime="application/json")


@pytest.mark.parametrize("plays", [1, 2])
@pytest.mark.parametrize("place", PLACES)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
def test_another_identity_than_the_recorded_one_is_never_answered_with_certainty(
    place: str, plays: int, data: st.DataObject, kind: str
) -> None:
    identity, other = data.draw(st.lists(KINDS[kind], min_size=2, max_size=2, unique_by=str.lower))
    place_maker = PLACES[place]
    pairs = (list_exchange(identity, other), (place_maker(identity), answer(b"bought")))
    recorded = played_twice(lambda _: pairs) if plays == 2 else recording(walk("w", *pairs))
    matcher = Matcher(Index(recorded))
    assert matcher.match(request("/")).grade == "exact"
    assert matcher.match(place_maker(other)).grade in (("miss",) if plays == 2 else ("miss", "uncertain"))
    assert matcher.match(place_maker(identity)).answer is not None


def invented(seed: int) -> dict[str, str]:
    dice = random.Random(seed)
    return {
        "UUID": str(uuid.UUID(int=dice.getrandbits(128), version=4)),
        "base 36": "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9)),
        "base64url": "".join(dice.choices("abcdefghijklmnopqrstuvwxyzABCDEFG0123456789-_", k=21)),
        "fraction": str(dice.random()),
        "after a fixed part": f"product-5-{dice.randrange(10**9)}",
        "callback": f"jQuery{dice.randrange(10**19)}_{dice.randrange(10**5)}",
    }


MADE_UP = sorted(invented(0))


@pytest.mark.parametrize("kind", MADE_UP)
@pytest.mark.parametrize("place", PLACES)
def test_what_a_page_makes_up_may_differ_if_it_differed_between_two_plays(place: str, kind: str) -> None:
    place_maker = PLACES[place]

    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        # The site repeats it: it was sent before it was received.
        return [
            (request("/"), answer(b"home")),
            (place_maker(invented(play)[kind]), answer(invented(play)[kind].encode())),
        ]

    match = Matcher(Index(played_twice(pairs))).match(place_maker(invented(2)[kind]))
    assert match.grade == "fuzzy"
    assert match.answer is not None
    assert match.answer.body.decode() == invented(2)[kind]


@pytest.mark.parametrize("kind", MADE_UP)
def test_of_one_play_nobody_knows_whether_the_page_made_a_value_up(kind: str) -> None:
    pairs = (request("/"), answer(b"home")), (PLACES["JSON"](invented(0)[kind]), answer(b"saved"))
    assert Matcher(Index(recording(walk("w", *pairs)))).match(PLACES["JSON"](invented(2)[kind])).grade == "uncertain"


def test_what_the_participant_entered_is_not_what_the_page_made_up() -> None:
    place_maker = PLACES["form"]
    index = Index(played_twice(lambda play: [(place_maker(invented(play)["base 36"]), answer(b"saved"))]))
    for entered, grade in (((), "fuzzy"), (("SPRING-10",), "uncertain")):
        matcher = Matcher(index)
        matcher.entered(entered)
        assert matcher.match(place_maker("SPRING-10")).grade == grade


def test_a_received_value_is_none_that_the_page_made_up() -> None:
    place_maker = PLACES["parameter"]
    index = Index(
        played_twice(lambda play: [list_exchange("brass-lamp"), (place_maker(invented(play)["UUID"]), answer(b"ok"))])
    )
    assert Matcher(index).match(place_maker("brass-lamp")).grade == "uncertain"


@pytest.mark.parametrize(("ago_ms", "grade"), [(0, "fuzzy"), (7 * 86_400_000, "uncertain")])
def test_times_are_compared_with_the_frozen_clock(ago_ms: int, grade: str) -> None:
    def make_request(now_ms: int) -> WireRequest:
        return request(f"/report?from={now_ms}")

    index = Index(
        played_twice(lambda play: [(make_request(START_MS + play * MINUTE_MS + 40 * play), answer(b"today"))])
    )
    assert Matcher(index).match(make_request(START_MS + 1_000 - ago_ms)).grade == grade


@pytest.mark.parametrize("is_query", [True, False])
def test_the_order_of_a_list_may_differ_only_if_it_differed_between_two_plays(is_query: bool) -> None:
    def make_request(*ids: int) -> WireRequest:
        text = "query R($ids: [ID]) { runs }" if is_query else "mutation S($ids: [ID]) { sort }"
        return request("/q", "POST", json.dumps({"query": text, "variables": {"ids": ids}}).encode(), JSON)

    mixed = Index(played_twice(lambda play: [(make_request(*((7, 8, 9) if play else (9, 7, 8))), answer(b"runs"))]))
    fixed = Index(played_twice(lambda _: [(make_request(7, 8, 9), answer(b"runs"))]))
    once = Index(recording(walk("w", (make_request(7, 8, 9), answer(b"runs")))))
    assert [Matcher(index).match(make_request(8, 9, 7)).grade for index in (mixed, fixed, once)] == [
        "fuzzy",
        "uncertain",
        "uncertain",
    ]


def test_batches_whose_order_and_identifiers_vary_are_recognised() -> None:
    def make_request(play: int, *operations: str) -> WireRequest:
        dice = random.Random(play)
        batch = [{"id": dice.randrange(10**12), "op": op, "of": {"product": "lamp"}} for op in operations]
        dice.shuffle(batch)
        return request("/batch", "POST", json.dumps(batch).encode(), JSON)

    index = Index(played_twice(lambda play: [(make_request(play, "price", "stock", "name"), answer(b"all"))]))
    assert Matcher(index).match(make_request(5, "price", "stock", "name")).grade == "fuzzy"
    assert Matcher(index).match(make_request(5, "price", "stock", "maker")).grade == "miss"


def test_the_order_of_one_batch_says_that_of_others_at_the_same_path_means_nothing() -> None:
    """Where the path has a part that the page makes up, it is the same path without that part."""

    def batch(key: str, thing: str, *order: str) -> WireRequest:
        operations = {"thing": {"op": "thing", "id": thing}, "viewer": {"op": "viewer", "id": "me"}}
        return request(f"/q/{key}", "POST", json.dumps([operations[each] for each in order]).encode(), JSON)

    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        keys = (invented(play)["UUID"], invented(play + 10)["UUID"])
        mixed = ("viewer", "thing") if play else ("thing", "viewer")
        # The other batch had the same order in both plays by chance.
        return [
            (batch(keys[0], "lamp", *mixed), answer(b"a lamp")),
            (batch(keys[1], "rug", "viewer", "thing"), answer(b"a rug")),
        ]

    matcher = Matcher(Index(played_twice(pairs)))
    answers = [
        matcher.match(batch(invented(n)["UUID"], thing, "thing", "viewer")) for n, thing in [(20, "lamp"), (21, "rug")]
    ]
    assert [(each.grade, each.answer and each.answer.body) for each in answers] == [
        ("fuzzy", b"a lamp"),
        ("fuzzy", b"a rug"),
    ]
    assert matcher.match(batch(invented(22)["UUID"], "desk", "thing", "viewer")).grade == "miss"


def test_what_the_page_made_up_is_its_own_in_later_requests_and_answers() -> None:
    def saved(key: str) -> WireRequest:
        return request("/notes", "POST", json.dumps({"ref": key, "text": "milk"}).encode(), JSON)

    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        key = invented(play)["UUID"]
        body = json.dumps([{"ref": key, "number": 7}]).encode()
        return [
            (saved(key), answer(b"saved")),
            (request("/notes"), answer(body, mime="application/json")),
            (request(f"/notes/{key}", "DELETE"), answer(b"gone")),
        ]

    matcher, key = Matcher(Index(played_twice(pairs))), invented(2)["UUID"]
    notes = [matcher.match(each) for each in (saved(key), request("/notes"), request(f"/notes/{key}", "DELETE"))]
    assert [each.grade for each in notes] == ["fuzzy", "exact", "exact"]
    assert notes[1].answer is not None
    assert json.loads(notes[1].answer.body) == [{"ref": key, "number": 7}]


def test_what_the_site_issues_anew_in_each_play_is_an_identity() -> None:
    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        first, second = invented(play)["UUID"], invented(play + 10)["UUID"]
        return [list_exchange(first, second), (request(f"/orders/{first}", "DELETE"), answer(b"cancelled"))]

    index = Index(played_twice(pairs))
    for order, grade in ((invented(0)["UUID"], "exact"), (invented(10)["UUID"], "miss")):
        matcher = Matcher(index, walk="w")
        matcher.match(request("/"))
        assert matcher.match(request(f"/orders/{order}", "DELETE")).grade == grade


def created(play: str, number: int = 0) -> str:
    """The identifier that the site issues in a play to its thing with this number."""
    return str(uuid.UUID(int=random.Random(f"{play} {number}").getrandbits(128), version=4))


def creating(
    play: str, count: int, *, then: tuple[WireRequest, ...] = ()
) -> list[tuple[WireRequest, RecordedResponse | None]]:
    """A walk that has the site create things, and then asks for the list of all."""
    ids = [created(play, number) for number in range(count)]
    pairs = [(request("/things", "POST"), answer(json.dumps({"id": each}).encode(), mime=JSON[0][1])) for each in ids]
    others = [(each, answer(b"done")) for each in then]
    listing = json.dumps([{"id": each} for each in ids]).encode()
    return [*pairs, *others, (request("/things"), answer(listing, mime=JSON[0][1]))]


def answers_of(matcher: Matcher, *requests: WireRequest) -> list[object]:
    """What the page gets, and the grade of the last answer."""
    answers = [matcher.match(each) for each in requests]
    return [*(json.loads(each.answer.body) for each in answers if each.answer), answers[-1].grade]


def test_each_thing_that_the_site_creates_is_another_one() -> None:
    matcher = Matcher(Index(played_twice(lambda play: creating(f"play {play}", 2))), walk="w")
    first, second = {"id": created("play 0")}, {"id": created("play 0", 1)}
    walk_of_request = (request("/things", "POST"), request("/things", "POST"), request("/things"))
    assert answers_of(matcher, *walk_of_request) == [first, second, [first, second], "exact"]


def test_a_thing_keeps_its_identifier_in_answers_of_another_play() -> None:
    change = request("/change", "POST")
    plays = {"w": (1, ()), "w again": (1, ()), "v": (1, (change,)), "v again": (1, (change,))}
    index = Index(recording(*(walk(name, *creating(name, n, then=then)) for name, (n, then) in plays.items())))
    matcher = Matcher(index, walk="w")
    own = {"id": created("w")}
    # Only the other task was recorded with this write.
    assert [matcher.match(each).grade for each in (request("/things", "POST"), change)] == ["exact", "exact"]
    assert answers_of(matcher, request("/things")) == [[own], "exact"]


def test_of_one_play_the_identifiers_of_several_tasks_are_not_mixed_with_certainty() -> None:
    change = request("/change", "POST")
    matcher = Matcher(
        Index(recording(walk("w", *creating("w", 1)), walk("v", *creating("v", 1, then=(change,))))), walk="w"
    )
    walk_of_request = (request("/things", "POST"), change, request("/things"))
    assert [matcher.match(each).grade for each in walk_of_request] == ["state", "uncertain", "uncertain"]


@pytest.mark.parametrize(("mime", "is_changed"), [("application/json", True), ("application/octet-stream", False)])
def test_binary_data_keeps_its_length_where_the_site_repeats_what_a_page_made_up(mime: str, is_changed: bool) -> None:
    def repeated(key: str) -> bytes:
        return key.encode() if mime == "application/json" else bytes([0, len(key)]) + key.encode()

    def pairs(play: int) -> list[tuple[WireRequest, RecordedResponse | None]]:
        key = invented(play)["base 36"]
        return [(PLACES["form"](key), answer(b"saved")), (request("/saved"), answer(repeated(key), mime=mime))]

    matcher, now = Matcher(Index(played_twice(pairs))), invented(2)["base 36"] + "z"
    matcher.match(PLACES["form"](now))
    answers = matcher.match(request("/saved")).answer
    assert answers is not None
    assert answers.body == repeated(now if is_changed else invented(0)["base 36"])
