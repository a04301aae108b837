"""Interception by the guard, over real sockets: with TLS and without, requests, streams and web sockets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from helpers.network.interceptors import Answering, PassingOn, answer
from judge.network.guard import Guard, guarding
from judge.network.intercepting import intercepted
from judge.network.interception import Interceptor, RequestFailed, SocketClose, SocketMessage, WireAnswer, WireRequest
from judge.network.policy import NetworkPolicy
from judge.network.tls import Authority

AUTHORITY = Authority()


class Site:
    """A server on loopback, with TLS under the test's own authority or without."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self.requests: list[bytes] = []
        self.port = 0
        self.next_event = asyncio.Event()
        self.ended = asyncio.Event()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            self.requests.append(head + await reader.readexactly(sum(lengths)))
            await self._answer(head.split(b" ")[1], reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, path: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chunked = b"HTTP/1.1 200 OK\r\nX-Case: Kept\r\nTransfer-Encoding: chunked\r\n\r\n"
        if path == b"/stream":
            writer.write(chunked + b"5\r\none\n\n\r\n")
            await self.next_event.wait()
            writer.write(b"5\r\ntwo\n\n\r\n0\r\n\r\n")
        elif path == b"/endless":
            writer.write(chunked + b"5\r\none\n\n\r\n")
            await reader.read()
            self.ended.set()
        elif path == b"/broken":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        elif path == b"/large":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000)
        elif path != b"/silent":
            writer.write(
                b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 Fine\r\nX-Case: Kept\r\nContent-Length: 5\r\n\r\n"
            )
            writer.write(b"" if self.requests[-1].startswith(b"HEAD") else b"hello")
        await writer.drain()


@pytest.fixture(scope="module")
def site_authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(params=["http", "https"])
async def site(request: pytest.FixtureRequest, site_authority: Authority) -> AsyncIterator[Site]:
    site = Site(request.param)
    context = site_authority.context("127.0.0.1") if site.scheme == "https" else None
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate.decode())


class Setting:
    """A guard with an interceptor, and clients that trust the guard's authority."""

    def __init__(self, guard: Guard, authority: Authority, trust: ssl.SSLContext) -> None:
        self.guard = guard
        self.authority = authority
        self.trust = trust
        self.browser = httpx.AsyncClient(proxy=guard.url, trust_env=False, timeout=60, verify=trusting(authority))

    def intercept(self, interceptor: Interceptor, *sites: str) -> None:
        policy = NetworkPolicy.for_websites(sites)
        self.guard.allow(policy, intercepted(self.guard, interceptor, self.authority, self.trust))

    async def open_socket(self, url: str) -> ClientConnection:
        context = trusting(self.authority) if url.startswith("wss") else None
        return await connect(url, proxy=self.guard.url, ssl=context, compression="deflate")


@pytest.fixture
async def setting(authority: Authority, site_authority: Authority) -> AsyncIterator[Setting]:
    async with guarding(None, max_body_bytes=1000) as guard:
        setting = Setting(guard, authority, trusting(site_authority))
        async with setting.browser:
            yield setting


async def test_a_request_is_passed_on_byte_for_byte_and_its_answer_comes_back(site: Site, setting: Setting) -> None:
    interceptor = PassingOn()
    setting.intercept(interceptor, site.url("/"))
    setting.guard.begin_step(3)
    url = site.url("//two//slashes?")
    response = await setting.browser.post(url, content=b"body", headers=[(b"X-MiXed", b"\xf6")])
    assert (response.text, response.status_code, response.reason_phrase) == ("hello", 200, "Fine")
    assert (b"X-Case", b"Kept") in response.headers.raw
    assert site.requests[0].startswith(b"POST //two//slashes? HTTP/1.1\r\n")
    assert b"X-MiXed: \xf6\r\n" in site.requests[0]
    assert site.requests[0].endswith(b"\r\n\r\nbody")
    (request,) = interceptor.requests
    assert (request.method, request.url, request.body, request.step) == ("POST", url, b"body", 3)
    assert ("X-MiXed", "ö") in request.headers


