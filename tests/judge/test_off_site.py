"""Off-site play."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.sites import off_site_flag


@pytest.mark.parametrize(
    ("website", "url"),
    [
        ("https://www.shop.com/", "https://checkout.shop.com/cart"),
        ("https://shop.co.uk/", "http://www.shop.co.uk/x"),
        ("http://127.0.0.1:9180/", "http://127.0.0.1:9180/cart"),
        ("http://localhost:1/", "http://localhost:1/x"),
        ("https://shop.com/", "about:blank"),
        ("https://shop.com/", "chrome-error://chromewebdata/"),
        ("https://shop.com/", "https://www.SHOP.com./cart"),
        ("https://shop.com/", "blob:https://www.shop.com/5f0c"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/x"),
        ("http://localhost:80/", "http://localhost/"),
        ("http://10.0.0.1/", "https://10.0.0.1/"),
        ("https://mine.github.io/", "https://mine.github.io/page"),
    ],
)
def test_the_same_site_is_not_flagged(website: str, url: str) -> None:
    assert off_site_flag(website, url) is None


@pytest.mark.parametrize(
    ("website", "url"),
    [
        ("https://www.shop.com/", "https://www.google.com/search?q=shop.com"),
        ("https://shop.com/", "https://shop.com.evil.net/"),
        ("https://shop.com/", "https://notshop.com/"),
        ("https://shop.co.uk/", "https://other.co.uk/"),
        ("http://127.0.0.1:9180/", "http://127.0.0.1:9009/"),
        ("http://10.0.0.1/", "http://10.0.0.2/"),
        ("https://shop.com/", "https://web.archive.org/web/2020/https://shop.com/"),
        ("https://shop.com/", "https://shop-com.translate.goog/"),
        ("https://shop.com/", "blob:https://evil.net/5f0c"),
        ("https://shop.com/", "view-source:https://evil.net/"),
        ("https://mine.github.io/", "https://others.github.io/"),
        ("https://shop.com/", "https://xn--shp-tna.com/"),
    ],
)
def test_another_site_is_flagged(website: str, url: str) -> None:
    assert off_site_flag(website, url) == "off_site"


def test_where_the_websites_own_address_leads_is_the_site_as_well() -> None:
    landed = "https://www.newname.com/welcome"
    assert off_site_flag("https://oldname.com/", "https://shop.newname.com/", landed=landed) is None
    assert off_site_flag("https://oldname.com/", "https://oldname.com/x", landed=landed) is None
    assert off_site_flag("https://oldname.com/", "https://evil.net/", landed=landed) == "off_site"
    assert off_site_flag("https://oldname.com/", "https://evil.net/", landed="about:blank") == "off_site"


@given(st.text(), st.text())
def test_no_address_makes_it_fail(website: str, url: str) -> None:
    assert off_site_flag(website, url) in (None, "off_site")
