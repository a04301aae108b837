"""The guard: a filtering HTTP proxy on loopback, through which all of the browser's traffic goes.

It enforces `judge.network.policy.NetworkPolicy` for everything that a page does: redirects, frames, scripts and
sockets. Plain requests are forwarded one per upstream connection (h11 handles the framing) and recorded; CONNECT is
tunnelled for TLS and WebSockets, unless a handler serves the connections.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

import h11

from judge.network.interception import RequestRefused, WireAnswer, WireRequest
from judge.network.peers import (
    CHUNK,
    HOP_BY_HOP,
    IDLE_TIMEOUT_S,
    REFUSAL,
    REFUSED,
    ByteReader,
    ByteWriter,
    Peer,
    decoded,
)
from judge.network.policy import NetworkPolicy, refuse_ip
from judge.network.upstream_proxy import NotConnected, UpstreamProxy, literal_addresses
from judge.network.wire import Exchange, ExchangeRecord
from judge.records.sites import HostPort, ip_of, place_of

_DIAL_TIMEOUT_S = 15.0
# A page may open any number of connections; a browser by itself opens far fewer.
_MAX_CONNECTIONS = 512
_PARALLEL_LOOKUPS = 8
_MAX_REFUSALS = 100
_NOT_FORWARDED = HOP_BY_HOP | {b"host"}


class Handler(Protocol):
    """Serves the browser's connections instead of the guard itself, such as an interception; `wire` records them."""

    wire: ExchangeRecord

    async def serve(self, browser: Peer) -> None:
        """Serve a connection to its end."""
        ...


