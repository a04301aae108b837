"""Connections that send nothing, or half a request, starve nobody else."""

import asyncio
import contextlib
import io
import logging
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from shared.a2a.connections import (
    BoundedProtocol,
    ConnectionBounds,
    Connections,
    Listener,
    connection_limit,
    descriptors_for_work,
)
from shared.a2a.serving import listen, serve_app
from shared.logs import BoundedHandler

pytestmark = pytest.mark.slow

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000001\r\n"
HALF_POST = HALF_HEAD + b"\r\n{"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Served:
    """A server whose clock stands still until a test moves it."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.clock = Clock()
        self.all = Connections(bounds, self.clock)
        self.most = 0
        self.port = 0
        self.streaming = asyncio.Event()
        self.clients: list[Client] = []

    def protocol(self, config: uvicorn.Config) -> BoundedProtocol:
        self.most = max(self.most, len(self.all.connections) + 1)
        return BoundedProtocol(config, self.all, {})

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                return
        size = 3_000_000 if scope["path"] == "/large" else 2
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"o", "more_body": True})
            await self.streaming.wait()
            await send({"type": "http.response.body", "body": b"k"})
        else:
            await send({"type": "http.response.body", "body": b"k" * size})

    async def connect(self, data: bytes, source: str = "127.0.0.1") -> "Client":
        """A client whose first bytes have been read by the server."""
        before = set(self.all.connections)
        self.clock.now += 1
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.bind((source, 0))
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
        writer.write(data)
        await until(lambda: set(self.all.connections) - before)
        ours: Any
        (ours,) = set(self.all.connections) - before
        await until(lambda: not data or ours.received or ours.cycle or ours not in self.all.connections)
        self.clients.append(Client(reader, writer, ours))
        return self.clients[-1]

    async def pass_time(self) -> None:
        """Let the clock run, much faster than it does."""
        while True:
            self.clock.now += 0.1
            await asyncio.sleep(0.001)

    async def advance(self, seconds: float) -> None:
        self.clock.now += seconds
        self.all.sweep()
        for _ in range(5):
            await asyncio.sleep(0)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ours: BoundedProtocol) -> None:
        self.reader = reader
        self.writer = writer
        self.ours = ours

    @property
    def is_open(self) -> bool:
        return not self.ours.transport.is_closing()

    async def send(self, data: bytes) -> None:
        """Send more and wait until the server has read it."""
        before = self.ours.received
        self.writer.write(data)
        await until(lambda: self.ours.received != before)

    async def answer(self) -> str:
        """The status of the next answer; empty when the connection just ends."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""
        return head.split()[1].decode()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


Open = Callable[[ConnectionBounds], Awaitable[Served]]


@pytest.fixture
async def serve() -> AsyncIterator[Open]:
    async with contextlib.AsyncExitStack() as stack:

        async def open_server(bounds: ConnectionBounds) -> Served:
            return await stack.enter_async_context(serving(bounds))

        yield open_server


@asynccontextmanager
async def serving(bounds: ConnectionBounds) -> AsyncIterator[Served]:
    served = Served(bounds)
    config = uvicorn.Config(served.app, http=BoundedProtocol, log_config=None, ws="none", interface="asgi3")
    config.load()
    sock = listen("127.0.0.1", 0)
    server = Listener(sock, served.all, lambda: served.protocol(config))
    served.port = sock.getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        await server.wait_closed()
        sock.close()
        served.streaming.set()
        for connection in list(served.all.connections):
            connection.transport.abort()
        for client in served.clients:
            client.writer.transport.abort()
        await until(lambda: not served.all.tasks)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "first", [HALF_POST, HALF_HEAD, b"", GET], ids=["half-sent posts", "half-sent heads", "silence", "idle keep-alive"]
)
async def test_a_flood_holds_no_more_than_the_limit_and_a_newcomer_is_served(serve: Open, first: bytes) -> None:
    served = await serve(ConnectionBounds(max_connections=8))
    flood = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(60)]
    for _, writer in flood:
        writer.write(first)
    passing = asyncio.create_task(served.pass_time())
    newcomer_reader, newcomer = await asyncio.open_connection("127.0.0.1", served.port)
    newcomer.write(GET)
    status = (await newcomer_reader.readline()).split()[1].decode()
    passing.cancel()
    assert status == "200"
    assert served.most <= 8
    for writer in (newcomer, *(writer for _, writer in flood)):
        writer.close()


