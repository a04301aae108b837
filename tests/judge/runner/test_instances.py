"""How many instances of its sites a run starts, where they listen, and which sites cannot be played that way."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import Any

import pytest

from helpers.network.served_sites import listening
from helpers.ports import free_ports
from judge.records.sites import place_of
from judge.runner.instances import placed, require_public_addresses
from judge.runner.launch import Member, site_member
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError

SHOP = "http://127.0.0.1:9180"
JUDGE = Member(name="green_agent", endpoint="http://127.0.0.1:9009", cmd="wabe serve", is_agent=True)


def a_site(**keys: Any) -> SiteEntry:
    table = {"name": "shop", "endpoint": SHOP, "cmd": "serve {port} {data_dir}", "instances": "per_slot", **keys}
    return SiteEntry.model_validate({key: value for key, value in table.items() if value is not None})


@pytest.mark.parametrize(
    ("instances", "slots", "count"), [("per_slot", 4, 4), ("per_slot", 1, 1), (2, 4, 2), (8, 3, 3)]
)
def test_each_slot_has_an_instance_on_a_port_of_its_own(instances: object, slots: int, count: int) -> None:
    site = a_site(instances=instances)
    members, addresses = placed([site_member(site), JUDGE], [site], {SHOP: slots})
    ports = [place.port for address in addresses[SHOP] if (place := place_of(address))]
    assert len(set(ports)) == count
    assert 9180 not in ports
    *sites, judge = members
    assert judge is JUDGE
    assert [each.cmd for each in sites] == [f"serve {port} {{data_dir}}" for port in ports]
    assert [each.routes for each in sites] == [{SHOP: f"http://127.0.0.1:{port}"} for port in ports]
    # What they are called by the logs.
    assert [each.name for each in sites] == [f"shop-{port}" for port in ports]


@pytest.mark.parametrize("slots", [{}, {SHOP: 0}], ids=["a play outside of a run", "no task is about it"])
def test_without_slots_a_site_is_its_own_only_instance(slots: dict[str, int]) -> None:
    site = a_site()
    members, addresses = placed([site_member(site)], [site], slots)
    assert addresses == {SHOP: (SHOP,)}
    assert [(each.name, each.cmd, each.routes) for each in members] == [("shop", "serve 9180 {data_dir}", {})]


def test_instances_that_run_already_are_awaited_and_not_started() -> None:
    listed = ("http://10.0.0.1:80", "http://10.0.0.2:80")
    site = a_site(instances=listed, cmd=None)
    members, addresses = placed([site_member(site)], [site], {SHOP: 1})
    assert addresses == {SHOP: listed}
    assert [(each.cmd, each.listens_at) for each in members] == [(None, address) for address in listed]


@pytest.mark.parametrize("keys", [{"static": True}, {"archive": "shop.wacz"}])
def test_a_site_that_no_attempt_can_change_needs_one(keys: dict[str, Any]) -> None:
    site = a_site(**keys)
    members, addresses = placed([site_member(site)], [site], {SHOP: 4})
    assert (addresses, [each.cmd for each in members]) == ({}, ["serve 9180 {data_dir}"])


def test_a_site_that_somebody_else_has_started_is_one() -> None:
    site = a_site()
    member = site_member(site).model_copy(update={"cmd": None})
    assert placed([member], [site], {SHOP: 4}).addresses == {SHOP: (SHOP,)}


@contextmanager
def answering(location: str = "", body: str = "") -> Iterator[list[Member]]:
    """An instance of a site that answers with this; `OWN` stands for its own address, and `SITE` for its site's."""
    site, port = free_ports(2)
    names = {"SITE": f"127.0.0.1:{site}", "OWN": f"127.0.0.1:{port}", "LOCAL": f"localhost:{port}"}

    def filled(text: str) -> str:
        return reduce(lambda text_so_far, name: text_so_far.replace(*name), names.items(), text)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        content = filled(body).encode()
        redirect = f"Location: {filled(location)}\r\n" if location and b"GET / " in head else ""
        status = "302 Found" if redirect else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\n{redirect}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()
        writer.close()

    with ExitStack() as stack:
        stack.enter_context(listening(serve, port))
        entry = a_site(endpoint=f"http://{names['SITE']}", instances=[f"http://{names['OWN']}"], cmd=None)
        yield list(placed([site_member(entry)], [entry]).members)


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        ({"location": "http://OWN/home"}, "redirects"),
        ({"location": "http://LOCAL/home"}, "redirects"),
        ({"body": '<a href="http://OWN/home">Home</a>'}, "links"),
        ({"location": "/home", "body": '<script src="//OWN/app.js"></script>'}, "links"),
    ],
)
async def test_a_site_that_leads_to_its_own_port_is_named_at_the_start(answer: dict[str, str], how: str) -> None:
    with answering(**answer) as members:
        own = place_of(members[0].listens_at)
        with pytest.raises(ConfigError, match=rf"^site shop: .* {how} to {own}, an instance's own address"):
            await require_public_addresses(members)


@pytest.mark.parametrize(
    "answer",
    [
        {"location": "/home"},
        {"location": "http://SITE/home", "body": '<a href="http://SITE/">Home</a>'},
        {"location": "https://elsewhere.example/log-in"},
        {"body": "This is OWN."},
    ],
)
async def test_a_site_that_leads_to_its_public_address_or_elsewhere_is_played(answer: dict[str, str]) -> None:
    with answering(**answer) as members:
        await require_public_addresses(members)