@pytest.mark.parametrize(
    ("methods", "closes", "connections"),
    [
        (["GET", "GET", "OPTIONS"], False, 1),
        (["GET", "POST", "GET"], False, 2),
        # The site closes what is idle, or says that it has waited too long.
        (["GET", "GET", "GET"], True, 3),
    ],
)
async def test_reading_requests_share_a_connection_to_the_site(
    methods: list[str], closes: bool, connections: int, setting: Setting
) -> None:
    opened = 0

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                await writer.drain()
                if b"connection: close" in head.lower():
                    break
                if closes:
                    writer.write(b"HTTP/1.1 408 Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    break
        writer.close()

    server = await asyncio.start_server(answer_all, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        setting.intercept(PassingOn(), url)
        for method in methods:
            assert (await setting.browser.request(method, url)).text == "hi"
    assert opened == connections


async def test_a_kept_connection_is_not_used_once_the_policy_forbids_the_site(setting: Setting) -> None:
    closed = asyncio.Event()

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        closed.set()
        writer.close()

    server = await asyncio.start_server(answer_all, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        setting.intercept(PassingOn(), url)
        assert (await setting.browser.get(url)).text == "hi"
        setting.guard.allow(NetworkPolicy.for_websites(["http://127.0.0.2:9/"]))
        assert (await setting.browser.get(url)).status_code == 403
        async with asyncio.timeout(60):
            await closed.wait()


async def test_one_connection_of_the_browser_serves_many_requests(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    for method in ("GET", "HEAD", "POST"):
        response = await setting.browser.request(method, site.url("/"))
        assert response.headers["content-length"] == "5"
    assert len(site.requests) == 3


async def test_a_request_goes_to_its_address_regardless_of_its_host_header(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    await setting.browser.get(site.url("/"), headers={"Host": "metadata.google.internal"})
    assert f"host: 127.0.0.1:{site.port}\r\n".encode() in site.requests[0].lower()
    assert b"metadata" not in site.requests[0]


async def test_an_event_stream_arrives_while_it_lasts(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    async with setting.browser.stream("GET", site.url("/stream")) as stream:
        events = stream.aiter_bytes()
        assert await anext(events) == b"one\n\n"
        site.next_event.set()
        assert await anext(events) == b"two\n\n"
        assert [piece async for piece in events] == []


async def test_a_stream_that_the_page_gives_up_ends_at_the_site(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    async with setting.browser.stream("GET", site.url("/endless")) as stream:
        assert await anext(stream.aiter_bytes()) == b"one\n\n"
    async with asyncio.timeout(60):
        await site.ended.wait()


async def test_without_an_upstream_everything_is_answered_and_nothing_dialled(
    site: Site, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dial(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(setting.guard, "dial", dial)
    interceptor = Answering(lambda request: answer(request.url))
    setting.intercept(interceptor, site.url("/"))
    for url in (site.url("/a"), site.url("/b?c", host="shop.example"), f"{site.scheme}://never.registered/x"):
        assert (await setting.browser.get(url)).text == url
    assert (interceptor.upstreams, site.requests) == ([None] * 3, [])


async def test_an_address_outside_the_assessments_reach_is_refused_and_noted(site: Site, setting: Setting) -> None:
    interceptor = PassingOn()
    setting.intercept(interceptor, "https://shop.example/")
    assert (await setting.browser.get(site.url("/"))).status_code == 403
    assert setting.guard.take_refusals() == (f"127.0.0.1:{site.port}: this machine",)
    assert (site.requests, interceptor.failures) == ([], [f"127.0.0.1:{site.port}: this machine"])


@pytest.mark.parametrize("path", ["/silent", "/broken", "/large"])
async def test_an_answer_that_breaks_off_or_is_too_large_is_a_failed_load(
    site: Site, setting: Setting, path: str
) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    with pytest.raises(httpx.RemoteProtocolError):
        await setting.browser.get(site.url(path))


async def test_a_failure_is_not_an_answer_and_is_not_retried(site: Site, setting: Setting) -> None:
    def fail(request: WireRequest) -> WireAnswer:
        raise RequestFailed("recorded as a failure")

    interceptor = Answering(fail)
    setting.intercept(interceptor, site.url("/"))
    with pytest.raises(httpx.RemoteProtocolError, match="Content-Length"):
        await setting.browser.get(site.url("/"))
    assert len(interceptor.requests) == 1


async def test_an_error_of_the_interceptor_fails_one_load_and_is_logged(
    site: Site, setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(request: WireRequest) -> WireAnswer:
        if request.url.endswith("/odd"):
            raise ValueError("odd")
        return answer("fine")

    setting.intercept(Answering(stumble), site.url("/"))
    with pytest.raises(httpx.RemoteProtocolError):
        await setting.browser.get(site.url("/odd"))
    assert (await setting.browser.get(site.url("/"))).text == "fine"
    assert [record.levelname for record in caplog.records if record.name.startswith("judge")] == ["ERROR"]


async def test_a_header_that_cannot_be_sent_is_a_failed_load(site: Site, setting: Setting) -> None:
    setting.intercept(Answering(lambda _: answer("fine", "text/html", ("X-Split", "a\r\nb"))), site.url("/"))
    with pytest.raises(httpx.RemoteProtocolError):
        await setting.browser.get(site.url("/"))


async def test_a_request_body_that_is_too_large_is_not_read(site: Site, setting: Setting) -> None:
    interceptor = Answering(lambda _: answer("fine"))
    setting.intercept(interceptor, site.url("/"))
    with pytest.raises(httpx.TransportError):
        await setting.browser.post(site.url("/"), content=b"x" * 1001)
    assert interceptor.requests == []


async def test_an_answer_without_a_length_is_sent_in_chunks(site: Site, setting: Setting) -> None:
    setting.intercept(Answering(lambda _: WireAnswer(200, "OK", (), b"hello")), site.url("/"))
    response = await setting.browser.get(site.url("/"))
    assert (response.text, response.headers.get("content-length")) == ("hello", None)


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_keep_their_headers(site: Site, setting: Setting, status: int) -> None:
    headers = (("ETag", '"1"'), ("Content-Length", "77")) if status == 304 else (("ETag", '"1"'),)
    setting.intercept(Answering(lambda _: WireAnswer(status, "", headers, b"ignored")), site.url("/"))
    for _ in range(2):
        response = await setting.browser.get(site.url("/"))
        assert (response.status_code, response.headers["etag"], response.content) == (status, '"1"', b"")


async def test_the_steps_of_one_task_do_not_reach_the_next(site: Site, setting: Setting) -> None:
    interceptor = Answering(lambda _: answer("fine"))
    for _ in range(2):
        await setting.guard.shut()
        setting.intercept(interceptor, site.url("/"))
        await setting.browser.get(site.url("/"))
        setting.guard.begin_step(1)
        await setting.browser.get(site.url("/"))
    assert [request.step for request in interceptor.requests] == [0, 1, 0, 1]


async def test_a_certificate_that_the_system_does_not_trust_is_a_failed_load(
    authority: Authority, site_authority: Authority
) -> None:
    site = Site("https")
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=site_authority.context("127.0.0.1"))
    site.port = server.sockets[0].getsockname()[1]
    async with server, guarding(None) as guard:
        setting = Setting(guard, authority, ssl.create_default_context())
        interceptor = PassingOn()
        setting.intercept(interceptor, site.url("/"))
        async with setting.browser as browser:
            with pytest.raises(httpx.RemoteProtocolError):
                await browser.get(site.url("/"))
        assert "CERTIFICATE_VERIFY_FAILED" in interceptor.failures[0]
        assert isinstance(guard.failure_at(site.url("/")), ssl.SSLCertVerificationError)


@pytest.fixture(params=["ws", "wss"])
async def socket_url(request: pytest.FixtureRequest, site_authority: Authority) -> AsyncIterator[str]:
    async def echo(page: ServerConnection) -> None:
        async for message in page:
            if message == "close":
                await page.close(4001, "asked to")
            elif message == "ping":
                await (await page.ping())
                await page.send("pong")
            elif message == "fragments":
                await page.send(["frag", "ments"])
            else:
                await page.send(message)

    context = site_authority.context("127.0.0.1") if request.param == "wss" else None
    async with serve(echo, "127.0.0.1", 0, ssl=context, subprotocols=None) as server:
        yield f"{request.param}://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/live?a=b"


async def test_a_socket_is_passed_on(setting: Setting, socket_url: str) -> None:
    interceptor = PassingOn()
    setting.intercept(interceptor, socket_url.replace("ws", "http", 1))
    async with await setting.open_socket(socket_url) as page:
        for message in ("text", b"\x00bytes", "ping"):
            await page.send(message)
        assert [await page.recv() for _ in range(3)] == ["text", b"\x00bytes", "pong"]
        setting.guard.begin_step(2)
        await page.send(["in ", "pieces"])
        await page.send("fragments")
        assert [await page.recv() for _ in range(2)] == ["in pieces", "fragments"]
        await page.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            await page.recv()
    assert closed.value.rcvd
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "asked to")
    assert [each.url for each in interceptor.requests] == [socket_url]
    messages = [each for each in interceptor.messages if isinstance(each, SocketMessage)]
    assert [(each.step, each.data) for each in messages if each.is_from_page] == [
        (0, b"text"),
        (0, b"\x00bytes"),
        (0, b"ping"),
        (2, b"in pieces"),
        (2, b"fragments"),
        (2, b"close"),
    ]
    received = [each.data for each in messages if not each.is_from_page]
    assert received == [b"text", b"\x00bytes", b"pong", b"in pieces", b"fragments"]
    ends = [(each.is_from_page, each.code) for each in interceptor.messages if isinstance(each, SocketClose)]
    assert ends[0] == (False, 4001)


async def test_a_socket_is_answered_without_a_site(setting: Setting) -> None:
    interceptor = Answering(lambda _: answer(""))
    setting.intercept(interceptor)
    for scheme in ("ws", "wss"):
        async with await setting.open_socket(f"{scheme}://shop.example/live") as page:
            await page.send("hello")
            assert await page.recv() == "HELLO"
            await page.close(4002, "enough")
    assert [(each.is_from_page, each.code, each.reason) for each in interceptor.closed] == [(True, 4002, "enough")] * 2
    assert [each.url for each in interceptor.requests] == ["ws://shop.example/live", "wss://shop.example/live"]


async def test_a_socket_that_the_site_refuses_is_refused(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    with pytest.raises(InvalidStatus) as refused:
        await setting.open_socket(site.url("/").replace("http", "ws", 1))
    assert (refused.value.response.status_code, refused.value.response.body) == (200, b"hello")


async def test_a_message_that_is_too_large_closes_the_socket(setting: Setting) -> None:
    setting.intercept(Answering(lambda _: answer("")))
    async with await setting.open_socket("ws://shop.example/live") as page:
        await page.send("x" * 2000)
        with pytest.raises(ConnectionClosed):
            await page.recv()


@given(
    st.sampled_from([b"", b"CONNECT shop.example:443 HTTP/1.1\r\n\r\n", b"GET http://shop.example/ HTTP/1.1\r\n"]),
    st.binary(max_size=300),
)
def test_any_bytes_end_one_connection_only(first: bytes, data: bytes) -> None:
    async def bytes_from_browser() -> bytes:
        async with guarding(NetworkPolicy(), max_body_bytes=1000) as guard:
            guard.allow(NetworkPolicy(), intercepted(guard, Answering(lambda _: answer("fine")), AUTHORITY))
            reader, writer = await asyncio.open_connection("127.0.0.1", guard.port)
            with contextlib.suppress(OSError):
                writer.write(first + data)
                writer.write_eof()
                await reader.read()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            async with httpx.AsyncClient(proxy=guard.url, trust_env=False, verify=trusting(AUTHORITY)) as client:
                return (await client.get("https://shop.example/")).content

    assert asyncio.run(bytes_from_browser()) == b"fine"


@pytest.mark.parametrize("target", ["", ":443", "[::1:443", "ü.example:443", "shop.example:99999", "/"])
async def test_a_tunnel_to_no_address_is_refused(setting: Setting, target: str) -> None:
    setting.intercept(Answering(lambda _: answer("fine")))
    reader, writer = await asyncio.open_connection("127.0.0.1", setting.guard.port)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert b" 200 " not in await reader.read()
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        (b"", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        # A TURN client, whose connection the browser opens through the proxy as well.
        (b"\x00\x03\x00\x08\x21\x12\xa4\x42" + b"x" * 12, False),
        (b"GET / HTTP/1.1\r\nHost", False),
        (b"GET http://elsewhere/ HTTP/1.1\r\nHost: a\r\n\r\n", False),
        (b"GET /" + b"x" * 100_000, False),
        (b"\x16\x03\x01\x00\x05hello", False),
    ],
    ids=["nothing", "a request", "not HTTP", "half a head", "another address", "a head that is too long", "odd TLS"],
)
async def test_a_connection_that_cannot_be_read_is_recorded_and_never_passed_on(
    setting: Setting, data: bytes, is_read: bool
) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        setting.intercept(PassingOn(), f"http://127.0.0.1:{port}/")
        setting.guard.begin_step(2)
        reader, writer = await asyncio.open_connection("127.0.0.1", setting.guard.port)
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        if not data.endswith(b"a\r\n\r\n"):
            writer.write_eof()
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
    wire = setting.guard.wire
    assert wire is not None
    results = [(each.place, each.step, each.count) for each in wire.unread()]
    assert results == ([] if is_read else [(f"127.0.0.1:{port}", 2, 1)])
    assert len(requests) == (data.endswith(b"a\r\n\r\n") and is_read)


async def test_a_request_whose_body_is_too_large_is_recorded_without_it(site: Site, setting: Setting) -> None:
    setting.intercept(PassingOn(), site.url("/"))
    with contextlib.suppress(httpx.HTTPError):
        await setting.browser.post(site.url("/save"), content=b"x" * 2_000)
    wire = setting.guard.wire
    assert wire is not None
    (exchange,) = wire.exchanges()
    assert (exchange.method, exchange.url, exchange.body, exchange.size) == ("POST", site.url("/save"), None, 2_000)
    assert site.requests == []
