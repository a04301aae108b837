"""What every local page has: its addresses, who may read them, and who may change something through them.

Any website that a person visits can send requests to this machine, and can point a host name of its own at it (DNS
rebinding). So a page is for people at this machine, who use a loopback name or the host that its user named, and a
change must come from the page itself: its `Origin`, its token, JSON.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from inspect import iscoroutinefunction
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.errors import ConfigError
from shared.files import decode
from shared.hosts import is_loopback
from shared.pages import TOKEN_HEADER, HtmlPage
from shared.strict_json import parse_json
from shared.validation import validated

MAX_CHANGE_BYTES = 100_000
# What a page shows may come from hostile sites: no other site may frame or load it, and no browser may reinterpret it.
PAGE_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
# Headers that proxies and gateways add: Forwarded, X-Forwarded-For, Via, X-Real-IP, CF-Connecting-IP, True-Client-IP,
# X-Envoy-External-Address and the like.
_FORWARDING = re.compile(r"forwarded|^via$|(?:real|client|connecting)-ip|external-address|original-(?:host|url)")


def local_only(app: ASGIApp, refusal: str, host: str = "") -> ASGIApp:
    """Admit requests from a person at this machine; all others get a 403 with the text `refusal`.

    Both the peer and the `Host` header must be of this machine: a loopback name, or the host `host`. Requests that a
    proxy forwarded are refused: its address hides the peer's.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        admitted = app if _is_from_this_machine(scope, host) else PlainTextResponse(refusal, 403)
        await admitted(scope, receive, send)

    return guarded


Shown = Response | HtmlPage | Path | Mapping[str, Any] | Sequence[Any] | None
PageEndpoint = Callable[[Request], Shown | Awaitable[Shown]]


class PageRefused(Exception):
    """A request that cannot be answered, and why."""

    def __init__(self, status: HTTPStatus, reason: object) -> None:
        super().__init__(str(reason))
        self.status = status


@dataclass(frozen=True)
class LocalPages:
    """The addresses of a page. Unless `is_open`, the ones in `shows` answer people at this machine only (`local_only`).

    Changes must come from the page itself, which contains the `token`. It is not a cookie, because browsers add cookies
    to the requests of other websites as well.
    """

    refusal: str
    host: str = ""
    is_open: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def shows(self, endpoints: Mapping[str, PageEndpoint]) -> list[Route]:
        """Routes by path. What an endpoint returns decides what is sent: a page, a file, JSON, or `None`: not found.

        Endpoints that are not coroutines run in a thread. A `ConfigError` is answered with its text, as not found.
        """
        guards = [] if self.is_open else [Middleware(local_only, refusal=self.refusal, host=self.host)]
        return [
            Route(path, _answering(endpoint), methods=["GET"], middleware=guards)
            for path, endpoint in endpoints.items()
        ]

    def takes(self, path: str, kind: Any, apply: Callable[[Any], Any]) -> Route:
        """A route that takes a change of this kind by POST: what `apply` returns for it is answered, as JSON.

        It runs in a thread. A `ConfigError` that it raises is answered with its text.
        """
        adapter: TypeAdapter[Any] = TypeAdapter(kind)

        async def change(request: Request) -> Response:
            try:
                value = validated(adapter, await self._body(request), "the change")
                return JSONResponse(await asyncio.to_thread(apply, value), headers=PAGE_HEADERS)
            except PageRefused as refusal:
                return JSONResponse({"error": str(refusal)}, refusal.status, headers=PAGE_HEADERS)
            except ConfigError as error:
                return JSONResponse({"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY, headers=PAGE_HEADERS)

        return Route(path, change, methods=["POST"])

    async def _body(self, request: Request) -> Any:
        """The JSON value of a request that may change something. Raises `PageRefused`."""
        if not _is_from_this_machine(request.scope, self.host):
            raise PageRefused(HTTPStatus.FORBIDDEN, "changes are taken from this machine only")
        # Browsers send `Origin` with every POST.
        if _only(request, "origin") != f"{request.scope['scheme']}://{_only(request, 'host')}":
            raise PageRefused(HTTPStatus.FORBIDDEN, "changes are taken from the page itself only")
        # In constant time, so that the response time does not reveal how much of a guess is right.
        if not hmac.compare_digest(_only(request, TOKEN_HEADER).encode(), self.token.encode()):
            raise PageRefused(HTTPStatus.FORBIDDEN, "the server was restarted: reload the page")
        # A form of another website can send neither this type nor the token.
        if _only(request, "content-type").partition(";")[0].strip().lower() != "application/json":
            raise PageRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "changes are sent as application/json")
        try:
            return parse_json(decode(await _bounded_body(request)))
        except ValueError as error:
            raise PageRefused(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from None


def _answering(endpoint: PageEndpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            # What a coroutine function gives is awaited; anything else may read files, and must not delay the server.
            result = endpoint(request) if iscoroutinefunction(endpoint) else asyncio.to_thread(endpoint, request)
            response = _response(await result)
        except PageRefused as refusal:
            response = PlainTextResponse(f"{refusal}\n", refusal.status)
        except ConfigError as error:
            response = PlainTextResponse(f"{error}\n", HTTPStatus.NOT_FOUND)
        response.headers.update(PAGE_HEADERS)
        return response

    return answer


def _response(shown: Any) -> Response:
    match shown:
        case None:
            return PlainTextResponse("not found\n", HTTPStatus.NOT_FOUND)
        case Response():
            return shown
        case HtmlPage(html, policy):
            # In the page itself, a policy cannot say who may frame it.
            return HTMLResponse(html, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})
        case Path():
            return FileResponse(shown)
        case _:
            return JSONResponse(shown)


def _only(request: Request, header: str) -> str:
    """The value of a header that was sent once, else empty: of several it is unclear which one a browser meant."""
    values = request.headers.getlist(header)
    return values[0] if len(values) == 1 else ""


async def _bounded_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_CHANGE_BYTES:
                raise PageRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"larger than {MAX_CHANGE_BYTES} bytes")
    except HTTPException as error:
        # The server's limit.
        raise PageRefused(HTTPStatus(error.status_code), error.detail) from None
    return bytes(body)


def _is_from_this_machine(scope: Scope, admitted_host: str) -> bool:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    is_forwarded = any(_FORWARDING.search(name.decode("latin-1")) for name, _ in scope["headers"])
    # With two `Host` headers it is unclear which one a browser or proxy meant.
    if len(hosts) != 1 or is_forwarded or not scope.get("client"):
        return False
    host, peer = _host_of(hosts[0]), scope["client"][0]
    if is_loopback(host):
        return is_loopback(peer)
    # Whoever connects to an address of this machine from the same address is on this machine.
    own = scope["server"][0] if scope.get("server") else ""
    return bool(host) and host == _name(admitted_host) and (is_loopback(peer) or peer == own)


def _name(host: str) -> str:
    """The host as `_host_of` reads it; empty for an address that stands for all of a machine's."""
    try:
        return "" if ipaddress.ip_address(host).is_unspecified else host.lower()
    except ValueError:
        return host.lower()


def _host_of(header: str) -> str:
    """The name or address in a `Host` header; empty if it is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        return (parts.hostname or "") if parts.netloc == header and "@" not in header else ""
    except ValueError:
        return ""
