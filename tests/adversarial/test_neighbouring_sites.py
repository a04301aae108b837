"""A page next door: another customer of the same hosting service, or another name of the same registry, is off site."""

from collections.abc import Callable

import pytest

from judge.records.sites import is_off_site, site_of

RecordProperty = Callable[[str, object], None]
NEIGHBOURS = {
    "static hosting": ("https://a.surge.sh/", "https://b.surge.sh/"),
    "two levels of a host": (
        "https://shop.eu-west-1.elasticbeanstalk.com/",
        "https://x.eu-west-1.elasticbeanstalk.com/",
    ),
    "buckets": ("https://shop.s3.amazonaws.com/", "https://x.s3.amazonaws.com/"),
    "the host itself": ("https://mine.github.io/", "https://github.io/"),
    "a country's second level": ("https://shop.gob.mx/", "https://x.gob.mx/"),
    "a prefecture": ("https://shop.chuo.tokyo.jp/", "https://x.chuo.tokyo.jp/"),
    "an international suffix": ("https://shop.公司.cn/", "https://x.xn--55qx5d.cn/"),
    "a wrapped address": ("https://a.surge.sh/", "blob:https://b.surge.sh/5f0c"),
    "a final dot": ("https://a.surge.sh/", "https://b.surge.sh./"),
}
HOUSEHOLDS = {
    "subdomains of a customer": ("https://shop.surge.sh/", "https://www.shop.surge.sh/"),
    "a name that looks like a second level": ("https://www.go.net/", "https://shop.go.net/"),
    "a suffix that nobody has registered": ("https://www.shop.internal-tld/", "https://cart.shop.internal-tld/"),
    "an exception of the list": ("https://www.ck/", "https://shop.www.ck/"),
}


def tell(record_property: RecordProperty, website: str, url: str) -> None:
    record_property(
        "outcome",
        f"{site_of(website)} and {site_of(url)}: {'off_site' if is_off_site(website, url) else 'the same site'}",
    )


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_a_neighbour_is_another_site(kind: str, record_property: RecordProperty) -> None:
    website, url = NEIGHBOURS[kind]
    tell(record_property, website, url)
    assert is_off_site(website, url)


@pytest.mark.parametrize("kind", HOUSEHOLDS)
def test_another_host_of_the_same_owner_is_the_same_site(kind: str, record_property: RecordProperty) -> None:
    website, url = HOUSEHOLDS[kind]
    tell(record_property, website, url)
    assert not is_off_site(website, url)
