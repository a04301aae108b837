"""A small HTTPS server that shows its wire: chunks, broken answers, raw encodings, sockets. It counts connections."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
import threading
import uuid
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_SESSION = "sid"


@dataclass(frozen=True)
class Authority:
    """A certificate authority of a test: files of its certificate and of one server's, and the server key's hash."""

    ca: Path
    chain: Path
    key: Path
    spki: str

    @classmethod
    def made_in(cls, folder: Path) -> "Authority":
        """A new one for `localhost` and 127.0.0.1, valid for a day."""
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        ca = _certificate("WABE test authority", ca_key.public_key(), "WABE test authority", ca_key, is_ca=True)
        leaf = _certificate("localhost", key.public_key(), "WABE test authority", ca_key, is_ca=False)
        pem = serialization.Encoding.PEM
        result = cls(folder / "ca.pem", folder / "chain.pem", folder / "key.pem", spki_hash(key.public_key()))
        result.ca.write_bytes(ca.public_bytes(pem))
        result.chain.write_bytes(leaf.public_bytes(pem) + ca.public_bytes(pem))
        plain = serialization.NoEncryption()
        result.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        return result


def spki_hash(key: ec.EllipticCurvePublicKey) -> str:
    """What Chromium's `--ignore-certificate-errors-spki-list` takes."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return b64encode(sha256(der).digest()).decode()


def _certificate(
    name: str, key: ec.EllipticCurvePublicKey, issuer: str, signer: ec.EllipticCurvePrivateKey, *, is_ca: bool
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    hour = datetime.timedelta(hours=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - hour)
        .not_valid_after(now + 24 * hour)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if is_ca:
        usage = {"key_cert_sign": True, "crl_sign": True, "digital_signature": True}
    else:
        places = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(places), critical=False)
        usage = {"key_cert_sign": False, "crl_sign": False, "digital_signature": True}
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    rest = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return builder.add_extension(x509.KeyUsage(**usage, **rest), critical=True).sign(signer, hashes.SHA256())


@dataclass(frozen=True)
class Addresses:
    """The site's origins: its own, another one that it also serves, and one where nothing answers."""

    own: str
    other: str
    closed: str


@dataclass
class Request:
    """A request as a case's handler gets it. `session` is what the server keeps for the browser's context."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    site: Addresses
    session: dict[str, Any]

    @property
    def cookies(self) -> dict[str, str]:
        pairs = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass
class Answer:
    """`chunks` are sent one by one without a length, instead of `body`. `is_broken`: ends in the middle."""

    body: bytes | str = b""
    kind: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunks: AsyncIterator[bytes] | None = None
    is_broken: bool = False

    def with_headers(self, *headers: tuple[str, str]) -> "Answer":
        return Answer(self.body, self.kind, self.status, (*self.headers, *headers), self.chunks, self.is_broken)


Handler = Callable[[Request], Awaitable[Answer]]


class Channel:
    """An open web socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._protocol = Protocol(Side.SERVER)
        self._waiting: list[str | bytes] = []

    async def receive(self) -> str | bytes | None:
        """The next message; `None` once the page has closed."""
        while not self._waiting:
            data = await self._reader.read(65_536)
            self._protocol.receive_data(data) if data else self._protocol.receive_eof()
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY):
                    whole = bytes(event.data)
                    self._waiting.append(whole.decode() if event.opcode is Opcode.TEXT else whole)
            await self._flush()
            if not data:
                return None
        return self._waiting.pop(0)

    async def send(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        else:
            self._protocol.send_binary(message)
        await self._flush()

    async def close(self, code: int = 1000) -> None:
        self._protocol.send_close(code)
        await self._flush()
        while await self.receive() is not None:
            pass

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)
            else:
                # Once both have said that they close, the server ends the connection. Browsers wait for that.
                self._writer.close()
        if not self._writer.is_closing():
            await self._writer.drain()


SocketHandler = Callable[[Channel, Request], Awaitable[None]]


