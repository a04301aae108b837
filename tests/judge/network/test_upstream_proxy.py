"""The operator's own proxy, through which the guard connects."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from helpers.proxies import PASSWORD, REAL, FakeProxy, fake_proxy, real_proxy
from judge.config import RunConfig
from judge.network.guard import Guard, guarding
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy, require_upstream
from shared.errors import ConfigError

BOTH = pytest.mark.parametrize("scheme", ["http", "socks5"])


@asynccontextmanager
async def site_on_loopback() -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def guarded(url: str, *own: str, resolves: bool = False) -> AsyncIterator[tuple[Guard, httpx.AsyncClient]]:
    upstream = UpstreamProxy.of(RunConfig(upstream_proxy=url, upstream_resolves=resolves))
    async with AsyncExitStack() as stack:
        guard = await stack.enter_async_context(guarding(NetworkPolicy.for_websites(own), upstream=upstream))
        client = httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=60)
        yield guard, await stack.enter_async_context(client)


@BOTH
async def test_a_site_is_reached_through_the_proxy_by_its_resolved_address(scheme: str) -> None:
    async with site_on_loopback() as port, fake_proxy(scheme) as proxy:
        url = f"http://localhost:{port}/"
        async with guarded(proxy.url(scheme), url) as (_, browser):
            assert (await browser.get(url)).text == "hello"
        assert proxy.targets[-1] == ("127.0.0.1", port)


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "10.0.0.1", "169.254.169.254", "[::1]"])
@pytest.mark.parametrize("resolves", [False, True])
async def test_a_private_address_is_refused_and_the_proxy_is_not_asked(
    scheme: str, host: str, *, resolves: bool
) -> None:
    async with (
        fake_proxy(scheme) as proxy,
        guarded(proxy.url(scheme), "http://shop.example/", resolves=resolves) as (guard, browser),
    ):
        assert (await browser.get(f"http://{host}:81/")).status_code == 403
        assert guard.take_refusals()
        assert proxy.targets == []


@BOTH
async def test_a_proxy_that_resolves_names_is_given_them(scheme: str) -> None:
    async with site_on_loopback() as port, fake_proxy(scheme) as proxy:
        proxy.hosts["shop.invalid"] = "127.0.0.1"
        async with guarded(proxy.url(scheme), resolves=True) as (_, browser):
            assert (await browser.get(f"http://shop.invalid:{port}/")).text == "hello"
        assert proxy.targets == [("shop.invalid", port)]


@BOTH
async def test_a_wrong_password_is_a_problem_of_the_proxy_that_names_it_without_the_password(scheme: str) -> None:
    async with fake_proxy(scheme) as proxy:
        config = RunConfig(upstream_proxy=proxy.url(scheme, "wrong-passw0rd"))
        with pytest.raises(ConfigError, match="does not accept the user name and password") as raised:
            await require_upstream(config)
        assert f"{scheme}://127.0.0.1:{proxy.port}" in str(raised.value)
        assert "wrong-passw0rd" not in str(raised.value)


@BOTH
async def test_a_proxy_that_is_not_there_is_named_before_the_run(scheme: str, unused_tcp_port: int) -> None:
    with pytest.raises(ConfigError, match=r"the proxy .* cannot be reached"):
        await require_upstream(RunConfig(upstream_proxy=f"{scheme}://127.0.0.1:{unused_tcp_port}"))


@BOTH
async def test_a_sound_proxy_is_not_a_problem(scheme: str) -> None:
    async with fake_proxy(scheme) as proxy:
        await require_upstream(RunConfig(upstream_proxy=proxy.url(scheme)))


@BOTH
async def test_a_proxy_that_ends_midway_is_a_problem_of_the_proxy(scheme: str) -> None:
    async with AsyncExitStack() as stack, site_on_loopback() as port:
        proxy: FakeProxy = await stack.enter_async_context(fake_proxy(scheme))
        url = f"http://127.0.0.1:{port}/"
        async with guarded(proxy.url(scheme), url) as (guard, browser):
            assert (await browser.get(url)).text == "hello"
            assert await guard.upstream_problem() is None
            await stack.aclose()
            with pytest.raises(httpx.TransportError):
                await browser.get(url)
            assert await guard.upstream_problem() == f"the proxy {scheme}://127.0.0.1:{proxy.port} cannot be reached"


@BOTH
async def test_a_site_that_the_proxy_refuses_is_not_a_problem_of_the_proxy(scheme: str) -> None:
    async with fake_proxy(scheme) as proxy, site_on_loopback() as port:
        proxy.refuses = True
        url = f"http://127.0.0.1:{port}/"
        async with guarded(proxy.url(scheme), url) as (guard, browser):
            with pytest.raises(httpx.TransportError):
                await browser.get(url)
            assert await guard.upstream_problem() is None


@pytest.mark.parametrize("program", REAL)
async def test_a_real_proxy_with_a_password_is_used(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (apt-get install {program})")
    async with real_proxy(program, tmp_path) as address, site_on_loopback() as port:
        await require_upstream(RunConfig(upstream_proxy=address))
        with pytest.raises(ConfigError, match="does not accept the user name and password"):
            await require_upstream(RunConfig(upstream_proxy=address.replace(PASSWORD, "another")))
        url = f"http://127.0.0.1:{port}/"
        async with guarded(address, url) as (_, browser):
            assert (await browser.get(url)).text == "hello"


def test_a_variable_that_was_not_resolved_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.upstream_proxy: a variable"):
        UpstreamProxy.of(RunConfig(upstream_proxy="${PROXY}"))


def test_of_the_proxy_only_its_scheme_host_and_port_are_recorded_or_shown() -> None:
    config = RunConfig(upstream_proxy="socks5://token-1234:hunter22@proxy.example:1080")
    assert config.recorded()["upstream_proxy"] == "socks5://proxy.example:1080"
    for text in (repr(config), str(config.recorded()), repr(UpstreamProxy.of(config))):
        assert "hunter22" not in text
        assert "token-1234" not in text


@pytest.mark.parametrize(
    "wrong", ["ftp://u:hunter22@h:1", "http://u:hunter22@h", "http://u:hunter22@h:99999", "hunter22"]
)
def test_what_is_not_a_proxy_is_refused_without_showing_it(wrong: str) -> None:
    with pytest.raises(ValueError, match="not the address of") as raised:
        RunConfig(upstream_proxy=wrong)
    assert "hunter22" not in str(raised.value).split("input_value")[0]
