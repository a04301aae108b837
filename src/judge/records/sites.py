"""Addresses and the sites they belong to: a task's site and other sites. Pure.

An origin is a host with a port. A site is a registrable domain: the name registered below a public suffix. The
public suffix list comes with the `publicsuffixlist` package. Its private part is included, so two customers of one
hosting service (`a.surge.sh`, `b.surge.sh`) are two sites. IP addresses and single labels such as `localhost` must
match completely, with their port.
"""

import ipaddress
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from judge.records.tasks import Task
from shared.models import Record
from shared.seen import TextForm, as_seen, folded

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

# Flags of a step.
OFF_SITE = "off_site"
BLOCKED = "blocked_address"
SITE_BLOCKED = "site_blocked"
MAX_SITE_CHARS = 300

_DEFAULT_PORTS = {"http": 80, "https": 443}
# These schemes wrap the address of the page that created the URL.
_WRAPPERS = re.compile(r"\A(?:(?:blob|filesystem|view-source):)+", re.IGNORECASE)

Origin = tuple[str, int | None]


class HostPort(Record):
    """A host (a name or an address, lower case, without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def origin_of(url: str) -> Origin | None:
    """Host and port of an http(s) address, with default ports as `None`; `None` for any other address.

    >>> origin_of("https://Shop.Example:443/cart?id=7"), origin_of("http://127.0.0.1:8000/"), origin_of("about:blank")
    (('shop.example', None), ('127.0.0.1', 8000), None)
    """
    try:
        parts = urlsplit(url)
        host, port = _ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    return host, None if port == _DEFAULT_PORTS[parts.scheme] else port


def place_of(url: str) -> HostPort | None:
    """Where a browser connects for an http(s) address; `None` for any other address."""
    host, port = origin_of(url) or ("", None)
    port = _DEFAULT_PORTS[urlsplit(url).scheme] if host and port is None else port
    return HostPort(host=host, port=port) if host and port else None


def _ascii_host(host: str) -> str:
    """The host as browsers write it: lower case, without a final dot, international names in ASCII form."""
    plain = host.rstrip(".").lower()
    if plain.isascii():
        return plain
    try:
        return plain.encode("idna").decode("ascii").rstrip(".")
    except UnicodeError:
        return plain


@cache
def _suffixes() -> "PublicSuffixList":
    """The bundled list. Loaded on first use, because loading takes about 0.1 s and not every command needs it."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=True, only_icann=False)


def site_of(url: str) -> str | None:
    """The site of an http(s) address, or of a `blob:` created by one; `None` for any other (`about:blank`).

    >>> site_of("https://www.shop.example.co.uk/cart")
    'example.co.uk'
    """
    origin = origin_of(created_by(url))
    if origin is None:
        return None
    host, port = origin
    if "." not in host or ip_of(host) is not None:
        return f"{host}:{port}"
    # A host which is a public suffix itself (`github.io`) has no registrable part, so it counts as a site.
    return _suffixes().privatesuffix(host) or host


def created_by(url: str) -> str:
    """The address of the page that created a `blob:` and the like; any other address unchanged."""
    return _WRAPPERS.sub("", url)


def is_off_site(website: str, url: str, *, landed: str = "") -> bool:
    """Whether `url` is on another site than `website`; false for pages without a site (`about:blank`).

    `landed` is where the website redirected before the participant did anything; it is part of the task's site too.
    """
    return site_of(url) not in (None, site_of(website), site_of(landed))


@dataclass(frozen=True)
class Site:
    """The task's site: its website's origin, where that redirects before the first action, and `allowed_sites`.

    An allowed site is an origin (`https://pay.example`), or a host with all its subdomains (`example.org`).
    `is_any`: every address belongs to it, as for policies; relative addresses still belong to `home`. `is_lenient`:
    addresses are compared by what some server could treat as equal (`judge.evaluators.addresses`), and texts by what
    some reader could, as for policies.
    `verbatim`: texts and addresses are compared as they are written, and not as people see them (`shared.seen`), as on
    recordings of other programs.
    """

    home: frozenset[Origin]
    allowed: tuple[str, ...] = ()
    is_any: bool = False
    is_lenient: bool = False
    verbatim: bool = False

    @property
    def form(self) -> TextForm:
        """The form in which texts are compared."""
        return folded if self.is_lenient else as_seen

    def is_home(self, url: str) -> bool:
        """Whether an address is on the website's origin, to which relative addresses belong."""
        return origin_of(url) in self.home

    def holds(self, url: str) -> bool:
        """Whether an address belongs to the task's site."""
        if self.is_any:
            return True
        origin = origin_of(url)
        return origin is not None and (origin in self.home or any(_allows(entry, origin) for entry in self.allowed))

    def with_home(self, *urls: str) -> "Site":
        """The site, to which the origins of these addresses belong as its website's."""
        return replace(self, home=self.home | frozenset(filter(None, map(origin_of, urls))))


@dataclass(frozen=True)
class RunSites:
    """Which sites the tasks of a run have: each task's, and those that belong to all (`allowed_sites`)."""

    shared: tuple[str, ...] = ()

    def further(self, task: Task) -> tuple[str, ...]:
        """The task's sites besides its website, as they were declared: origins and hosts."""
        return (*self.shared, *task.allowed_sites)

    def declared(self, task: Task) -> tuple[str, ...]:
        """The task's website and its further sites, as they were declared."""
        return (task.website, *self.further(task))

    def of(self, task: Task, *, landed: str = "") -> Site:
        """The task's site; `landed` is the address of the first observation."""
        return Site(frozenset(), self.further(task)).with_home(task.website, landed)


NONE_SHARED = RunSites()


def _allows(entry: str, origin: Origin) -> bool:
    if "://" in entry:
        return origin_of(entry) == origin
    entry_origin = origin_of(f"http://{entry}")
    if entry_origin is None or entry_origin[1] != origin[1]:
        return False
    return origin[0] == entry_origin[0] or origin[0].endswith(f".{entry_origin[0]}")


def is_site(entry: str) -> bool:
    """Whether the entry is a host (`example.org`) or an origin (`https://pay.example`), without a path."""
    scheme, mark, rest = entry.rpartition("://")
    if len(entry) > MAX_SITE_CHARS or re.search(r"[/?#@*\s]", rest) or (mark and scheme not in _DEFAULT_PORTS):
        return False
    return origin_of(entry if mark else f"http://{rest}") is not None


def ip_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a host is, in its usual spelling; `None` for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
