"""Where a browser under assessment may connect, and why it may not connect elsewhere. Pure."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Self

from judge.records.sites import HostPort, ip_of, place_of
from shared.models import Record

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
_INSTANCE = "an instance of a site, which is reached at the site's own address only"
_PUBLIC_INSTANCE = "a public address, but instances of sites belong on this machine or on a private network"


class NetworkPolicy(Record):
    """Where a browser under assessment may connect: only to the public web and the task's places.

    `own` may be on private addresses, by exact host and port, but never on link-local ones or metadata
    services: no task needs them, and untrusted requests name sites too. `closed` are the assessment's servers,
    the judge and the participant, which are unreachable even as a task's website.

    `routes` are the places served by an instance for this attempt, each with that instance's place, and
    `instances` belong to all sites and attempts: a browser reaches an instance at its site's place only. They are
    named by the runner or the operator, so they may be on private addresses like `own`, but not on public ones, which
    any page could reach under other names.

    The guard (`judge.network.guard`) resolves a name once, asks this policy about every resulting address, and connects
    to exactly the allowed address, so that a name cannot resolve to another one in between (DNS rebinding).
    """

    own: tuple[HostPort, ...] = ()
    closed: tuple[HostPort, ...] = ()
    routes: tuple[tuple[HostPort, HostPort], ...] = ()
    instances: tuple[HostPort, ...] = ()

    @classmethod
    def for_websites(cls, sites: Iterable[str], *, closed: Iterable[str] = ()) -> "NetworkPolicy":
        """The policy for tasks on `sites` (addresses, origins or hosts), with the servers at `closed` out of reach.

        Subdomains of an allowed host are not included: whoever controls them could point them to any address.
        """
        urls = (url for site in sites for url in ([site] if "://" in site else [f"http://{site}", f"https://{site}"]))
        return cls(own=_places(urls), closed=_places(closed))

    def routed(self, routes: Mapping[str, str], instances: Iterable[str]) -> Self:
        """The policy of an attempt for which these instances serve these sites: by a site's address, its instance's.

        `instances` are the addresses of all instances, whose attempts this one must not reach. A site that is its own
        instance needs no route.
        """
        hosts = {
            place: to for site, address in routes.items() if (place := place_of(site)) and (to := place_of(address))
        }
        return self.model_copy(
            update={
                "routes": tuple((place, to) for place, to in hosts.items() if place != to),
                "instances": tuple(each for each in _places(instances) if hosts.get(each) != each),
            }
        )

    def served_by(self, place: HostPort) -> HostPort:
        """Where connections to a place are opened: the place itself, unless an instance serves it."""
        return dict(self.routes).get(place, place)

    def refuse_name(self, place: HostPort) -> str | None:
        """Why this host must not even be resolved, or `None`."""
        if place in self.closed or self.served_by(place) in self.closed:
            return _OWN_SERVER
        if place in self.instances and place not in dict(self.routes):
            return _INSTANCE
        return _METADATA_SERVICE if self.served_by(place).host in _METADATA_NAMES else None

    def refuse_address(self, place: HostPort, address: str) -> str | None:
        """Why a connection to `place` is refused, or `None`. Its host, or its instance's, resolved to `address`."""
        why, to = refuse_ip(address), self.served_by(place)
        if _is_one_of(self.closed, to.port, address):
            return _OWN_SERVER
        if to != place:
            return why if refuses_always(why) else _PUBLIC_INSTANCE if why is None else None
        if _is_one_of(self.instances, place.port, address):
            return _INSTANCE
        return why if place not in self.own or refuses_always(why) else None


def _is_one_of(servers: Iterable[HostPort], port: int, address: str) -> bool:
    """Whether a port of an IP address is one of these servers, as far as that is known without looking up names."""
    same_port = [server.host for server in servers if server.port == port]
    is_local = any(host == "localhost" or refuse_ip(host) == _THIS_MACHINE for host in same_port)
    # A server on this machine is reachable under every name and address of this machine.
    return address in same_port or (refuse_ip(address) == _THIS_MACHINE and is_local)


def _places(urls: Iterable[str]) -> tuple[HostPort, ...]:
    return tuple(dict.fromkeys(filter(None, map(place_of, urls))))


def refuse_ip(address: str) -> str | None:
    """Why an IP address is not allowed, or `None` for one on the public internet."""
    # Without the zone of `fe80::1%eth0`.
    ip = ip_of(address.partition("%")[0])
    if ip is None:
        return "no address"
    if isinstance(ip, ipaddress.IPv6Address) and (ip.ipv4_mapped or ip in _NAT64):
        # Packets to a mapped or translated address go to the IPv4 address in its last four bytes.
        return refuse_ip(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    is_special = any(ip in network for network in _SPECIAL) or (ip.version == 6 and ip not in _GLOBAL_IPV6)
    # The order matters: link-local addresses are private too, and a task's site may be private but not link-local.
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
    """Whether a reason of `refuse_ip` holds for a task's site as well."""
    return why in (_LINK_LOCAL, _METADATA_SERVICE)