class Guard:
    """One running proxy. Its policy is the current task's; between tasks it refuses everything."""

    def __init__(
        self, policy: NetworkPolicy | None, max_body_bytes: int, upstream: UpstreamProxy | None = None
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self._upstream = upstream
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0
        self._count = 0
        self.allow(policy)

    def allow(self, policy: NetworkPolicy | None, handler: Handler | None = None) -> None:
        """Apply `policy` from now on, and forget everything about earlier tasks.

        A `handler` serves the connections; those that it opens through the guard are subject to the policy.
        """
        self._policy = policy
        self._handler = handler
        # What the browser sends, as far as it can be read: without a handler, what is sent without TLS.
        self.wire = handler.wire if handler else ExchangeRecord()
        self._refusals: list[str] = []
        self._failures: dict[HostPort, OSError] = {}
        self._is_upstream_suspect = False
        self._seen_public: set[HostPort] = set()
        # One per guard, so that a page that looks up many names without an answer does not delay other browsers.
        self._resolver = ThreadPoolExecutor(_PARALLEL_LOOKUPS, thread_name_prefix="guard-names")

    @property
    def url(self) -> str:
        """The proxy address for a browser."""
        return f"http://127.0.0.1:{self.port}"

    def take_refusals(self) -> tuple[str, ...]:
        """The refusals since the last call, bounded."""
        refusals, self._refusals = tuple(self._refusals), []
        return refusals

    def failure_at(self, url: str) -> OSError | None:
        """Why the connection to the address failed. The browser only knows that its own connection was closed."""
        return self._failures.get(place) if (place := place_of(url)) else None

    async def upstream_problem(self) -> str | None:
        """Why the upstream proxy does not work, if a connection through it failed since the last call."""
        if self._upstream is None or not self._is_upstream_suspect:
            return None
        self._is_upstream_suspect = False
        return await self._upstream.problem()

    def begin_step(self, number: int) -> None:
        """Assign requests that begin from now on to this step."""
        self.wire.step = number

    @property
    def reads_all(self) -> bool:
        """Whether everything that the browser sends can be read."""
        return self._handler is not None

    def note_refusal(self, refusal: RequestRefused) -> None:
        """Keep a refusal for `take_refusals`."""
        if len(self._refusals) < _MAX_REFUSALS:
            self._refusals.append(str(refusal)[:300])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection of the browser."""
        task = asyncio.current_task()
        if task is None or self._policy is None or len(self._connections) >= _MAX_CONNECTIONS:
            self.wire.could_not_read()
            writer.close()
            return
        self._connections.add(task)
        browser = Peer(h11.SERVER, reader, writer)
        try:
            try:
                await self._serve(browser)
            finally:
                await browser.close()
        except (OSError, h11.ProtocolError):
            # One side closed early or violated the protocol: the browser sees a closed connection and reports it.
            pass
        except asyncio.CancelledError:
            # Only `shut` cancels, and it awaits this task, so re-raising would only log the exception.
            pass
        finally:
            self._connections.discard(task)

    async def shut(self) -> None:
        """End every connection, and accept none until the next `allow`."""
        self._policy, self._handler = None, None
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._resolver.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, browser: Peer) -> None:
        if self._handler:
            await self._handler.serve(browser)
            return
        self._count += 1
        number = self._count
        while isinstance(request := await browser.receive(), h11.Request):
            try:
                if request.method == b"CONNECT":
                    await self._tunnel(request, browser)
                    return
                await self._forward(request, browser, number)
            except RequestRefused as refusal:
                self.note_refusal(refusal)
                browser.writer.write(REFUSAL)
                await browser.writer.drain()
                return
            if browser.http.our_state is not h11.DONE or browser.http.their_state is not h11.DONE:
                return
            browser.http.start_next_cycle()

    @property
    def policy(self) -> NetworkPolicy | None:
        """What is enforced now: a connection opened under another policy must not be used any more."""
        return self._policy

    async def dial(self, url: str, tls: ssl.SSLContext | None = None) -> Peer:
        """A connection to an address that the policy allows. Raises `RequestRefused`, `OSError` or `TimeoutError`."""
        place, policy = place_of(url), self._policy
        if place is None or policy is None:
            raise RequestRefused("no task is running" if place else "an address without a host")
        if why := policy.refuse_name(place):
            raise RequestRefused(f"{place}: {why}")
        try:
            return await self._connect(place, policy, tls)
        except OSError as error:
            self._is_upstream_suspect |= isinstance(error, NotConnected)
            if len(self._failures) < _MAX_REFUSALS:
                self._failures[place] = error
            raise

    async def _connect(self, place: HostPort, policy: NetworkPolicy, tls: ssl.SSLContext | None) -> Peer:
        async with asyncio.timeout(_DIAL_TIMEOUT_S):
            failure: Exception = OSError("no address")
            to = policy.served_by(place)
            for address in await self._addresses(to, policy):
                if why := self._refuse_address(policy, place, address):
                    failure = RequestRefused(f"{place}: {why}")
                    continue
                try:
                    # The checked address, not the name, which might now resolve to another one (DNS rebinding).
                    return await self._opened(address, to.port, (tls, place.host) if tls else None)
                except OSError as error:
                    # Report that an address was refused rather than that another one did not answer.
                    failure = failure if isinstance(failure, RequestRefused) else error
        raise failure

    async def _addresses(self, place: HostPort, policy: NetworkPolicy) -> Sequence[str]:
        """What a host resolves to, which may be refused; or its name, if the upstream proxy resolves names."""
        if self._upstream is not None and self._upstream.resolves:
            # Addresses, also in odd spellings, and this machine's names are checked here nevertheless.
            return tuple(literal_addresses(place.host, place.port)) or (place.host,)
        look_up = partial(socket.getaddrinfo, place.host, place.port, type=socket.SOCK_STREAM)
        infos = await asyncio.get_running_loop().run_in_executor(self._resolver, look_up)
        return [str(address[0]) for *_, address in infos]

    async def _opened(self, address: str, port: int, tls: tuple[ssl.SSLContext, str] | None) -> Peer:
        """A connection to an address; with `tls`, for the name that the certificate must have."""
        context, host = tls or (None, None)
        if self._upstream is None:
            streams = await asyncio.open_connection(address, port, limit=CHUNK, ssl=context, server_hostname=host)
        else:
            connected = await self._upstream.connect(address, port, _DIAL_TIMEOUT_S)
            try:
                streams = await asyncio.open_connection(sock=connected, limit=CHUNK, ssl=context, server_hostname=host)
            except BaseException:
                connected.close()
                raise
        return Peer(h11.CLIENT, *streams)

    def _refuse_address(self, policy: NetworkPolicy, place: HostPort, address: str) -> str | None:
        """The policy's decision, plus state that it does not have: this machine's addresses, and earlier look-ups.

        A site of the scenario may be on a private address. But a name that was public before and then becomes private
        would give its page access to private hosts (DNS rebinding).
        """
        to = policy.served_by(place)
        if self._upstream is not None and self._upstream.resolves and address == to.host and ip_of(address) is None:
            # A name, whose addresses only the proxy knows.
            return None
        why = policy.refuse_address(place, address)
        if to != place:
            # Named by the runner or the operator, also on this machine.
            return why
        if why is None and place in policy.own:
            private = refuse_ip(address)
            if private is None:
                self._seen_public.add(place)
            return f"{private}, under a name that was public before" if place in self._seen_public and private else None
        return why or ("this machine" if is_this_machine(address) else None)

    async def _tunnel(self, request: h11.Request, browser: Peer) -> None:
        site = await self.dial(f"https://{request.target.decode('latin-1')}")
        try:
            await browser.send(h11.Response(status_code=200, headers=[]))
            # What the browser sent right after its request, without waiting for the response.
            site.writer.write(browser.http.trailing_data[0])
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pipe(browser.reader, site.writer))
                group.create_task(self._pipe(site.reader, browser.writer))
        except* OSError:
            # One side closed early, which ends the other as well.
            pass
        finally:
            await site.close()

    async def _pipe(self, source: ByteReader, target: ByteWriter) -> None:
        passed = 0
        while passed <= self.max_body_bytes:
            async with asyncio.timeout(IDLE_TIMEOUT_S):
                data = await source.read(CHUNK)
            if not data:
                break
            passed += len(data)
            target.write(data)
            await target.drain()
        target.close()

    async def _forward(self, request: h11.Request, browser: Peer, connection: int) -> None:
        url = request.target.decode("latin-1")
        if not url.lower().startswith("http://"):
            raise RequestRefused(f"a request that is not http: {url[:100]}")
        wire = self.wire
        request_sent = WireRequest(request.method.decode("latin-1"), url, decoded(request), step=wire.step)
        exchange = wire.begin(request_sent, connection)
        try:
            await self._pass_on(request, url, browser, exchange)
        except RequestRefused as refusal:
            wire.settle(exchange, WireAnswer(REFUSED), str(refusal))
            raise
        finally:
            wire.settle(exchange, failure="no answer")

    async def _pass_on(self, request: h11.Request, url: str, browser: Peer, exchange: Exchange) -> None:
        site = await self.dial(url)
        try:
            authority = urlsplit(url).netloc
            # Byte for byte, so that a path with two slashes or an empty query is not changed.
            path = url.partition("://")[2][len(authority) :]
            path = path if path.startswith("/") else f"/{path}"
            # The address, not the Host header, decides where a request goes (RFC 9112, 3.2.2).
            headers = [(b"host", authority.rpartition("@")[2].encode("latin-1")), (b"connection", b"close")]
            headers += [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
            await site.send(h11.Request(method=request.method, target=path, headers=headers))
            if await self._pass_body(browser, site, exchange):
                # 100 Continue and 103 Early Hints, which are optional.
                while isinstance(head := await site.receive(), h11.InformationalResponse):
                    pass
                if isinstance(head, h11.Response):
                    reason = head.reason.decode("latin-1")
                    self.wire.settle(exchange, WireAnswer(head.status_code, reason, decoded(head)))
                    end_to_end = [(name, value) for name, value in head.headers if name not in HOP_BY_HOP]
                    await browser.send(
                        h11.Response(status_code=head.status_code, headers=end_to_end, reason=head.reason)
                    )
                    await self._pass_body(site, browser)
        finally:
            await site.close()

    async def _pass_body(self, source: Peer, target: Peer, exchange: Exchange | None = None) -> bool:
        """Forward the rest of a message, and record it. False if it is too large or ends early."""
        passed = 0
        while passed <= self.max_body_bytes:
            event = await source.receive()
            if isinstance(event, h11.EndOfMessage):
                await target.send(h11.EndOfMessage())
                return True
            if not isinstance(event, h11.Data):
                return False
            passed += len(event.data)
            if exchange:
                exchange.add(bytes(event.data))
            await target.send(h11.Data(data=event.data))
        return False


@asynccontextmanager
async def guarding(
    policy: NetworkPolicy | None, *, max_body_bytes: int = 200_000_000, upstream: UpstreamProxy | None = None
) -> AsyncIterator[Guard]:
    """Run a guard on a free loopback port while the body runs; it connects through `upstream`, if given."""
    guard = Guard(policy, max_body_bytes, upstream)
    server = await asyncio.start_server(guard.serve, "127.0.0.1", 0, limit=CHUNK)
    guard.port = server.sockets[0].getsockname()[1]
    try:
        yield guard
    finally:
        server.close()
        await guard.shut()
        await server.wait_closed()


def is_this_machine(address: str) -> bool:
    """Whether an address, even a public one, is one of this machine's. Sends no packet to find out."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        # The system chooses the source address; for one of this machine's addresses, the address itself.
        probe.connect((address, 9))
        return bool(probe.getsockname()[0] == address)
    return False
