"""What a browser under assessment may reach."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.policy import NetworkPolicy, refuse_ip
from judge.records.sites import HostPort, place_of


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.10", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00:ec2::254",
        "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:100::",
        "2001:0:4136:e378:8000:63bf:f5ff:fffe", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1",
        "5f00::1", "3fff::1", "192.0.0.192", "192.88.99.1", "100.100.100.200", "168.63.129.16", "not an address",
    ],
)  # fmt: skip
def test_an_address_that_is_not_on_the_public_internet_is_refused(address: str) -> None:
    assert refuse_ip(address) is not None


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert refuse_ip(address) is None


@given(st.ip_addresses())
def test_every_allowed_address_is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    assert refuse_ip(str(address)) is not None or (inner or address).is_global


def test_the_tasks_own_site_is_allowed_by_exact_host_and_port() -> None:
    policy = NetworkPolicy.for_websites(["http://127.0.0.1:9180/", "https://shop.test"])
    assert policy.refuse_address(HostPort(host="127.0.0.1", port=9180), "127.0.0.1") is None
    assert policy.refuse_address(HostPort(host="127.0.0.1", port=9009), "127.0.0.1") == "this machine"
    assert policy.refuse_address(HostPort(host="localhost", port=9180), "127.0.0.1") == "this machine"
    assert policy.refuse_address(HostPort(host="shop.test", port=443), "10.0.0.1") is None
    assert policy.refuse_address(HostPort(host="shop.test", port=80), "10.0.0.1") == "a private network"


@pytest.mark.parametrize(
    ("website", "address"),
    [
        ("http://127.0.0.1:9009/", "127.0.0.1"),
        ("http://localhost:9009/", "127.0.0.1"),
        ("http://127.0.0.2:9009/", "127.0.0.2"),
        ("http://[::1]:9009/", "::1"),
        ("http://agent.test:9019/", "10.0.0.7"),
        ("http://elsewhere.test:9019/", "203.0.113.9"),
    ],
)
def test_the_assessments_own_servers_are_out_of_reach_also_as_a_tasks_website(website: str, address: str) -> None:
    closed = ["http://0.0.0.0:9009/", "http://agent.test:9019/", "http://203.0.113.9:9019/"]
    policy = NetworkPolicy.for_websites([website, "http://127.0.0.1:9180/"], closed=closed)
    place = place_of(website)
    assert place is not None
    refused = policy.refuse_name(place) or policy.refuse_address(place, address)
    assert refused == "a server of the assessment itself"
    assert policy.refuse_address(HostPort(host="127.0.0.1", port=9180), "127.0.0.1") is None


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "::ffff:a9fe:a9fe"]
)
def test_a_metadata_service_is_out_of_reach_also_as_the_tasks_own_site(address: str) -> None:
    policy = NetworkPolicy.for_websites(["http://shop.test/", "http://metadata.google.internal/"])
    assert policy.refuse_address(HostPort(host="shop.test", port=80), address) is not None
    assert policy.refuse_name(HostPort(host="metadata.google.internal", port=80)) == "a metadata service"


def test_a_metadata_service_is_not_even_looked_up() -> None:
    assert NetworkPolicy().refuse_name(HostPort(host="metadata.google.internal", port=80)) == "a metadata service"
