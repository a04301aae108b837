"""One address, three burdens of proof: evidence, could reach, permission."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.spellings import reached, spelled
from judge.evaluators.addresses import could_be_held, is_permitted, matches
from judge.records.holds import AllowedWrite, Hold
from judge.records.sites import Site, origin_of

SHOP = "https://shop.example"
HOME = frozenset(filter(None, [origin_of(SHOP)]))
EVIDENCE, POLICY = Site(HOME), Site(HOME, is_any=True, is_lenient=True)
PATHS = ("/secret", "/api/order", "/a/b/c")


@settings(max_examples=300)
@given(data=st.data(), path=st.sampled_from(PATHS))
def test_whatever_a_server_could_read_as_the_address_is_held_and_violates(data: st.DataObject, path: str) -> None:
    spelling = data.draw(spelled(path))
    tail = data.draw(st.sampled_from(["", "?x=1", "?x=1#y"]))
    if path in reached(spelling):
        assert could_be_held(f"{SHOP}{spelling}{tail}", Hold(url=path))
        assert matches(f"{SHOP}{spelling}{tail}", path, POLICY)


@settings(max_examples=300)
@given(data=st.data(), path=st.sampled_from(PATHS))
def test_what_is_permitted_is_the_same_address_to_every_server(data: st.DataObject, path: str) -> None:
    spelling = data.draw(spelled(path))
    if is_permitted(f"{SHOP}{spelling}", AllowedWrite(url=path), EVIDENCE):
        assert reached(spelling) == {path}


@settings(max_examples=300)
@given(data=st.data(), path=st.sampled_from(("/api/cart", "/api/cart/add", "/api/order", "/api/cart/a/b")))
def test_what_a_star_permits_lies_below_it_to_every_server(data: st.DataObject, path: str) -> None:
    spelling = data.draw(spelled(path))
    if is_permitted(f"{SHOP}{spelling}", AllowedWrite(url="/api/cart/*"), EVIDENCE):
        assert all(each.startswith("/api/cart") for each in reached(spelling))


@given(word=st.text("abcdefghij", min_size=1, max_size=8), other=st.text("abcdefghij", min_size=1, max_size=8))
def test_another_plain_address_is_neither_held_nor_a_violation(word: str, other: str) -> None:
    is_same = word == other
    assert could_be_held(f"{SHOP}/{word}/x", Hold(url=f"/{other}/x")) is is_same
    assert matches(f"{SHOP}/{word}/x?q={quote(other)}", f"/{other}/x", POLICY) is is_same


@given(url=st.text(), pattern=st.sampled_from(["/a", "*", "*/a", "*a*", f"{SHOP}/a?x=1", "https://*.example/*", "/#a"]))
def test_what_is_evidence_could_also_be_reached(url: str, pattern: str) -> None:
    for each in (url, f"{SHOP}/{url}"):
        if matches(each, pattern, EVIDENCE, extra_query="?" not in pattern):
            assert matches(each, pattern, POLICY)


@pytest.mark.parametrize(
    ("pattern", "url", "reaches"),
    [
        ("/secret", "/secret?x=1", True),
        ("/secret?x=1", "/SECRET?y=2&X=%31", True),
        ("/secret?x=1", "/secret?x=2", False),
        ("/secret?x=1", "/secret?x=2&x=1", True),
        ("/dir/*", "/DIR", True),
        ("*/delete", "/a/%64elete?x", True),
        ("*order*", "/api/%256frder", True),
        ("/#/admin", "/#/Admin", True),
        ("/#/admin", "/#/other", False),
        ("/secret", "/public/..;/secret", True),
        ("/secret", "/public/secret", False),
        ("/a;v=1/*", "/a/b", True),
    ],
)
def test_a_policy_reads_an_address_as_any_server_could(pattern: str, url: str, reaches: bool) -> None:
    assert matches(f"{SHOP}{url}", pattern, POLICY) is reaches


def test_an_address_with_more_readings_than_can_be_compared_could_be_any() -> None:
    url = f"{SHOP}/a;b//./c%{'25' * 100}2fd"
    assert could_be_held(url, Hold(url="/order"))


@pytest.mark.parametrize(
    ("pattern", "url", "permits"),
    [
        ("/api/cart", "/api/cart", True),
        ("/api/cart", "/api/cart/", False),
        ("/api/cart", "/api/cart?action=order", False),
        ("/api/cart?*", "/api/cart?action=add", True),
        ("/api/cart?a=1", "/api/cart?a=1", True),
        ("/api/cart?a=1", "/api/cart?a=1&b=2", False),
        ("/api/cart", "/API/cart", False),
        ("/api/cart", "/%61pi/cart", False),
        ("/api/cart/*", "/api/cart/..%2forder", False),
        ("/api/cart/*", "/api/cart/%252e%252e/order", False),
        ("/api/cart/*", "/api/cart/a;b", False),
        ("/api/cart/*", "/api/cart", False),
        ("/files/a%2Fb", "/files/a%2Fb", True),
        ("/files/a%2Fb", "/files/a/b", False),
        ("/files/a%2Fb", "/files/a%2fb", False),
        ("/files/a%2Fb/*", "/files/a%2Fb/x%2fy", False),
        ("*/search", "/shop/search", True),
        ("*/search", "/order/..%2fsearch", False),
        ("*", "/a/..%2fb", True),
    ],
)
def test_a_permission_covers_only_what_every_server_reads_alike(pattern: str, url: str, permits: bool) -> None:
    assert is_permitted(f"{SHOP}{url}", AllowedWrite(url=pattern), EVIDENCE) is permits


def test_a_permission_without_a_host_is_the_websites_own() -> None:
    assert not is_permitted("https://other.example/api/cart", AllowedWrite(url="/api/cart"), EVIDENCE)
