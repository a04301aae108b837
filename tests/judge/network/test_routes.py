"""The guard connects a browser to the instances of its own attempt, each at its site's address, and to no other."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.network.served_sites import Authority, listening
from helpers.ports import free_ports
from judge.network.guard import Guard, guarding
from judge.network.interception import RequestRefused
from judge.network.policy import NetworkPolicy
from judge.records.sites import HostPort, place_of

SLOTS = 3
# Names and spellings under which a page may ask for a server of this machine.
HOSTS = tuple("127.0.0.1 localhost LOCALHOST. 127.1 2130706433 0.0.0.0 127.0.0.2 [::1] [::ffff:127.0.0.1]".split())


@dataclass(frozen=True)
class Servers:
    """What listens on this machine: by website the ports of its instances, one for each slot, and other servers.

    Nothing listens at the websites' own addresses.
    """

    instances: dict[str, tuple[int, ...]]
    judge: int
    stranger: int

    @property
    def shop(self) -> str:
        return min(self.instances)

    def route(self, site: str, slot: int) -> dict[str, str]:
        return {site: f"http://127.0.0.1:{self.instances[site][slot]}"}

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for ports in self.instances.values() for port in ports]

    def policy(self, sites: frozenset[str], slots: dict[str, int]) -> NetworkPolicy:
        """The policy of a task on these sites, in these slots; the judge itself listens as well."""
        closed = [f"http://127.0.0.1:{self.judge}"]
        routes = {site: address for each in sites for site, address in self.route(each, slots[each]).items()}
        return NetworkPolicy.for_websites(sites, closed=closed).routed(routes, self.addresses)


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[Servers]:
    """Each server says its own port as soon as somebody connects."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(str(writer.get_extra_info("sockname")[1]).encode())
        await writer.drain()
        writer.close()

    async with AsyncExitStack() as stack:
        shop, bank, *ports = free_ports(2 * SLOTS + 4)
        for port in ports:
            # On every address of this machine, so that only the guard stands in between.
            await stack.enter_async_context(await asyncio.start_server(serve, "0.0.0.0", port))
        instances = {
            f"http://127.0.0.1:{shop}": tuple(ports[:SLOTS]),
            f"http://localhost:{bank}": tuple(ports[SLOTS : 2 * SLOTS]),
        }
        yield Servers(instances, judge=ports[-2], stranger=ports[-1])


async def reached(guard: Guard, url: str) -> int | None:
    """The port of the server that a connection to an address ends at, or `None` if there is no connection."""
    try:
        peer = await guard.dial(url)
    except (RequestRefused, OSError):
        return None
    async with asyncio.timeout(10):
        port = int(await peer.reader.read(100))
    await peer.close()
    return port


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_an_instance_is_reached_at_its_sites_address_in_its_slot_only(
    servers: Servers, data: st.DataObject
) -> None:
    sites = frozenset(data.draw(st.sets(st.sampled_from(sorted(servers.instances)))))
    slots = {site: data.draw(st.integers(0, SLOTS - 1)) for site in servers.instances}
    own = {place_of(site): site for site in servers.instances}
    ports = [port for each in servers.instances.values() for port in each]
    ports += [servers.judge, servers.stranger, *(place.port for place in own if place)]
    host, port = data.draw(st.sampled_from(HOSTS)), data.draw(st.sampled_from(ports))
    # The oracle: a site of the task, under its own name and port, is the instance in the task's slot; and that is all.
    site = own.get(HostPort(host=host.lower().rstrip("."), port=port))
    expected = servers.instances[site][slots[site]] if site in sites else None
    async with guarding(servers.policy(sites, slots)) as guard:
        assert await reached(guard, f"{data.draw(st.sampled_from(['http', 'https']))}://{host}:{port}/") == expected


async def test_an_instance_is_no_site_of_its_own_even_if_the_task_names_it(servers: Servers) -> None:
    own, other = servers.instances[servers.shop][:2]
    addresses = [f"http://127.0.0.1:{own}", f"http://127.0.0.1:{other}", f"http://localhost:{other}", servers.shop]
    policy = NetworkPolicy.for_websites(addresses).routed(servers.route(servers.shop, 0), servers.addresses)
    async with guarding(policy) as guard:
        assert [await reached(guard, url) for url in addresses] == [None, None, None, own]


async def test_a_site_that_is_its_own_instance_is_reached_as_ever(servers: Servers) -> None:
    ports = servers.instances[servers.shop][:2]
    site, other = (f"http://127.0.0.1:{port}" for port in ports)
    for instance, expected in ((site, ports[0]), (other, ports[1])):
        policy = NetworkPolicy.for_websites([site]).routed({site: instance}, [site, other])
        async with guarding(policy) as guard:
            assert [await reached(guard, url) for url in (site, other)] == [expected, None]


@pytest.mark.parametrize(
    ("instance", "address", "why"),
    [
        ("http://shop-1.example", "93.184.216.34", "a public address, but instances"),
        ("http://shop-1.example", "169.254.169.254", "a link-local address"),
        ("http://shop-1.example", "100.100.100.200", "a metadata service"),
        ("http://shop-1.example", "10.1.2.3", None),
        ("http://127.0.0.1:9009", "127.0.0.1", "a server of the assessment itself"),
    ],
)
def test_an_instance_is_on_this_machine_or_a_private_network(instance: str, address: str, why: str | None) -> None:
    policy = NetworkPolicy.for_websites(["http://shop.test"], closed=["http://127.0.0.1:9009"]).routed(
        {"http://shop.test": instance}, [instance]
    )
    refusal = policy.refuse_address(HostPort(host="shop.test", port=80), address)
    assert refusal is None if why is None else str(refusal).startswith(why)


async def test_the_certificate_of_an_instance_has_the_name_of_its_site(tmp_path: Path) -> None:
    authority, (site, port) = Authority.made_in(tmp_path), free_ports(2)
    trust = ssl.create_default_context(cafile=str(authority.ca))

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with listening(serve, port, authority):
        for host, is_named in (("localhost", True), ("shop.example", False)):
            website = f"https://{host}:{site}"
            policy = NetworkPolicy.for_websites([website]).routed({website: f"https://127.0.0.1:{port}"}, [])
            async with guarding(policy) as guard:
                with nullcontext() if is_named else pytest.raises(ssl.SSLCertVerificationError, match=r"shop\.example"):
                    await (await guard.dial(website, trust)).close()
