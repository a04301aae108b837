import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from judge.scenario.site_check import unreachable


class Site:
    """An HTTP server on loopback that counts the requests and how many are open at once."""

    def __init__(self, status: str = "200 OK", *, answers: bool = True) -> None:
        self.status = status
        self.answers = answers
        self.requests = 0
        self.open = 0
        self.most = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if not self.answers:
                # Silent until the client hangs up.
                await reader.read()
            writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def served() -> AsyncIterator[tuple[Site, int]]:
    site = Site()
    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    yield site, server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_a_site_that_answers_is_reachable_and_asked_once(served: tuple[Site, int]) -> None:
    site, port = served
    assert await unreachable([f"http://127.0.0.1:{port}/a", f"http://127.0.0.1:{port}/b"]) == {}
    assert site.requests == 1


@pytest.mark.parametrize("status", ["403 Forbidden", "500 Oops"])
async def test_any_answer_means_that_the_host_is_there(served: tuple[Site, int], status: str) -> None:
    site, port = served
    site.status = status
    assert await unreachable([f"http://127.0.0.1:{port}/"]) == {}


async def test_a_host_that_refuses_is_named_with_the_reason() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        lost = await unreachable([f"{host}/page"])
    assert list(lost) == [host]
    assert lost[host]


async def test_a_host_that_hangs_is_given_up(served: tuple[Site, int]) -> None:
    site, port = served
    site.answers = False
    assert list(await unreachable([f"http://127.0.0.1:{port}/"], timeout_s=0.2)) == [f"http://127.0.0.1:{port}"]


async def test_no_more_hosts_are_asked_at_once_than_allowed(served: tuple[Site, int]) -> None:
    site, port = served
    site.answers = False
    hosts = [f"http://127.0.0.{n}:{port}/" for n in range(1, 7)]
    servers = [await asyncio.start_server(site.handle, f"127.0.0.{n}", port) for n in range(2, 7)]
    try:
        await unreachable(hosts, at_once=2, timeout_s=0.2)
    finally:
        for server in servers:
            server.close()
    assert site.most == 2
