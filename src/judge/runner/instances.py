"""The instances of a run's sites: how many there are, where they listen, and whether attempts can be played on them."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from judge.records.sites import HostPort, place_of
from judge.runner.launch import Member, on_port
from judge.runner.ports import LOOPBACK, free_port
from judge.runner.routes import routed_client
from judge.scenario.models import SiteEntry
from shared.concurrency import together
from shared.errors import ConfigError
from shared.patience import patience

_PAGE_TIMEOUT_S = 10.0
_MAX_REDIRECTS = 10
_NONE: Mapping[str, int] = MappingProxyType({})


class PlacedMembers(NamedTuple):
    """Members of a run, with each instance of a site as one of its own, and the instances' addresses by website."""

    members: tuple[Member, ...]
    addresses: Mapping[str, tuple[str, ...]]


def placed(members: Sequence[Member], sites: Sequence[SiteEntry], slots: Mapping[str, int] = _NONE) -> PlacedMembers:
    """The members, with the instances of those sites that have any: by website, `slots` attempts at once need one each.

    A site without slots is its own only instance, and listens where it would without any: as in plays outside of a run,
    and where another site may depend on it.
    """
    by_name = {site.name: site for site in sites if site.is_played_by_instance}
    placed_members: list[Member] = []
    addresses: dict[str, tuple[str, ...]] = {}
    with ExitStack() as reservations:
        for member in members:
            site = by_name.get(member.site)
            slot_count = slots.get(site.endpoint, 0) if site else 0
            if site is None:
                placed_members.append(member)
            elif isinstance(site.instances, tuple):
                addresses[site.endpoint] = site.instances
                placed_members += [at(member, address) for address in site.instances]
            elif not slot_count or member.cmd is None:
                addresses[site.endpoint] = (site.endpoint,)
                placed_members.append(member)
            else:
                count = min(slot_count, site.instances) if isinstance(site.instances, int) else slot_count
                addresses[site.endpoint] = tuple(_free_place(site.endpoint, reservations) for _ in range(count))
                placed_members += [
                    at(member, address).model_copy(update={"cmd": on_port(site.cmd, address)})
                    for address in addresses[site.endpoint]
                ]
    return PlacedMembers(tuple(placed_members), addresses)


def _free_place(endpoint: str, reservations: ExitStack) -> str:
    """An address like the endpoint's on a free port of this machine."""
    return f"{urlsplit(endpoint).scheme}://127.0.0.1:{free_port(reservations)}"


def at(member: Member, address: str) -> Member:
    """The instance of a site that listens at an address."""
    name = instance_name(member.site, member.endpoint, address)
    return member.model_copy(update={"name": name, "instance": address})


def instance_name(site: str, endpoint: str, address: str) -> str:
    """What the instance of a site at an address is called in messages and by its log."""
    place = place_of(address)
    return site if place is None or place == place_of(endpoint) else f"{site}-{place.port}"


async def require_public_addresses(members: Sequence[Member]) -> None:
    """Raises `ConfigError` for a site that leads away from its address to an instance's, which nothing reaches.

    Such a site does not go by the `Host` header, but by the port on which it listens.
    """
    apart = [member for member in members if member.instance not in (None, member.endpoint)]
    await together(_require_public_addresses(member) for member in apart)


async def _require_public_addresses(member: Member) -> None:
    public, instance = place_of(member.endpoint), place_of(member.listens_at)
    names = (instance.host, *LOOPBACK) if instance else ()
    own = {place for name in names if instance and (place := HostPort(host=name, port=instance.port)) != public}
    url = urljoin(member.endpoint, member.ready.url if member.ready else "")
    async with routed_client(member.routes, timeout=None) as client:
        for _ in range(_MAX_REDIRECTS):
            try:
                async with patience(_PAGE_TIMEOUT_S):
                    answer = await client.get(url)
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
                # The browser will find it as well, and report it as the site's fault.
                return
            target = urljoin(url, answer.headers.get("location", ""))
            is_redirect = answer.is_redirect and place_of(target) in own
            if is_redirect or any(f"//{place}" in answer.text for place in own):
                how = "redirects" if is_redirect else "links"
                raise ConfigError(
                    f"site {member.site}: {url} {how} to {instance}, an instance's own address, which no page reaches",
                    remedy=f"configure it for its public address, {member.endpoint}, or leave instances out",
                )
            if not answer.is_redirect or place_of(target) != public:
                return
            url = target
