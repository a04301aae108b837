"""Which hosts a browser under assessment may reach: the public web and the task's own site, nothing else.

Pure. The guard's proxy (`judge.browser.guard.proxy`) resolves a name once, asks here about every address it got, and
connects to the very address that was allowed, so that a name cannot change its meaning in between (DNS rebinding).
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from shared.models import Record

# Cloud metadata services answer on link-local addresses mostly; these are names for them, and the other addresses.
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"})
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# IANA's special-purpose registries, as far as `is_global` of the Pythons in use does not follow them.
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")))
# All that is assigned for public hosts (RFC 4291, 2.4); outside lie site-local and IPv4-compatible addresses, local
# NAT64 prefixes (RFC 8215) and whatever a network gives a meaning of its own.
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_METADATA_SERVICE = "a metadata service"
_LINK_LOCAL = "a link-local address"
_THIS_MACHINE = "this machine"
_OWN_SERVER = "a server of the assessment itself"


class Place(Record):
    """A host (a name or an address, lower case, without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(url: str) -> Place | None:
    """Host and port of an http(s) or ws(s) address, or `None` when it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    port = {"http": 80, "ws": 80, "https": 443, "wss": 443}.get(parts.scheme) if port is None else port
    if not parts.hostname or not port:
        return None
    return Place(host=ascii_host(parts.hostname), port=port)


def ascii_host(host: str) -> str:
    """The host as browsers write it: lower case, without a final dot, international names in their ASCII form."""
    plain = host.rstrip(".").lower()
    if plain.isascii():
        return plain
    try:
        return plain.encode("idna").decode("ascii").rstrip(".")
    except UnicodeError:
        return plain


class NetworkPolicy(Record):
    """`own` are the places of the scenario's own sites: allowed on private addresses too, by exact host and port.

    Not on link-local ones and those of metadata services: no task is about them, and a stranger's request names sites.
    `closed` are the assessment's own servers, the judge and the participant: out of reach even as a task's website.
    """

    own: tuple[Place, ...] = ()
    closed: tuple[Place, ...] = ()

    @classmethod
    def for_websites(cls, urls: Iterable[str], *, closed: Iterable[str] = ()) -> "NetworkPolicy":
        """The policy for tasks on these websites, with the servers at the addresses `closed` out of reach."""
        return cls(own=_places(urls), closed=_places(closed))

    def refuse_name(self, place: Place) -> str | None:
        """Why this host may not even be looked up, or `None`."""
        if place in self.closed:
            return _OWN_SERVER
        return _METADATA_SERVICE if place.host in _METADATA_NAMES else None

    def refuse_address(self, place: Place, address: str) -> str | None:
        """Why `place`, which resolved to `address`, may not be connected to, or `None`."""
        why = refuse_ip(address)
        same_port = [closed.host for closed in self.closed if closed.port == place.port]
        # A server on this machine is meant under every name and address that this machine has for itself.
        if address in same_port or (why == _THIS_MACHINE and any(map(_is_this_machine, same_port))):
            return _OWN_SERVER
        return why if place not in self.own or why in (_LINK_LOCAL, _METADATA_SERVICE) else None


def refuse_ip(address: str) -> str | None:
    """Why an IP address is out of reach, or `None` for one on the public internet."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded_ipv4(ip)
        if inner is not None:
            return refuse_ip(str(inner))
    for is_so, what in (
        (ip in _METADATA, _METADATA_SERVICE),
        (ip.is_loopback, _THIS_MACHINE),
        (ip.is_unspecified, _THIS_MACHINE),
        (ip.is_link_local, _LINK_LOCAL),
        (ip.is_multicast, "a multicast address"),
        (ip.is_private, "a private network"),
        (not ip.is_global or _is_special(ip), "no public address"),
    ):
        if is_so:
            return what
    return None


def _places(urls: Iterable[str]) -> tuple[Place, ...]:
    found = (place_of(url) for url in urls)
    return tuple(dict.fromkeys(place for place in found if place is not None))


def _is_this_machine(host: str) -> bool:
    return host == "localhost" or refuse_ip(host) == _THIS_MACHINE


def _is_special(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return any(ip in network for network in _SPECIAL) or (ip.version == 6 and ip not in _GLOBAL_IPV6)


def _embedded_ipv4(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside a mapped or translated address: that is where packets end."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None
