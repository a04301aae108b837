"""Addresses and the sites they belong to: a task's own site, other sites, and the network policy. Pure.

An origin is a host with a port. A site is a registrable domain: the name that was registered below a public suffix. The
public suffix list comes with the `publicsuffixlist` package. Its private part is included, so two customers of one
hosting service (`a.surge.sh`, `b.surge.sh`) are two sites. IP addresses and single labels such as `localhost` must
match completely, with their port.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from judge.records.tasks import Task
from shared.models import Record

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
# Names and addresses of cloud metadata services besides the link-local addresses that most of them use.
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"})
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Ranges in IANA's special-purpose registries that `is_global` of the supported Python versions gets wrong.
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")))
# The range assigned to public hosts (RFC 4291, 2.4). Outside it are site-local and IPv4-compatible addresses, local
# NAT64 prefixes (RFC 8215), and addresses with a network-specific meaning.
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_METADATA_SERVICE = "a metadata service"
_LINK_LOCAL = "a link-local address"
_THIS_MACHINE = "this machine"
_OWN_SERVER = "a server of the assessment itself"

Origin = tuple[str, int | None]


class Place(Record):
    """A host (a name or an address, lower case, without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def origin_of(url: str) -> Origin | None:
    """Host and port of an http(s) address, with default ports as `None`; `None` for any other address."""
    try:
        parts = urlsplit(url)
        host, port = _ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return None
    return host, None if port == _DEFAULT_PORTS[parts.scheme] else port


def place_of(url: str) -> Place | None:
    """Where a browser connects for an http(s) address; `None` for any other address."""
    host, port = origin_of(url) or ("", None)
    port = _DEFAULT_PORTS[urlsplit(url).scheme] if host and port is None else port
    return Place(host=host, port=port) if host and port else None


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
    """The site of an http(s) address, or of a `blob:` created by one; `None` for any other (`about:blank`)."""
    origin = origin_of(created_by(url))
    if origin is None:
        return None
    host, port = origin
    if "." not in host or _ip(host) is not None:
        return f"{host}:{port}"
    # A host that is itself a public suffix (`github.io`) has no registrable part, so it counts as a site.
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
    """The task's own site: its website's origin, where that redirects before the first action, and `allowed_sites`.

    An allowed site is an origin (`https://pay.example`), or a host with all its subdomains (`example.org`).
    `is_any`: every address belongs to it, as for policies; relative addresses still belong to `home`. `is_lenient`:
    addresses are compared by what some server could treat as equal (`judge.evaluators.addresses`), as for policies.
    `verbatim`: texts and addresses are compared as they are written, and not as people see them (`shared.seen`), as on
    recordings of earlier versions.
    """

    home: frozenset[Origin]
    allowed: tuple[str, ...] = ()
    is_any: bool = False
    is_lenient: bool = False
    verbatim: bool = False

    def is_home(self, url: str) -> bool:
        """Whether an address is on the website's own origin, to which relative addresses belong."""
        return origin_of(url) in self.home

    def holds(self, url: str) -> bool:
        """Whether an address belongs to the task's site."""
        if self.is_any:
            return True
        origin = origin_of(url)
        return origin is not None and (origin in self.home or any(_allows(entry, origin) for entry in self.allowed))

    def with_home(self, *urls: str) -> "Site":
        """The site, to which the origins of these addresses belong as its website's own."""
        return replace(self, home=self.home | frozenset(filter(None, map(origin_of, urls))))


@dataclass(frozen=True)
class RunSites:
    """Which sites the tasks of a run have: those of each task, and those that belong to all (`allowed_sites`)."""

    shared: tuple[str, ...] = ()

    def further(self, task: Task) -> tuple[str, ...]:
        """The task's sites besides its website, as they were declared: origins and hosts."""
        return (*self.shared, *task.allowed_sites)

    def declared(self, task: Task) -> tuple[str, ...]:
        """The task's website and its further sites, as they were declared."""
        return (task.website, *self.further(task))

    def of(self, task: Task, *, landed: str = "") -> Site:
        """The task's own site; `landed` is the address of the first observation."""
        return Site(frozenset(), self.further(task)).with_home(task.website, landed)


NONE_SHARED = RunSites()


def _allows(entry: str, origin: Origin) -> bool:
    if "://" in entry:
        return origin_of(entry) == origin
    wanted = origin_of(f"http://{entry}")
    if wanted is None or wanted[1] != origin[1]:
        return False
    return origin[0] == wanted[0] or origin[0].endswith(f".{wanted[0]}")


def is_site(entry: str) -> bool:
    """Whether the entry is a host (`example.org`) or an origin (`https://pay.example`), without a path."""
    scheme, mark, rest = entry.rpartition("://")
    if len(entry) > MAX_SITE_CHARS or re.search(r"[/?#@*\s]", rest) or (mark and scheme not in _DEFAULT_PORTS):
        return False
    return origin_of(entry if mark else f"http://{rest}") is not None


class NetworkPolicy(Record):
    """Where a browser under assessment may connect: only to the public web and the task's own places.

    `own` may be on private addresses, by exact host and port, but never on link-local ones or those of metadata
    services: no task needs them, and untrusted requests name sites too. `closed` are the assessment's own servers,
    the judge and the participant, which are unreachable even as a task's website.

    The guard (`judge.network.guard`) resolves a name once, asks this policy about every resulting address, and connects
    to exactly the allowed address, so that a name cannot resolve to another one in between (DNS rebinding).
    """

    own: tuple[Place, ...] = ()
    closed: tuple[Place, ...] = ()

    @classmethod
    def for_websites(cls, sites: Iterable[str], *, closed: Iterable[str] = ()) -> "NetworkPolicy":
        """The policy for tasks on `sites` (addresses, origins or hosts), with the servers at `closed` out of reach.

        Subdomains of an allowed host are not included: whoever controls them could point them to any address.
        """
        urls = (url for site in sites for url in ([site] if "://" in site else [f"http://{site}", f"https://{site}"]))
        return cls(own=_places(urls), closed=_places(closed))

    def refuse_name(self, place: Place) -> str | None:
        """Why this host must not even be resolved, or `None`."""
        if place in self.closed:
            return _OWN_SERVER
        return _METADATA_SERVICE if place.host in _METADATA_NAMES else None

    def refuse_address(self, place: Place, address: str) -> str | None:
        """Why a connection to `place`, which resolved to `address`, is refused, or `None`."""
        why = refuse_ip(address)
        same_port = [closed.host for closed in self.closed if closed.port == place.port]
        is_local = any(host == "localhost" or refuse_ip(host) == _THIS_MACHINE for host in same_port)
        # A server on this machine is reachable under every name and address of this machine.
        if address in same_port or (why == _THIS_MACHINE and is_local):
            return _OWN_SERVER
        return why if place not in self.own or refuses_always(why) else None


def _places(urls: Iterable[str]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(filter(None, map(place_of, urls))))


def refuse_ip(address: str) -> str | None:
    """Why an IP address is not allowed, or `None` for one on the public internet."""
    # Without the zone of `fe80::1%eth0`.
    ip = _ip(address.partition("%")[0])
    if ip is None:
        return "no address"
    if isinstance(ip, ipaddress.IPv6Address) and (ip.ipv4_mapped or ip in _NAT64):
        # Packets to a mapped or translated address go to the IPv4 address in its last four bytes.
        return refuse_ip(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    is_special = any(ip in network for network in _SPECIAL) or (ip.version == 6 and ip not in _GLOBAL_IPV6)
    # The order matters: link-local addresses are private too, and a task's own site may be private but not link-local.
    reasons = (
        (ip in _METADATA, _METADATA_SERVICE),
        (ip.is_loopback or ip.is_unspecified, _THIS_MACHINE),
        (ip.is_link_local, _LINK_LOCAL),
        (ip.is_multicast, "a multicast address"),
        (ip.is_private, "a private network"),
        (not ip.is_global or is_special, "no public address"),
    )
    return next((why for applies, why in reasons if applies), None)


def refuses_always(why: str | None) -> bool:
    """Whether a reason of `refuse_ip` holds for a task's own site as well."""
    return why in (_LINK_LOCAL, _METADATA_SERVICE)


def is_ip(text: str) -> bool:
    """Whether a host is an IP address, in its usual spelling."""
    return _ip(text) is not None


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