@dataclass
class Site:
    """What is served: handlers by path (a path ending in `/*` is a prefix), and sockets by path."""

    addresses: Addresses
    handlers: Mapping[str, Handler]
    sockets: Mapping[str, SocketHandler]
    connections: int = 0
    requests: list[str] = field(default_factory=list)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def handler_of(self, path: str) -> Handler | None:
        if path in self.handlers:
            return self.handlers[path]
        return next(
            (self.handlers[key] for key in self.handlers if key[-2:] == "/*" and path.startswith(key[:-1])), None
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError, h11.ProtocolError, asyncio.IncompleteReadError):
            await self._serve(reader, writer)
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        while True:
            head = await _event(http, reader)
            if not isinstance(head, h11.Request):
                return
            body = b""
            while isinstance(event := await _event(http, reader), h11.Data):
                body += bytes(event.data)
            request, cookie = self._request(head, body)
            if "upgrade" in request.headers.get("connection", "").lower():
                await self._open_socket(request, reader, writer)
                return
            handler = self.handler_of(request.path)
            answer = await handler(request) if handler else Answer("Nothing here.", status=404)
            if cookie and answer.kind.startswith("text/html") and answer.status == 200:
                answer = answer.with_headers(("Set-Cookie", f"{_SESSION}={cookie}; Path=/; Secure; HttpOnly"))
            if not await _send(http, writer, answer, head.method == b"HEAD"):
                return
            http.start_next_cycle()

    def _request(self, head: h11.Request, body: bytes) -> tuple[Request, str | None]:
        """The request, and the session's cookie if the browser has none yet."""
        parts = urlsplit(head.target.decode())
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Request(head.method.decode(), parts.path, query, headers, body, self.addresses, {})
        self.requests.append(f"{request.method} {head.target.decode()}")
        known = request.cookies.get(_SESSION)
        cookie = known or str(uuid.uuid4())
        request.session = self.sessions.setdefault(cookie, {})
        return request, None if known else cookie

    async def _open_socket(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = self.sockets.get(request.path)
        if handler is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        accept = b64encode(sha1((request.headers["sec-websocket-key"] + _GUID).encode()).digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        lines.append(f"Sec-WebSocket-Accept: {accept}")
        if offered := request.headers.get("sec-websocket-protocol"):
            lines.append(f"Sec-WebSocket-Protocol: {offered.split(',')[0].strip()}")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await handler(Channel(reader, writer), request)


async def _event(http: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(65_536))
    return event


async def _send(http: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, is_head: bool) -> bool:
    """Whether the connection can serve another request."""
    body = answer.body.encode() if isinstance(answer.body, str) else answer.body
    headers = list(answer.headers)
    if answer.kind and answer.status not in (204, 304):
        headers.insert(0, ("Content-Type", answer.kind))
    if not any(name.lower() == "cache-control" for name, _ in headers):
        headers.append(("Cache-Control", "no-store"))
    if answer.is_broken:
        headers += [("Content-Length", str(len(body) + 1000))]
    elif answer.chunks is None and answer.status not in (204, 304):
        headers += [("Content-Length", str(len(body)))]

    async def write(event: h11.Event) -> None:
        writer.write(http.send(event) or b"")
        await writer.drain()

    await write(h11.Response(status_code=answer.status, headers=headers))
    if answer.chunks is not None:
        async for chunk in answer.chunks:
            await write(h11.Data(data=chunk))
    elif body and not is_head:
        await write(h11.Data(data=body))
    if answer.is_broken:
        writer.transport.abort()
        return False
    await write(h11.EndOfMessage())
    return http.our_state is h11.DONE and http.their_state is h11.DONE


class Tripwire:
    """Listens on the ports of a stopped site: `touched` counts the connections that anything makes to it."""

    def __init__(self) -> None:
        self.touched = 0

    async def serve(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.touched += 1
        writer.close()


@contextmanager
def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    port: int,
    authority: Authority | None = None,
) -> Iterator[None]:
    """Serve on a port of 127.0.0.1, over TLS with an authority, in a thread of its own while the body runs."""
    context: ssl.SSLContext | None = None
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.chain, authority.key)
        context.set_alpn_protocols(["http/1.1"])
    loop = asyncio.new_event_loop()
    is_ready, failed = threading.Event(), list[BaseException]()

    async def run() -> None:
        connections: set[asyncio.Task[None]] = set()

        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await serve(reader, writer)
            except asyncio.CancelledError:
                writer.transport.abort()
            finally:
                connections.discard(task)

        try:
            server = await asyncio.start_server(one, "127.0.0.1", port, ssl=context, reuse_address=True)
        except OSError as error:
            failed.append(error)
            is_ready.set()
            return
        is_ready.set()
        await stopping.wait()
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    stopping = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name=f"port {port}")
    thread.start()
    is_ready.wait()
    try:
        if failed:
            raise failed[0]
        yield
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()
