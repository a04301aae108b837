"""The guard: a filtering HTTP proxy on loopback, the browser's only way to the network.

It enforces `judge.sites` below the page: redirects, frames, scripts and sockets all pass here. Plain requests
are forwarded one per upstream connection (h11 keeps the framing right); CONNECT is tunnelled for TLS and WebSockets.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import h11

from judge.sites import NetworkPolicy, Place, place_of, refuse_ip

_CHUNK = 65_536
_DIAL_TIMEOUT_S = 15.0
_IDLE_TIMEOUT_S = 300.0
_MAX_CONNECTIONS = 512
_LOOKUPS_AT_ONCE = 8
_HOP_BY_HOP = {b"connection", b"proxy-connection", b"keep-alive", b"te", b"upgrade", b"proxy-authorization"}
_NOT_PASSED_ON = _HOP_BY_HOP | {b"host"}
_REFUSAL = b"<!doctype html><title>Blocked</title><p>This address is outside the assessment's reach."


class Refused(Exception):
    """The policy says no; the text says why."""


class Guard:
    """One running proxy. `refusals` holds what was refused since it was last taken, bounded."""

    def __init__(self, policy: NetworkPolicy, max_response_bytes: int) -> None:
        self._policy = policy
        self._max_bytes = max_response_bytes
        self._refusals: list[str] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._seen_public: set[Place] = set()
        # Of its own: a page that asks for many names which nobody answers for must not hold up other browsers.
        self._resolver = ThreadPoolExecutor(_LOOKUPS_AT_ONCE, thread_name_prefix="guard-names")
        self.port = 0

    @property
    def url(self) -> str:
        """What a browser takes as its proxy."""
        return f"http://127.0.0.1:{self.port}"

    def take_refusals(self) -> tuple[str, ...]:
        """What was refused since the last call."""
        taken, self._refusals = tuple(self._refusals), []
        return taken

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the browser."""
        task = asyncio.current_task()
        if task is None or len(self._connections) >= _MAX_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.IncompleteReadError):
            # Either end broke off or broke the rules: the browser sees a closed connection and says so.
            pass
        except asyncio.CancelledError:
            # By `aclose` alone, which waits for this task's end: raised further it would only be logged by asyncio.
            pass
        finally:
            self._connections.discard(task)
            await _close(writer)

    async def aclose(self) -> None:
        """End every connection."""
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._resolver.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        browser = h11.Connection(h11.SERVER, max_incomplete_event_size=_CHUNK)
        while True:
            request = await _next_event(browser, reader)
            if not isinstance(request, h11.Request):
                return
            try:
                if request.method == b"CONNECT":
                    await self._tunnel(request, browser, reader, writer)
                    return
                await self._forward(request, browser, reader, writer)
            except Refused as refusal:
                self._note(str(refusal))
                writer.write(_answer(browser, 403, _REFUSAL))
                await writer.drain()
                return
            if browser.our_state is not h11.DONE or browser.their_state is not h11.DONE:
                return
            browser.start_next_cycle()

    def _note(self, text: str) -> None:
        if len(self._refusals) < 100:
            self._refusals.append(text[:300])

    async def _dial(self, place: Place | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if place is None:
            raise Refused("an address without a host")
        why = self._policy.refuse_name(place)
        if why:
            raise Refused(f"{place}: {why}")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_DIAL_TIMEOUT_S):
            look_up = partial(socket.getaddrinfo, place.host, place.port, type=socket.SOCK_STREAM)
            infos = await loop.run_in_executor(self._resolver, look_up)
            refusal, last = None, OSError("no address")
            for *_, address in infos:
                why = self._refuse_address(place, str(address[0]))
                if why:
                    refusal = f"{place}: {why}"
                    continue
                try:
                    return await asyncio.open_connection(str(address[0]), place.port, limit=_CHUNK)
                except OSError as error:
                    last = error
        if refusal:
            raise Refused(refusal)
        raise last

    def _refuse_address(self, place: Place, address: str) -> str | None:
        """The policy's word, and what it cannot know: which addresses are this machine's, and what names were before.

        A site of the scenario may lie on a private address. One that was public and says later that it is private
        would show its page what lies there (DNS rebinding).
        """
        why = self._policy.refuse_address(place, address)
        if why is None and place in self._policy.own:
            private = refuse_ip(address)
            if private is None:
                self._seen_public.add(place)
            return f"{private}, under a name that was public before" if place in self._seen_public and private else None
        return why or ("this machine" if is_this_machine(address) else None)

    async def _tunnel(
        self, request: h11.Request, browser: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        up_reader, up_writer = await self._dial(place_of(f"https://{request.target.decode('latin-1')}"))
        try:
            writer.write(browser.send(h11.Response(status_code=200, headers=[])) or b"")
            up_writer.write(browser.trailing_data[0])
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pipe(reader, up_writer))
                group.create_task(self._pipe(up_reader, writer))
        except* (OSError, TimeoutError):
            pass
        finally:
            await _close(up_writer)

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        passed = 0
        while passed <= self._max_bytes:
            async with asyncio.timeout(_IDLE_TIMEOUT_S):
                data = await source.read(_CHUNK)
            if not data:
                break
            passed += len(data)
            target.write(data)
            await target.drain()
        target.close()

    async def _forward(
        self, request: h11.Request, browser: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        url = request.target.decode("latin-1")
        scheme, _, rest = url.partition("://")
        if scheme.lower() != "http":
            raise Refused(f"a request that is not http: {url[:100]}")
        up_reader, up_writer = await self._dial(place_of(url))
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=_CHUNK)
        authority = urlsplit(url).netloc
        # Byte for byte, a path with two slashes or an empty query included.
        path = rest[len(authority) :]
        path = path if path.startswith("/") else f"/{path}"
        # The address says whom a request is for, whatever its header says (RFC 9112, 3.2.2).
        headers = [(b"host", authority.rpartition("@")[2].encode("latin-1"))]
        headers += [(name, value) for name, value in request.headers if name not in _NOT_PASSED_ON]
        try:
            head = h11.Request(method=request.method, target=path, headers=[*headers, (b"connection", b"close")])
            up_writer.write(server.send(head) or b"")
            while not isinstance(event := await _next_event(browser, reader), h11.EndOfMessage):
                if not isinstance(event, h11.Data):
                    return
                up_writer.write(server.send(h11.Data(data=event.data)) or b"")
                await up_writer.drain()
            up_writer.write(server.send(h11.EndOfMessage()) or b"")
            await self._respond(server, up_reader, browser, writer)
        finally:
            await _close(up_writer)

    async def _respond(
        self,
        site: h11.Connection,
        source: asyncio.StreamReader,
        browser: h11.Connection,
        writer: asyncio.StreamWriter,
    ) -> None:
        passed = 0
        while passed <= self._max_bytes:
            event = await _next_event(site, source)
            match event:
                case h11.Response():
                    kept = [(name, value) for name, value in event.headers if name not in _HOP_BY_HOP]
                    event = h11.Response(status_code=event.status_code, headers=kept, reason=event.reason)
                case h11.Data():
                    passed += len(event.data)
                    event = h11.Data(data=event.data)
                case h11.EndOfMessage():
                    event = h11.EndOfMessage()
                case h11.InformationalResponse():
                    continue
                case _:
                    return
            writer.write(browser.send(event) or b"")
            await writer.drain()
            if isinstance(event, h11.EndOfMessage):
                return


@asynccontextmanager
async def guarding(policy: NetworkPolicy, *, max_response_bytes: int = 200_000_000) -> AsyncIterator[Guard]:
    """Run a guard on a free loopback port while the body runs."""
    guard = Guard(policy, max_response_bytes)
    server = await asyncio.start_server(guard.serve, "127.0.0.1", 0, limit=_CHUNK)
    guard.port = server.sockets[0].getsockname()[1]
    try:
        yield guard
    finally:
        server.close()
        await guard.aclose()
        await server.wait_closed()


def is_this_machine(address: str) -> bool:
    """Whether an address, a public one as well, is one of this machine's own. No packet is sent to find out."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        # The system picks the sender's address: for an own address, itself.
        probe.connect((address, 9))
        return bool(probe.getsockname()[0] == address)
    return False


async def _next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            async with asyncio.timeout(_IDLE_TIMEOUT_S):
                connection.receive_data(await reader.read(_CHUNK))
            continue
        return event


def _answer(connection: h11.Connection, status: int, body: bytes) -> bytes:
    headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
    return b"".join(connection.send(event) or b"" for event in events)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
