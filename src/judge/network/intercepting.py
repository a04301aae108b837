"""Serves the connections of a browser whose requests an interceptor answers: ends TLS, frames the messages, and records
what it reads before anything is done with it.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace

import h11

from judge.network.guard import Guard
from judge.network.interception import (
    HeaderPairs,
    Interceptor,
    RequestFailed,
    RequestRefused,
    SocketClose,
    SocketMessage,
    WireAnswer,
    WireRequest,
)
from judge.network.peers import CHUNK, HOP_BY_HOP, IDLE_TIMEOUT_S, REFUSAL, REFUSED, Peer, PrefixedReader, decoded
from judge.network.tls import Authority, TlsStream
from judge.network.upstream import Dial, Network
from judge.network.web_sockets import Frames, accept_of, forwarded_headers, is_socket
from judge.network.wire import MARK, Exchange, ExchangeRecord
from judge.records.sites import place_of
from shared.logs import current_log_context, log_context
from shared.tls import site_trust

# The first byte of TLS. A browser also asks for a tunnel for sockets without TLS.
_HANDSHAKE = b"\x16"
_HANDSHAKE_S = 15.0
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_FRAMING = HOP_BY_HOP | {b"content-length", b"transfer-encoding"}
_WITHOUT_BODY = (204, 304)
# Browsers do not retry after two conflicting lengths, unlike after a connection closed without an answer.
_FAILURE = b"HTTP/1.1 502 Failed\r\nContent-Length: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Line:
    """A connection of the browser: its number, and the network, unless it is out of reach."""

    number: int
    network: Network | None


class Interception:
    """Serves a guard's connections of one attempt. `dial` is given only if the interceptor uses the network."""

    def __init__(self, interceptor: Interceptor, authority: Authority, dial: Dial | None, max_bytes: int) -> None:
        self._interceptor = interceptor
        self._authority = authority
        self._dial = dial if interceptor.reaches_out else None
        self._max_bytes = max_bytes
        # Connections arrive in the context in which the browser was started, perhaps for another task.
        self._log_context = current_log_context()
        # The limit of request bodies, which are held in memory.
        self._free_bytes = max_bytes
        self._connections = 0
        self.wire = ExchangeRecord()

    async def serve(self, browser: Peer) -> None:
        """Serve a connection to its end."""
        self._connections += 1
        line = _Line(self._connections, Network(self._dial, self._max_bytes) if self._dial else None)
        try:
            with log_context(**self._log_context):
                await self._serve(browser, line)
        finally:
            if line.network:
                await line.network.close()

    async def _serve(self, browser: Peer, line: "_Line") -> None:
        while (head := await self._head(browser, "")) is not None:
            target = head.target.decode("latin-1")
            if head.method == b"CONNECT":
                await self._tunnel(target, browser, line)
                return
            if not target.lower().startswith("http://"):
                self.wire.could_not_read()
                await _write(browser, REFUSAL)
                return
            if not await self._exchange(browser, head, target, line):
                return

    async def _head(self, browser: Peer, place: str) -> h11.Request | None:
        """The head of the next request; `None` at the end of the connection, which leads to `place`."""
        try:
            event = await browser.receive()
        except h11.RemoteProtocolError:
            self.wire.could_not_read(place)
            raise
        if isinstance(event, h11.Request):
            return event
        if browser.http.trailing_data[0]:
            self.wire.could_not_read(place)
        return None

    async def _tunnel(self, target: str, browser: Peer, line: "_Line") -> None:
        place = place_of(f"https://{target}")
        if place is None:
            self.wire.could_not_read()
            await _write(browser, REFUSAL)
            return
        await browser.send(h11.Response(status_code=200, headers=[]))
        async with asyncio.timeout(IDLE_TIMEOUT_S):
            first = browser.http.trailing_data[0] or await browser.reader.read(CHUNK)
        reader = PrefixedReader(first, browser.reader)
        if not first.startswith(_HANDSHAKE):
            await self._serve_inside("http", target, Peer(h11.SERVER, reader, browser.writer), line)
            return
        stream = TlsStream(reader, browser.writer, self._authority.context(place.host))
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                await stream.handshake()
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # Given up, as browsers do with connections that they turn out not to need.
            raise
        except ssl.SSLError:
            self.wire.could_not_read(str(place))
            raise
        inside = Peer(h11.SERVER, stream, stream)
        try:
            await self._serve_inside("https", target, inside, line)
        finally:
            await inside.close()

    async def _serve_inside(self, scheme: str, target: str, browser: Peer, line: "_Line") -> None:
        origin, place = f"{scheme}://{target.removesuffix(_DEFAULT_PORTS[scheme])}", str(place_of(f"https://{target}"))
        while (head := await self._head(browser, place)) is not None:
            path = head.target.decode("latin-1")
            if not path.startswith("/"):
                self.wire.could_not_read(place)
                await _write(browser, REFUSAL)
                return
            if not await self._exchange(browser, head, origin + path, line):
                return

    async def _exchange(self, browser: Peer, head: h11.Request, url: str, line: "_Line") -> bool:
        """One request with its answer. Returns whether another may follow."""
        step = self.wire.step
        is_for_socket = is_socket(head)
        method = "GET" if is_for_socket else head.method.decode("latin-1")
        url = f"ws{url.removeprefix('http')}" if is_for_socket else url
        body = await self._read_body(browser)
        request = WireRequest(method, url, decoded(head), body or b"", step)
        exchange = None
        if self.wire.is_marked(request.headers):
            headers = tuple(each for each in request.headers if each[0].lower() != MARK)
            request = replace(request, headers=headers, is_judges=True)
        else:
            exchange = self.wire.begin(request, line.number)
        if body is None:
            # It was not passed on.
            if exchange:
                exchange.body, exchange.size = None, _announced(head)
            self.wire.settle(exchange, failure="its body was not received")
            await _write(browser, _FAILURE)
            return False
        self._free_bytes -= len(body)
        try:
            if is_for_socket:
                await self._socket(browser, head, request, exchange, line.network)
                return False
            await _unless_gone(browser, self._answer(browser, request, exchange, line.network))
        finally:
            self.wire.settle(exchange)
            self._free_bytes += len(body)
            if line.network:
                await line.network.end()
        if browser.http.our_state is not h11.DONE or browser.http.their_state is not h11.DONE:
            return False
        browser.http.start_next_cycle()
        return True

    async def _read_body(self, browser: Peer) -> bytes | None:
        """The request's body; `None` if it is too large or ends early."""
        pieces: list[bytes] = []
        size = 0
        while not isinstance(event := await browser.receive(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return None
            size += len(event.data)
            if size > self._free_bytes:
                return None
            pieces.append(bytes(event.data))
        return b"".join(pieces)

    async def _answer(
        self, browser: Peer, request: WireRequest, exchange: Exchange | None, network: Network | None
    ) -> None:
        try:
            answer = await self._interceptor.answer(request, network)
        except RequestFailed as failure:
            self._settle_failed(exchange, failure)
            await _fail(browser, failure)
            return
        # Isolation boundary: an error of the interceptor fails this load only.
        except Exception:  # noqa: BLE001
            _log.exception("a request to %s", request.url[:200])
            await _fail(browser)
            return
        self.wire.settle(exchange, answer)
        try:
            await _send(browser, answer, is_head=request.method == "HEAD")
        except (RequestFailed, h11.LocalProtocolError):
            await _fail(browser)

    def _settle_failed(self, exchange: Exchange | None, failure: RequestFailed) -> None:
        is_refused = isinstance(failure, RequestRefused)
        self.wire.settle(exchange, WireAnswer(REFUSED) if is_refused else None, str(failure))

    async def _socket(
        self, browser: Peer, head: h11.Request, request: WireRequest, exchange: Exchange | None, network: Network | None
    ) -> None:
        page = _Page(browser, dict(head.headers)[b"sec-websocket-key"], self._max_bytes, self.wire, exchange)
        try:
            await self._interceptor.socket(request, page, network)
        except RequestFailed as failure:
            self._settle_failed(exchange, failure)
            await _fail(browser, failure)
        except OSError:
            # The page has gone.
            pass
        # Isolation boundary, as above.
        except Exception:  # noqa: BLE001
            _log.exception("a socket to %s", request.url[:200])
            await _fail(browser)
        finally:
            await page.finish()


def intercepted(
    guard: Guard, interceptor: Interceptor, authority: Authority, trust: ssl.SSLContext | None = None
) -> Interception:
    """Serves a guard's connections with the interceptor; `trust` replaces the certificates that the judge accepts."""
    if not interceptor.reaches_out:
        return Interception(interceptor, authority, None, guard.max_body_bytes)
    context = trust or site_trust()
    context.set_alpn_protocols(["http/1.1"])

    async def to(url: str) -> Peer:
        try:
            address = f"http{url[2:]}" if url.startswith("ws") else url
            return await guard.dial(address, context if address.startswith("https:") else None)
        except RequestRefused as refusal:
            guard.note_refusal(refusal)
            raise
        except (OSError, TimeoutError) as error:
            raise RequestFailed(str(error) or type(error).__name__) from error

    return Interception(interceptor, authority, Dial(to, lambda: guard.policy), guard.max_body_bytes)


class _Page:
    """The page's end of a socket (`judge.network.interception.PageSocket`)."""

    def __init__(
        self, browser: Peer, key: bytes, max_bytes: int, wire: ExchangeRecord, exchange: Exchange | None
    ) -> None:
        self._browser = browser
        self._key = key
        self._max_bytes = max_bytes
        self._wire = wire
        self._exchange = exchange
        self._frames: Frames | None = None

    async def accept(self, headers: HeaderPairs = ()) -> None:
        self._wire.settle(self._exchange, WireAnswer(101, "Switching Protocols", headers))
        own = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade")]
        own.append((b"Sec-WebSocket-Accept", accept_of(self._key)))
        await self._browser.send(
            h11.InformationalResponse(status_code=101, headers=[*own, *forwarded_headers(headers)])
        )
        reader = PrefixedReader(self._browser.http.trailing_data[0], self._browser.reader)
        self._frames = Frames(reader, self._browser.writer, is_page=True, max_bytes=self._max_bytes)

    async def refuse(self, answer: WireAnswer) -> None:
        self._wire.settle(self._exchange, answer)
        await _send(self._browser, answer)

    async def receive(self) -> SocketMessage | SocketClose:
        message = await self._frames.receive() if self._frames else SocketClose(is_from_page=True)
        if isinstance(message, SocketMessage):
            message = replace(message, step=self._wire.step)
            self._wire.add_message(self._exchange, message)
        return message

    async def send(self, message: SocketMessage) -> None:
        if self._frames:
            self._wire.add_message(self._exchange, message)
            await self._frames.send(message)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        if self._frames:
            await self._frames.close(code, reason)

    async def finish(self) -> None:
        if self._frames:
            await self._frames.finish()


async def _unless_gone(browser: Peer, work: Coroutine[None, None, None]) -> None:
    """Do the work, but stop when the browser closes the connection, as it does when a page ends a stream."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_closed(browser))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not gone.done() or not gone.result():
            await task
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _closed(browser: Peer) -> bool:
    """Wait until the browser closes the connection, or sends something early: then `False`."""
    try:
        data = await browser.reader.read(CHUNK)
        browser.http.receive_data(data)
    except (OSError, h11.ProtocolError):
        return True
    return not data


async def _send(browser: Peer, answer: WireAnswer, *, is_head: bool = False) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    framed = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
    lengths = [(name, value) for name, value in headers if name.lower() == b"content-length"]
    is_bare = is_head or answer.status in _WITHOUT_BODY
    if lengths and isinstance(answer.body, bytes) and not is_bare:
        lengths = [(lengths[0][0], str(len(answer.body)).encode())]
    reason = answer.reason.encode("latin-1", "replace")
    await browser.send(h11.Response(status_code=answer.status, headers=framed + lengths, reason=reason))
    if not is_bare:
        async for piece in _pieces(answer.body):
            await browser.send(h11.Data(data=piece))
    await browser.send(h11.EndOfMessage())


async def _pieces(body: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        for start in range(0, len(body), CHUNK):
            yield body[start : start + CHUNK]
    else:
        async for piece in body:
            yield piece


async def _fail(browser: Peer, failure: RequestFailed | None = None) -> None:
    """Let the page see a failed load: an answer that has begun is truncated."""
    if browser.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
        await _write(browser, REFUSAL if isinstance(failure, RequestRefused) else _FAILURE)
    browser.http.send_failed()


async def _write(browser: Peer, data: bytes) -> None:
    with suppress(OSError):
        browser.writer.write(data)
        await browser.writer.drain()


def _announced(head: h11.Request) -> int:
    """The size of a body not received, as far as it is known; not 0."""
    return max(1, int(dict(head.headers).get(b"content-length", b"0")))
