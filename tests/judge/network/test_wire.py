"""The guard's record of requests: bounded, with shares that nobody can use up for others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network import wire as limits
from judge.network.interception import HeaderPairs, WireAnswer, WireRequest
from judge.network.wire import OTHER, OWN, ExchangeRecord
from judge.records.sites import Site, origin_of

SHOP, EVIL = "https://shop.example", "https://evil.example"
BY_SHOP: HeaderPairs = (("Origin", SHOP), ("Sec-Fetch-Dest", "empty"))
BY_EVIL: HeaderPairs = (("Origin", EVIL), ("Sec-Fetch-Dest", "empty"))


def a_wire() -> ExchangeRecord:
    wire = ExchangeRecord()
    wire.site = Site(frozenset(filter(None, [origin_of(SHOP)])))
    return wire


def send(
    wire: ExchangeRecord, url: str, headers: HeaderPairs = BY_SHOP, body: bytes = b"", *, is_held: bool = False
) -> None:
    exchange = wire.begin(WireRequest("POST", url, headers, body), 1)
    wire.settle(exchange, WireAnswer(200, is_held=is_held))


def test_a_request_is_there_before_it_is_answered() -> None:
    wire = a_wire()
    exchange = wire.begin(WireRequest("POST", f"{SHOP}/order", BY_SHOP, b"x", 3), 7)
    (recorded,) = wire.exchanges()
    assert (recorded.answer, recorded.step, recorded.connection, recorded.size) == (None, 3, 7, 1)
    wire.settle(exchange, WireAnswer(200))
    wire.settle(exchange, failure="too late")
    (recorded,) = wire.exchanges()
    assert (recorded.answer, recorded.failure) == (WireAnswer(200), None)


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        (BY_SHOP, True),
        (BY_EVIL, False),
        ((("Origin", "null"), ("Referer", f"{SHOP}/")), False),
        ((("Referer", f"{SHOP}/page"),), True),
        ((("Referer", f"{EVIL}/page"), ("Sec-Fetch-Site", "same-origin")), False),
        ((("Sec-Fetch-Site", "same-origin"),), True),
        ((("Sec-Fetch-Site", "none"),), True),
        ((("Sec-Fetch-Site", "cross-site"),), False),
        ((), False),
    ],
    ids=str,
)
def test_a_foreign_flood_does_not_push_out_what_the_site_sends(
    monkeypatch: pytest.MonkeyPatch, headers: HeaderPairs, is_own: bool
) -> None:
    small = {"entries": 5, "paths": 1}
    monkeypatch.setattr(limits, "OWN", OWN._replace(**small))
    monkeypatch.setattr(limits, "OTHER", OTHER._replace(**small))
    wire = a_wire()
    for number in range(50):
        send(wire, f"{SHOP}/order?{number}", headers)
    send(wire, f"{SHOP}/mine")
    assert [each.is_own for each in wire.left_out()] == ([True] * 2 if is_own else [False])
    assert any(each.path == f"{SHOP}/mine" for each in wire.exchanges()) is not is_own


@given(
    sizes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from((0, 10, 300_000)), st.sampled_from((BY_SHOP, BY_EVIL))))
)
def test_every_request_is_kept_or_counted_and_the_first_and_the_last_of_a_path_are_kept(
    sizes: list[tuple[int, int, HeaderPairs]],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(limits, "OWN", OWN._replace(entries=3, paths=4))
        monkeypatch.setattr(limits, "OTHER", OTHER._replace(entries=2, paths=4))
        wire = a_wire()
    for number, (path, size, headers) in enumerate(sizes):
        send(wire, f"{SHOP}/{path}?{number}", headers, b"x" * size)
    recorded = wire.exchanges()
    assert len(recorded) + sum(each.count for each in wire.left_out()) == len(sizes)
    assert [each.number for each in recorded] == sorted(each.number for each in recorded)
    for origin in (BY_SHOP, BY_EVIL):
        request_headers = [number for number, (path, _, headers) in enumerate(sizes) if headers == origin and path < 4]
        for path in {sizes[number][0] for number in request_headers}:
            numbers = [number for number in request_headers if sizes[number][0] == path]
            if not any(not each.url for each in wire.left_out()):
                assert {numbers[0], numbers[-1]} <= {each.number for each in recorded}
    for each in recorded:
        size = sizes[each.number][1]
        assert (each.size, bool(each.digest)) == (size, bool(size))
        assert each.body is None or len(each.body) == size


def test_images_have_a_share_of_their_own_and_held_requests_too() -> None:
    wire = a_wire()
    send(wire, f"{SHOP}/picture", (("Sec-Fetch-Dest", "image"), ("Cookie", "a=b")))
    send(wire, f"{SHOP}/order", BY_EVIL, b"x" * 1_000_000, is_held=True)
    picture, order = wire.exchanges()
    assert (picture.kind, picture.headers) == ("image", None)
    assert len(order.body or b"") == 1_000_000


def test_connections_that_could_not_be_read_are_counted_by_place_and_step() -> None:
    wire = a_wire()
    for step, place in ((0, "a:1"), (0, "a:1"), (1, "a:1"), (1, "")):
        wire.step = step
        wire.could_not_read(place)
    results = {(each.place, each.step): each.count for each in wire.unread()}
    assert results == {("a:1", 0): 2, ("a:1", 1): 1, ("", 1): 1}
    for number in range(5_000):
        wire.could_not_read(f"b:{number}")
    assert len(wire.unread()) <= 1_001
    assert sum(each.count for each in wire.unread()) == 5_004
