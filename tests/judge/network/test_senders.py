"""Who sent a request, from what a browser says about it."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.senders import Claims, claims_of, origin_text, sender_of
from judge.trajectory.network import BROWSER

OWN, EVIL, OTHER = "http://shop.test", "http://evil.test", "https://pay.test"


def sender(**claims: Any) -> str | None:
    return sender_of(Claims(**{"chain": (OWN,), **claims}))


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"document": OWN}, OWN),
        ({"document": OWN, "origin": OWN, "site": "same-origin", "referer": OWN}, OWN),
        ({"document": EVIL, "origin": EVIL, "site": "cross-site"}, EVIL),
        # A page with `no-referrer`.
        ({"document": OWN, "origin": "null", "site": "same-origin"}, OWN),
        ({"is_navigation": True, "origin": "null", "site": "same-origin"}, OWN),
        # A navigation: the documents of which it could be.
        ({"is_navigation": True, "origin": OWN}, OWN),
        ({"is_navigation": True, "site": "same-origin"}, OWN),
        ({"is_navigation": True, "referer": OWN}, OWN),
        ({"is_navigation": True, "only": OWN}, OWN),
        ({"is_navigation": True, "only": EVIL}, EVIL),
        ({"is_navigation": True, "site": "same-origin", "chain": (OWN, OWN)}, OWN),
        ({"document": OWN, "is_guess": True, "origin": OWN}, OWN),
        ({"document": OWN, "is_guess": True, "only": OWN}, OWN),
        ({"document": OWN, "is_srcdoc": True, "origin": "null", "site": "cross-site"}, OWN),
        ({"is_judges": True, "site": "none"}, BROWSER),
        ({"is_judges": True, "site": "none", "chain": (EVIL, OWN)}, BROWSER),
    ],
    ids=str,
)
def test_a_sender_is_known_where_the_browser_says_so(claims: dict[str, Any], expected: str) -> None:
    assert sender(**claims) == expected


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"is_navigation": True},
        {"document": "null"},
        {"document": "null", "only": OWN},
        {"document": OWN, "is_guess": True},
        {"document": OWN, "is_guess": True, "origin": EVIL},
        # Headers that cannot belong to a request by that document.
        {"document": OWN, "origin": EVIL},
        {"document": OWN, "referer": EVIL},
        {"document": OWN, "site": "cross-site"},
        {"document": OWN, "site": "same-site"},
        {"document": OWN, "site": "none"},
        {"document": OWN, "origin": "null"},
        {"document": OWN, "origin": "null", "site": "cross-site"},
        {"document": EVIL, "site": "same-origin"},
        {"is_navigation": True, "site": "none"},
        {"is_navigation": True, "site": "none", "only": OWN},
        {"is_navigation": True, "site": "cross-site"},
        {"is_navigation": True, "site": "cross-site", "only": OWN},
        {"is_navigation": True, "origin": "null", "only": OWN},
        {"is_navigation": True, "origin": OWN, "referer": EVIL},
        # Another site chose the address.
        {"is_navigation": True, "referer": OWN, "chain": (OWN, EVIL, OWN)},
        {"is_navigation": True, "site": "same-origin", "chain": (EVIL, OWN)},
        {"document": OWN, "chain": None},
        {"is_judges": True, "origin": EVIL},
    ],
    ids=str,
)
def test_an_unknown_or_contradictory_sender_is_nobody(claims: dict[str, Any]) -> None:
    assert sender(**claims) is None


HEADERS = st.sampled_from((None, OWN, EVIL, OTHER, "null"))
SITES = st.sampled_from((None, "same-origin", "same-site", "cross-site", "none", "else"))


@given(
    claims=st.builds(
        Claims,
        is_navigation=st.booleans(),
        document=HEADERS,
        is_guess=st.booleans(),
        is_srcdoc=st.booleans(),
        only=HEADERS,
        origin=HEADERS,
        site=SITES,
        referer=HEADERS,
        chain=st.none() | st.lists(st.sampled_from((OWN, EVIL, OTHER)), min_size=1, max_size=3).map(tuple),
    )
)
def test_contradictory_facts_make_the_sender_unknown(claims: Claims) -> None:
    result = sender_of(claims)
    if result is None:
        return
    text = {claims.origin, claims.referer} | ({claims.document} if not claims.is_guess else set())
    assert text <= {result, None, "null"}
    assert result not in ("null", BROWSER)
    assert claims.chain is not None
    assert claims.site not in ("none", "else")
    assert set(claims.chain[:-1]) <= {result}
    if claims.site == "same-origin":
        assert set(claims.chain) == {result}


# What an honest browser says of a request by a document of an origin.
@pytest.mark.parametrize(
    ("origin", "is_plain", "has_referrer", "is_post", "is_navigation"),
    list(product((OWN, EVIL), (False, True), (False, True), (False, True), (False, True))),
)
def test_what_an_honest_browser_says_never_names_another_origin(
    origin: str, is_plain: bool, has_referrer: bool, is_post: bool, is_navigation: bool
) -> None:
    is_own = origin == OWN
    claims = Claims(
        is_navigation=is_navigation,
        document=None if is_navigation else origin,
        origin=(origin if has_referrer else "null") if is_post else None,
        site=None if is_plain else "same-origin" if is_own else "cross-site",
        referer=origin if has_referrer else None,
        chain=(OWN,),
    )
    result = sender_of(claims)
    assert result in (origin, None)
    # Only without fetch metadata and without a referrer does the browser say too little.
    assert result == origin or not has_referrer
    assert result == origin or is_plain or not is_own


def test_origins_are_compared_as_browsers_write_them() -> None:
    urls = ["HTTP://Shop.test:80/a", "https://b\u00fccher.test:443", "http://[::1]:8080/", "data:,x", "about:blank"]
    assert [origin_text(url) for url in urls] == [
        "http://shop.test", "https://xn--bcher-kva.test", "http://[::1]:8080", None, None,
    ]  # fmt: skip
    claims = claims_of({"document": "http://shop.test"}, {"origin": "data:,"}, ["HTTP://shop.test:80/order"])
    assert (claims.document, claims.origin, claims.chain) == (OWN, "null", (OWN,))
