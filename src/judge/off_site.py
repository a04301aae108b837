"""Decides whether an address lies off the task's site. Pure.

A site is a registrable domain: the name that was registered below a public suffix. The public suffix list comes with
the `publicsuffixlist` package. Its private part is included, so two customers of one hosting service (`a.surge.sh`,
`b.surge.sh`) are two sites. IP addresses and single labels such as `localhost` must match whole, with their port.
"""

import ipaddress
import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from judge.sites import ascii_host

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

OFF_SITE = "off_site"
# An address of these kinds wraps the address of the page that created it.
_WRAPPED = re.compile(r"(?:(?:blob|filesystem|view-source):)+", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LINK = re.compile(r"https?://[^\s/?#\"'<>]+", re.IGNORECASE)
_HOST = re.compile(r"\[[0-9a-f:.]+\](?::\d+)?|[\w.-]+(?::\d+)?", re.IGNORECASE)


@cache
def _suffixes() -> "PublicSuffixList":
    """The bundled list. Loading takes about 0.1 s, so commands that compare no sites do not pay for it."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=True, only_icann=False)


def site_of(url: str) -> str | None:
    """The site of an http(s) address, also of a `blob:` made by one, or `None` when it has none (`about:blank`)."""
    wrapped = _WRAPPED.match(url)
    try:
        parts = urlsplit(url[wrapped.end() :] if wrapped else url)
        host, port = ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    port = None if port == _DEFAULT_PORTS[parts.scheme] else port
    if "." not in host or _is_ip(host):
        return f"{host}:{port}"
    # A host that is itself a public suffix (`github.io`) has no registrable part: it is a site of its own.
    return _suffixes().privatesuffix(host) or host


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def sites_named_in(url: str) -> frozenset[str]:
    """Every site that an address names anywhere, such as the target of `https://shop.com/leave?to=https://other.net/`."""
    # A redirector's target is usually encoded once, and twice when it passes through another redirector.
    hosts = _HOST.findall(unquote(unquote(url)))
    named = (site_of(f"{scheme}://{host}") for host in hosts for scheme in _DEFAULT_PORTS)
    return frozenset(site for site in named if site is not None)


def sites_linked_in(text: str) -> frozenset[str]:
    """Every site of which a text holds a whole address. A bare host does not count: it may be a word or an e-mail's."""
    return frozenset(site for link in _LINK.findall(text) if (site := site_of(link)) is not None)


def off_site_flag(website: str, url: str, *, landed: str = "") -> str | None:
    """`"off_site"` when `url` lies on another site than `website`, else `None`.

    `landed` is where the website's own address led before the participant did anything: that is the task's site too.
    """
    here = site_of(url)
    return OFF_SITE if here is not None and here not in (site_of(website), site_of(landed)) else None