async def test_when_all_are_being_served_a_newcomer_waits_and_is_not_refused(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=3))
    for _ in range(3):
        follower = await served.connect(b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert await follower.answer() == "200"
    reader, newcomer = await asyncio.open_connection("127.0.0.1", served.port)
    newcomer.write(GET)
    for _ in range(20):
        await asyncio.sleep(0)
    open_connections = len(served.all.connections)
    served.streaming.set()
    status = (await reader.readline()).split()[1].decode()
    assert (open_connections, status) == (3, "200")
    newcomer.close()


async def test_a_client_being_served_keeps_its_stream_through_a_flood_and_for_hours(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=4))
    follower = await served.connect(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await follower.answer() == "200"
    others = [await served.connect(HALF_POST) for _ in range(20)]
    await served.advance(20_000)
    served.streaming.set()
    received = await follower.reader.readexactly(2)
    gone = sum(not other.is_open for other in others)
    assert (received, gone) == (b"ok", 20)


@pytest.mark.parametrize(
    ("first", "drip", "closed_after_s", "message"),
    [
        (b"", b"", 10, ""),
        (HALF_HEAD, b"", 10, "408"),
        (HALF_HEAD, b"X-Slow: 1\r\n", 10, "408"),
        (HALF_POST, b"", 20, "408"),
        (HALF_POST, b" ", 20, "408"),
    ],
    ids=["silence", "half a head", "a head in drops", "half a body", "a body in drops"],
)
async def test_a_request_that_does_not_arrive_is_ended_however_it_drips(
    serve: Open, first: bytes, drip: bytes, closed_after_s: float, message: str
) -> None:
    served = await serve(ConnectionBounds(max_connections=8, head_s=10, body_s=20))
    client = await served.connect(first)
    lived = 0
    while client.is_open and lived < 100:
        if drip:
            await client.send(drip)
        await served.advance(1)
        lived += 1
    status = await client.answer()
    assert lived == closed_after_s + 1
    assert status == message


async def test_the_head_of_a_second_request_has_its_deadline_too(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=8, head_s=10))
    client = await served.connect(GET)
    assert await client.answer() == "200"
    await until(lambda: client.ours.cycle.response_complete)
    await served.advance(25)
    assert client.is_open
    await client.send(b"GET")
    await served.advance(11)
    assert not client.is_open


async def test_a_large_body_at_a_fair_rate_is_waited_for(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=8, body_s=20, body_bytes_per_s=10_000))
    client = await served.connect(HALF_POST)
    for _ in range(40):
        await client.send(b" " * 50_000)
        await served.advance(2)
        assert client.is_open
    status = await client.answer()
    assert status == "200"


async def test_an_answer_that_is_not_read_is_abandoned(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=8, stall_s=60))
    client = await served.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    await until(lambda: client.ours.flow.write_paused)
    await served.advance(1)
    await served.advance(30)
    assert client.is_open
    await served.advance(31)
    assert not client.is_open


async def test_the_address_with_the_most_idle_connections_pays_first(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=4))
    modest = await served.connect(HALF_POST, source="127.0.0.2")
    for _ in range(10):
        served.clock.now += 1
        await served.connect(HALF_POST)
    assert modest.is_open


async def test_half_sent_bodies_take_no_more_than_their_share_of_memory(serve: Open) -> None:
    served = await serve(ConnectionBounds(max_connections=8, max_pending_bytes=1_000_000))
    small, large = await served.connect(HALF_POST), await served.connect(HALF_POST)
    for _ in range(30):
        await large.send(b" " * 40_000)
    await served.advance(1)
    assert (small.is_open, large.is_open) == (True, False)


async def test_half_sent_requests_do_not_hold_up_the_end_of_the_server() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive())["type"] != "http.disconnect":
                arrived.set()

    arrived = asyncio.Event()
    sock = listen("127.0.0.1", 0)
    task = asyncio.create_task(serve_app(app, sock))
    reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    writer.write(HALF_POST)
    await arrived.wait()
    task.cancel()
    # uvicorn itself would wait for the rest of the request, for as long as it grants a graceful end.
    async with asyncio.timeout(10):
        with contextlib.suppress(asyncio.CancelledError):
            await task
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


@contextlib.contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """This process can open only so many more while the body runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as probe:
        used = probe.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_running_out_of_descriptors_fills_no_log_and_passes(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    sock = listen("127.0.0.1", 0)
    task = asyncio.create_task(serve_app(app, sock, bounds=ConnectionBounds(max_connections=100)))
    reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    writer.write(GET)
    assert b"200" in await reader.readline()
    # Connected by the kernel, not accepted yet: nothing here runs the server in between.
    waiting = [socket.create_connection(("127.0.0.1", sock.getsockname()[1])) for _ in range(40)]
    with descriptors_left(3):
        await until(lambda: any("Too many open files" in record.message for record in caplog.records))
        await asyncio.sleep(0)
    for client in waiting:
        client.setblocking(False)
    waiting[-1].send(GET)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60):
        answer = await loop.sock_recv(waiting[-1], 100)
    logged = sum("open files" in record.message or record.name == "asyncio" for record in caplog.records)
    assert 1 <= logged <= 2
    assert b"200" in answer
    for client in waiting:
        client.close()
    writer.close()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("descriptors", [256, 1024, 65_536])
def test_most_descriptors_stay_for_assessments(descriptors: int) -> None:
    connections, work = connection_limit(descriptors), descriptors_for_work(descriptors)
    assert connections + work < descriptors
    assert work >= 2 * connections


def test_a_flood_of_errors_is_logged_in_bounds_and_hides_no_other_warning() -> None:
    stream, clock = io.StringIO(), Clock()
    handler = BoundedHandler(stream, clock=clock)
    library, judge = logging.Logger("asyncio"), logging.Logger("judge.server.service")
    for logger in (library, judge):
        logger.addHandler(handler)
    for number in range(20_000):
        library.error("socket.accept() out of system resource")
        library.error("a traceback of a kilobyte, number %d: %s", number, "x" * 1_000)
    judge.warning("the disk is full")
    for number in range(5_000):
        judge.info("step %d", number)
    clock.now += 61
    library.error("socket.accept() out of system resource")
    log_text = stream.getvalue()
    assert len(log_text) < 200_000
    assert log_text.count("out of system resource") == 4
    assert "the disk is full" in log_text
    assert log_text.count("step ") == 5_000
    assert "log records were dropped" in log_text
