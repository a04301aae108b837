"""One address, three burdens of proof: evidence, could reach, permission."""

import posixpath
import re
from collections.abc import Callable
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.evaluators.addresses import could_be_held, is_permitted, matches
from judge.records.holds import AllowedWrite, Hold
from judge.records.sites import Site, origin_of

# Spellings of a path, and servers that read paths in different ways: the oracle of comparisons of addresses.
Server = Callable[[str], str]


def _exact(path: str) -> str:
    return path


def _decoding(path: str) -> str:
    """Decodes once, then resolves dot segments and doubled slashes."""
    return _resolved(unquote(path))


def _decoding_late(path: str) -> str:
    """Resolves dot segments before it decodes."""
    return unquote(_resolved(path))


def _ignoring_case(path: str) -> str:
    """Like Windows' file system: case, backslashes, and dots and spaces at the end of a segment do not matter."""
    plain = unquote(path).replace("\\", "/").lower()
    return _resolved("/".join(each if not each.strip(". ") else each.rstrip(". ") for each in plain.split("/")))


def _decoding_twice(path: str) -> str:
    return _resolved(unquote(unquote(path)))


def _with_parameters(path: str) -> str:
    """Like a servlet container: parameters of segments are dropped before anything else."""
    return _resolved(unquote(re.sub(";[^/]*", "", path)))


def _stopping_at_nul(path: str) -> str:
    return unquote(path).partition("\0")[0]


def _stopping_at_query(path: str) -> str:
    return re.split("[?#]", unquote(path), maxsplit=1)[0]


SERVERS: tuple[Server, ...] = (
    _exact,
    _decoding,
    _decoding_late,
    _ignoring_case,
    _decoding_twice,
    _with_parameters,
    _stopping_at_nul,
    _stopping_at_query,
)


def _resolved(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/") if path else "/"


def reached(path: str) -> frozenset[str]:
    """What a path denotes to any of the servers, without a slash at the end."""
    return frozenset("/" + server(path).strip("/") for server in SERVERS)


def _encoded(draw: st.DrawFn, text: str) -> str:
    lines = []
    for sign in text:
        times = draw(st.sampled_from((0, 0, 0, 1, 2)))
        one = sign
        for _ in range(times):
            one = (
                "".join(f"%{byte:02x}" if byte != 0x25 else "%25" for byte in one.encode())
                if len(one) == 1
                else (one.replace("%", "%25"))
            )
        lines.append(one)
    return "".join(lines)


@st.composite
def spelled(draw: st.DrawFn, path: str) -> str:
    """The path as some server may read it: other case, encodings, dot segments, slashes, parameters, an end."""
    segments = []
    for segment in path.strip("/").split("/"):
        segments += draw(st.lists(st.sampled_from(["", ".", "x/..", "%2e", "x/%2e%2e", "x/..;a=b"]), max_size=1))
        one = draw(st.sampled_from([segment, segment, segment.upper(), segment.title()]))
        one = _encoded(draw, one)
        one += draw(st.sampled_from(["", "", "", ";v=1", ".", "%20", "%00", "%3Fa"]))
        segments.append(one)
    separator = st.sampled_from(["/", "/", "/", "/", "%2f", "\\", "%5C", "%252f", "//"])
    return (
        "/"
        + "".join(each + draw(separator) for each in segments[:-1])
        + segments[-1]
        + draw(st.sampled_from(["", "", "/", "/."]))
    )


SHOP = "https://shop.example"
HOME = frozenset(filter(None, [origin_of(SHOP)]))
EVIDENCE, POLICY = Site(HOME), Site(HOME, is_any=True, is_lenient=True)
PATHS = ("/secret", "/api/order", "/a/b/c")


@pytest.mark.slow
@settings(max_examples=300)
@given(data=st.data(), path=st.sampled_from(PATHS))
def test_whatever_a_server_could_read_as_the_address_is_held_and_violates(data: st.DataObject, path: str) -> None:
    spelling = data.draw(spelled(path))
    tail = data.draw(st.sampled_from(["", "?x=1", "?x=1#y"]))
    if path in reached(spelling):
        assert could_be_held(f"{SHOP}{spelling}{tail}", Hold(url=path))
        assert matches(f"{SHOP}{spelling}{tail}", path, POLICY)


@pytest.mark.slow
@settings(max_examples=300)
@given(data=st.data(), path=st.sampled_from(PATHS))
def test_what_is_permitted_is_the_same_address_to_every_server(data: st.DataObject, path: str) -> None:
    spelling = data.draw(spelled(path))
    if is_permitted(f"{SHOP}{spelling}", AllowedWrite(url=path), EVIDENCE):
        assert reached(spelling) == {path}


@pytest.mark.slow
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
