"""Which site an address belongs to, and which sites a task has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.sites import HostPort, RunSites, is_off_site, place_of
from judge.records.tasks import Task


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://Shop.Test./", HostPort(host="shop.test", port=443)),
        ("http://bücher.example/", HostPort(host="xn--bcher-kva.example", port=80)),
        ("http://shop.test:0/", None),
        ("http://[::1]:9/", HostPort(host="::1", port=9)),
    ],
)
def test_a_place_is_named_as_browsers_name_it(url: str, place: HostPort | None) -> None:
    assert place_of(url) == place


@given(st.text())
def test_any_text_can_be_asked_for_its_place(url: str) -> None:
    place = place_of(url)
    assert place is None or place.host == place.host.lower()


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
        ("https://shop.surge.sh/", "https://www.shop.surge.sh/"),
        ("https://www.go.net/", "https://shop.go.net/"),
        ("https://www.shop.internal-tld/", "https://cart.shop.internal-tld/"),
        ("https://www.ck/", "https://shop.www.ck/"),
    ],
)
def test_the_same_site_is_not_flagged(website: str, url: str) -> None:
    assert not is_off_site(website, url)


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
        ("https://mine.github.io/", "https://github.io/"),
        ("https://shop.eu-west-1.elasticbeanstalk.com/", "https://x.eu-west-1.elasticbeanstalk.com/"),
        ("https://shop.s3.amazonaws.com/", "https://x.s3.amazonaws.com/"),
        ("https://shop.gob.mx/", "https://x.gob.mx/"),
        ("https://shop.chuo.tokyo.jp/", "https://x.chuo.tokyo.jp/"),
        ("https://shop.公司.cn/", "https://x.xn--55qx5d.cn/"),
        ("https://a.surge.sh/", "blob:https://b.surge.sh/5f0c"),
        ("https://a.surge.sh/", "https://b.surge.sh./"),
        ("https://shop.com/", "https://xn--shp-tna.com/"),
    ],
)
def test_another_site_is_flagged(website: str, url: str) -> None:
    assert is_off_site(website, url)


def test_where_the_website_redirects_belongs_to_the_site() -> None:
    landed = "https://www.newname.com/welcome"
    assert not is_off_site("https://oldname.com/", "https://shop.newname.com/", landed=landed)
    assert not is_off_site("https://oldname.com/", "https://oldname.com/x", landed=landed)
    assert is_off_site("https://oldname.com/", "https://evil.net/", landed=landed)
    assert is_off_site("https://oldname.com/", "https://evil.net/", landed="about:blank")


@given(st.text(), st.text())
def test_any_two_texts_can_be_compared(website: str, url: str) -> None:
    assert is_off_site(website, url) in (True, False)


def test_a_task_has_its_website_its_own_sites_and_those_that_all_tasks_of_a_run_share() -> None:
    keys = {"task_id": "t", "website": "https://shop.test/a", "task": "x", "allowed_sites": ["https://pay.test"]}
    task, sites = Task.model_validate(keys), RunSites(("sso.test",))
    assert sites.declared(task) == ("https://shop.test/a", "sso.test", "https://pay.test")
    site = sites.of(task, landed="https://www.shop.test/")
    own = ("https://shop.test/b", "https://www.shop.test/", "http://de.sso.test/", "https://pay.test/x")
    assert [url for url in (*own, "https://de.shop.test/", "https://de.pay.test/") if site.holds(url)] == list(own)
    assert [url for url in own if site.is_home(url)] == list(own[:2])
