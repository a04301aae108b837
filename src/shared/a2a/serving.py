"""An ASGI application on a socket: a port that is taken is said at once, signals end it in good order."""

import asyncio
import base64
import contextlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import urlsplit

import uvicorn
from pydantic import SecretStr
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.a2a.connections import (
    BoundedProtocol,
    ConnectionBounds,
    Connections,
    Listener,
    connection_limit,
    raise_descriptor_limit,
)
from shared.errors import ConfigError

SHUTDOWN_GRACE_S = 10.0
_KEEP_ALIVE_S = 30
_BACKLOG = 128
_TICKS_PER_S = 10  # uvicorn's
# Headers by which proxies and gateways tell that they are one, or whom they speak for: Forwarded, X-Forwarded-For, Via,
# X-Real-IP, CF-Connecting-IP, True-Client-IP, X-Envoy-External-Address and their like.
_FORWARDING = re.compile(r"forwarded|^via$|(?:real|client|connecting)-ip|external-address|original-(?:host|url)")


class BearerGuard:
    """Lets requests pass that carry `Authorization: Bearer <token>`, and those to `public` paths.

    A person's browser cannot send that. For pages (GET) it may send the token as the password that it asks for (HTTP
    Basic, RFC 7617), under any name.
    """

    def __init__(self, app: ASGIApp, token: SecretStr, public: tuple[str, ...]) -> None:
        self._app = app
        self._expected = f"Bearer {token.get_secret_value()}".encode()
        self._public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            is_page = scope["method"] in ("GET", "HEAD")
            given = dict(scope["headers"]).get(b"authorization", b"")
            if is_page and given[:6].lower() == b"basic ":
                given = _as_bearer(given[6:])
            if not hmac.compare_digest(given, self._expected):
                ways = 'Bearer, Basic realm="WABE: the token is the password"' if is_page else "Bearer"
                refusal = JSONResponse(
                    {"error": "this agent asks for a bearer token"}, 401, headers={"WWW-Authenticate": ways}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _as_bearer(encoded: bytes) -> bytes:
    """The header that the password of Basic credentials would make as a token; nothing valid for what is unreadable."""
    try:
        return b"Bearer " + base64.b64decode(encoded, validate=True).partition(b":")[2]
    except ValueError:
        return b""


class LoopbackOnly:
    """Lets requests pass that a person at this machine makes; anyone else is answered 403 with `refusal`.

    Every sign must agree: the peer, the `Host` that was asked for (a page elsewhere can give its own name a loopback
    address: DNS rebinding), and no trace of a proxy, whose own address would be taken for its client's.
    """

    def __init__(self, app: ASGIApp, refusal: str) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        app = self._app if _is_from_this_machine(scope) else PlainTextResponse(self._refusal, 403)
        await app(scope, receive, send)


def _is_from_this_machine(scope: Scope) -> bool:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    is_forwarded = any(_FORWARDING.search(name.decode("latin-1")) for name, _ in scope["headers"])
    peer = scope["client"][0] if scope.get("client") else ""
    return len(hosts) == 1 and not is_forwarded and _is_loopback(peer) and _is_loopback(_host_of(hosts[0]))


def _host_of(header: str) -> str:
    """The name or address in a `Host` header; empty for one that is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        return (parts.hostname or "") if parts.netloc == header and "@" not in header else ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class WholeBody:
    """Reads a request's body before any handler sees it, so that one over the application's limit is answered 413.

    A handler that meets the limit while it reads would answer in its own way, some as a fault of the server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        chunks: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunks.append(message.get("body", b""))
            more = message.get("more_body", False)
        whole: list[Message] = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises `ConfigError` when the address cannot be had."""
    # The protocol must be named, or asyncio does not switch Nagle's algorithm off: 40 ms more for every answer.
    sock = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        return sock
    except OSError as error:
        if sock is not None:
            sock.close()
        raise ConfigError(
            f"cannot listen at {host}:{port}: {error.strerror or error}", remedy="choose another --host or --port"
        ) from None


def address_of(host: str, port: int) -> str:
    """The URL under which a server at `host` and `port` is reached from this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


async def serve_app(
    app: ASGIApp,
    sock: socket.socket,
    *,
    before_shutdown: Callable[[], Awaitable[None]] | None = None,
    bounds: ConnectionBounds | None = None,
) -> None:
    """Serve `app` until SIGTERM, SIGINT or cancellation.

    `before_shutdown` ends the work in progress while its clients are still connected, so that they hear of the end.
    Without `bounds`, connections may take a quarter of the process's descriptors.
    """
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        # Nobody's word for who the client is: the live page asks for the real peer.
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_S,
        # Longer than the grace of a stream, so that no stream is cut while it says its last word.
        timeout_graceful_shutdown=int(SHUTDOWN_GRACE_S) + 5,
    )
    connections = Connections(bounds or ConnectionBounds(max_connections=connection_limit()))
    server = _Server(config, connections, before_shutdown)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    finally:
        sock.close()


def run_server(
    app: ASGIApp, host: str, port: int, *, before_shutdown: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve `app` until a signal; blocks. Returns after an orderly end. Raises `ConfigError` for a taken port."""
    raise_descriptor_limit()
    sock = listen(host, port)
    asyncio.run(serve_app(app, sock, before_shutdown=before_shutdown))


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        before_shutdown: Callable[[], Awaitable[None]] | None,
    ) -> None:
        super().__init__(config)
        self.server_state: Connections = connections
        self._before_shutdown = before_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(self.config, self.server_state, self.lifespan.state)

        # uvicorn closes its servers and waits for that; it asks nothing else of them.
        self.servers = [Listener(sock, self.server_state, protocol) for sock in sockets or ()]  # type: ignore[misc]

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_S == 0:
            self.server_state.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._before_shutdown is not None:
            await self._before_shutdown()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            # Otherwise the signal is raised again after an orderly end, and an asked-for stop looks like a crash.
            self._captured_signals.clear()
