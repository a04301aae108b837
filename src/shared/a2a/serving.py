"""Serves an ASGI application on a socket until a signal, to the holders of a token if it has one."""

import asyncio
import base64
import contextlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator

import uvicorn
from pydantic import SecretStr
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.a2a.connections import (
    BoundedProtocol,
    ConnectionBounds,
    Connections,
    Listener,
    connection_limit,
    raise_descriptor_limit,
)
from shared.a2a.envelopes import refusal_of, refusal_of_head
from shared.a2a.page_links import PageLinks
from shared.errors import ConfigError

SHUTDOWN_GRACE_S = 10.0
# Longer than clients usually keep an idle connection (httpx: 5 s), so that they close it and not the server.
_KEEP_ALIVE_S = 30
_BACKLOG = 128
_LARGE_BODY_BYTES = 100_000
_TICKS_PER_S = 10  # uvicorn's


def require_bearer(app: ASGIApp, token: SecretStr, public: Collection[str], links: PageLinks | None = None) -> ASGIApp:
    """Admit requests with `Authorization: Bearer <token>`, and all requests to `public` paths.

    A browser cannot send that header. For pages (GET) it may send the token as the password of HTTP Basic (RFC 7617),
    with any user name, or open one of the `links`.
    """
    expected = f"Bearer {token.get_secret_value()}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in public:
            await app(scope, receive, send)
            return
        # A WebSocket begins with a GET.
        is_page = scope.get("method", "GET") in ("GET", "HEAD")
        credentials = dict(scope["headers"]).get(b"authorization", b"")
        if is_page and credentials[:6].lower() == b"basic ":
            credentials = _bearer_of_basic(credentials[6:])
        # In constant time, so that the response time does not reveal how much of a guess is right.
        has_token = hmac.compare_digest(credentials, expected)
        answer: ASGIApp | None = links.answer(scope, has_token=has_token) if links else None
        if answer is None and (has_token or (is_page and links is not None and links.admits(scope))):
            answer = app
        await (answer or _unauthorized(is_page=is_page))(scope, receive, send)

    return guarded


def _unauthorized(*, is_page: bool) -> JSONResponse:
    answer = JSONResponse({"error": "this agent requires a bearer token"}, 401)
    # One line for each scheme: Chromium does not find Basic behind another one in the same line.
    for scheme in ("Bearer", 'Basic realm="WABE: the token is the password"') if is_page else ("Bearer",):
        answer.headers.append("WWW-Authenticate", scheme)
    return answer


def _bearer_of_basic(encoded: bytes) -> bytes:
    """The Bearer header whose token is the password of the Basic credentials; empty if they are malformed."""
    try:
        return b"Bearer " + base64.b64decode(encoded, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def read_body_first(app: ASGIApp) -> ASGIApp:
    """Read a request's body before any handler sees it, and refuse it if it is too large or cannot be used.

    A handler that hits the application's limit while reading would answer differently, sometimes with a 5xx.
    """

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        refusal = refusal_of_head(scope["path"], scope["query_string"], scope["headers"])
        if refusal is not None or scope["method"] != "POST":
            await (refusal or app)(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        if len(body) < _LARGE_BODY_BYTES:
            refusal = refusal_of(scope["path"], body)
        else:
            # In a thread, because reading millions of values takes seconds.
            refusal = await asyncio.to_thread(refusal_of, scope["path"], body)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await app(scope, replay, send)

    return reading


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises `ConfigError` when the address is not available."""
    # asyncio disables Nagle's algorithm only if the protocol is given explicitly: saves 40 ms per response.
    sock = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # A restarted server may find connections of its predecessor in TIME_WAIT.
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
    """The URL at which this machine reaches a server that listens on `host` and `port`."""
    host_shown = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(
        host, f"[{host}]" if ":" in host else host
    )
    return f"http://{host_shown}:{port}/"


async def serve_app(
    app: ASGIApp,
    sock: socket.socket,
    *,
    before_shutdown: Callable[[], Awaitable[None]] | None = None,
    bounds: ConnectionBounds | None = None,
    takes_signals: bool = True,
    max_frame_bytes: int | None = None,
) -> None:
    """Serve `app` until cancelled or, with `takes_signals`, until SIGTERM or SIGINT.

    `before_shutdown` ends the work in progress while clients are still connected, so that they receive the final event.
    Without `bounds`, connections may take a quarter of the process's descriptors. Without `max_frame_bytes`, there are
    no WebSockets.
    """
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        # The live page is open to loopback peers only, and any client can send these headers.
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none" if max_frame_bytes is None else "websockets-sansio",
        ws_max_size=max_frame_bytes or 0,
        # A client may be busy for as long as the application lets it be idle.
        ws_ping_timeout=None,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_S,
        # Longer than the SDK waits for its streams, so that no stream is cut before its last event.
        timeout_graceful_shutdown=int(SHUTDOWN_GRACE_S) + 5,
    )
    connections = Connections(bounds or ConnectionBounds(max_connections=connection_limit()))
    server = _Server(config, connections, before_shutdown, takes_signals=takes_signals)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        # Shielded, because cancelling uvicorn's task would skip its graceful shutdown.
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
    """Serve `app` until a signal; blocks. Raises `ConfigError` for a taken port."""
    raise_descriptor_limit()
    sock = listen(host, port)
    asyncio.run(serve_app(app, sock, before_shutdown=before_shutdown))


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        connections: Connections,
        before_shutdown: Callable[[], Awaitable[None]] | None,
        *,
        takes_signals: bool,
    ) -> None:
        super().__init__(config)
        self._takes_signals = takes_signals
        self.server_state: Connections = connections
        self._before_shutdown = before_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Without sockets, because uvicorn would accept connections itself, and without our limits.
        await super().startup(sockets=[])

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(self.config, self.server_state, self.lifespan.state)

        # uvicorn only calls `close` and `wait_closed` on these.
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
        if not self._takes_signals:
            yield
            return
        with super().capture_signals():
            yield
            # Otherwise uvicorn raises the signal again after a clean end, and a requested stop looks like a crash.
            self._captured_signals.clear()
