"""The guard proxy, over real sockets."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from judge.network import policy
from judge.network.guard import Guard, guarding, is_this_machine
from judge.network.policy import NetworkPolicy


class Site:
    """A plain HTTP server on loopback that remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.port = 0
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            self.requests.append(head + await reader.readexactly(sum(lengths)))
            writer.write(self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # a tunnel that was opened and closed, or a reader that had enough
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site


@pytest.fixture
async def guard(site: Site) -> AsyncIterator[Guard]:
    async with guarding(NetworkPolicy.for_websites([f"http://127.0.0.1:{site.port}/"]), max_body_bytes=1000) as guard:
        yield guard


@pytest.fixture
async def browser(guard: Guard) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=60) as client:
        yield client


async def test_the_tasks_own_site_is_reached(site: Site, browser: httpx.AsyncClient) -> None:
    response = await browser.post(f"http://127.0.0.1:{site.port}/a?b=c", content=b"body")
    assert response.text == "hello"
    assert site.requests[0].startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert site.requests[0].endswith(b"body")


async def test_one_connection_of_the_browser_serves_many_requests(site: Site, browser: httpx.AsyncClient) -> None:
    for _ in range(3):
        assert (await browser.get(f"http://127.0.0.1:{site.port}/")).text == "hello"
    assert len(site.requests) == 3


@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "0", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]", "127.0.0.2"]
)
async def test_other_spellings_of_this_machine_are_refused_and_recorded(
    site: Site, guard: Guard, browser: httpx.AsyncClient, host: str
) -> None:
    response = await browser.get(f"http://{host}:{site.port}/")
    assert response.status_code == 403
    assert site.requests == []
    assert len(guard.take_refusals()) == 1
    assert guard.take_refusals() == ()


async def test_another_port_of_the_sites_host_is_refused(guard: Guard, browser: httpx.AsyncClient) -> None:
    assert (await browser.get("http://127.0.0.1:9009/")).status_code == 403
    assert guard.take_refusals() == ("127.0.0.1:9009: this machine",)


async def test_a_request_is_for_the_host_of_its_address_regardless_of_its_header(
    site: Site, browser: httpx.AsyncClient
) -> None:
    await browser.get(f"http://127.0.0.1:{site.port}/", headers={"Host": "metadata.google.internal"})
    assert f"host: 127.0.0.1:{site.port}\r\n".encode() in site.requests[0].lower()
    assert b"metadata" not in site.requests[0]


@pytest.mark.parametrize("path", ["/", "//two//slashes", "/empty?", "/a;b?c=//d", "/?http://x/"])
async def test_a_path_is_passed_on_byte_for_byte(site: Site, guard: Guard, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    writer.write(f"GET http://127.0.0.1:{site.port}{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readuntil(b"hello")
    writer.close()
    assert site.requests[0].startswith(f"GET {path} HTTP/1.1\r\n".encode())


async def test_this_machine_is_refused_also_under_an_address_that_counts_as_public(
    guard: Guard, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a machine of a cloud that has its public address itself: the guard's own port is one of this machine's.
    monkeypatch.setattr(policy, "refuse_ip", lambda _: None)
    response = await browser.get(f"http://127.0.0.1:{guard.port}/")
    assert response.status_code == 403
    assert guard.take_refusals() == (f"127.0.0.1:{guard.port}: this machine",)


@pytest.mark.parametrize(
    ("address", "is_ours"), [("127.0.0.1", True), ("192.0.2.1", False), ("2001:db8::1", False), ("fe80::1%x", False)]
)
def test_the_machines_own_addresses_are_recognised(address: str, is_ours: bool) -> None:
    assert is_this_machine(address) is is_ours


async def test_look_ups_without_an_answer_do_not_hold_up_other_browsers(
    site: Site, guard: Guard, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, released = socket.getaddrinfo, threading.Event()

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if str(host).startswith("silent"):
            released.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with guarding(NetworkPolicy()) as another:
        requests = [asyncio.create_task(connect(another, f"silent{number}.example:443")) for number in range(64)]
        try:
            async with asyncio.timeout(60):
                assert (await browser.get(f"http://127.0.0.1:{site.port}/")).text == "hello"
        finally:
            released.set()
            await asyncio.gather(*requests)


async def connect(guard: Guard, target: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return status


async def test_a_tunnel_leads_to_the_own_site_and_nowhere_else(site: Site, guard: Guard) -> None:
    assert b" 200 " in await connect(guard, f"127.0.0.1:{site.port}")
    assert b" 403 " in await connect(guard, f"localhost:{site.port}")
    assert b" 403 " in await connect(guard, "169.254.169.254:80")
    assert b" 403 " in await connect(guard, "metadata.google.internal:80")


async def test_bytes_pass_through_a_tunnel_both_ways(site: Site, guard: Guard) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    writer.write(f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"GET /through HTTP/1.1\r\n\r\n")
    assert (await reader.read()).endswith(b"hello")
    assert site.requests[0].startswith(b"GET /through")
    writer.close()


async def test_an_endless_download_is_cut_off(site: Site, browser: httpx.AsyncClient) -> None:
    site.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    with pytest.raises(httpx.RemoteProtocolError):
        await browser.get(f"http://127.0.0.1:{site.port}/")


async def test_a_dead_site_closes_the_connection_and_is_not_a_refusal(guard: Guard) -> None:
    async with guarding(NetworkPolicy.for_websites(["http://127.0.0.1:1/"])) as own:
        async with httpx.AsyncClient(proxy=own.url, trust_env=False, timeout=60) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get("http://127.0.0.1:1/")
        assert own.take_refusals() == ()
        failure = own.failure_at("http://127.0.0.1:1/page")
        assert isinstance(failure, ConnectionRefusedError)
        own.allow(None)
        assert own.failure_at("http://127.0.0.1:1/page") is None


@pytest.mark.parametrize(
    "junk", [b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 100_000, b"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n"]
)
async def test_junk_is_answered_or_cut_off_and_the_guard_keeps_running(site: Site, guard: Guard, junk: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    writer.write(junk)
    writer.write_eof()
    await reader.read()
    writer.close()
    assert b" 200 " in await connect(guard, f"127.0.0.1:{site.port}")


async def test_a_guard_without_a_task_lets_nothing_through_and_reports_nothing_of_it_to_the_next_task(
    site: Site, guard: Guard
) -> None:
    own = NetworkPolicy.for_websites([f"http://127.0.0.1:{site.port}/"])
    tunnel, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    writer.write(f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await tunnel.readuntil(b"\r\n\r\n")
    await connect(guard, "127.0.0.1:1")
    await guard.shut()
    assert await tunnel.read() == b"", "the connection of the last task has ended"
    writer.close()
    refused, writer = await asyncio.open_connection("127.0.0.1", guard.port)
    assert await refused.read() == b""
    writer.close()
    guard.allow(own)
    assert guard.take_refusals() == ()
    assert b" 200 " in await connect(guard, f"127.0.0.1:{site.port}")
    guard.allow(NetworkPolicy())
    assert b" 403 " in await connect(guard, f"127.0.0.1:{site.port}")
