"""The rules of every local page: who may read it, and who may change something through it.

Any website that a person visits can send requests to this machine, and can point a host name of its own at it (DNS
rebinding). So a page is for people at this machine, who use a loopback name or the host that its user named, and a
change must come from the page itself: its `Origin`, its token, JSON.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.errors import ConfigError
from shared.files import decode
from shared.hosts import is_loopback
from shared.strict_json import parse_json
from shared.validation import validated

TOKEN_HEADER = "X-WABE-Token"
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


@dataclass(frozen=True)
class Changes:
    """Admits changes that come from the server's own page, which contains the `token`.

    The token is not a cookie, because browsers add cookies to the requests of other websites as well.
    """

    host: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def route(self, path: str, adapter: TypeAdapter[Any], apply: Callable[[Any], Any]) -> Route:
        """A route that takes a change by POST: `apply` gets the validated value and returns what is answered, as JSON.

        It runs in a thread. A `ConfigError` that it raises is answered with its text.
        """

        async def change(request: Request) -> Response:
            try:
                value = validated(adapter, await self._body(request), "the change")
                return JSONResponse(await asyncio.to_thread(apply, value), headers=PAGE_HEADERS)
            except _RequestRefused as refusal:
                return JSONResponse({"error": str(refusal)}, refusal.status, headers=PAGE_HEADERS)
            except ConfigError as error:
                return JSONResponse({"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY, headers=PAGE_HEADERS)

        return Route(path, change, methods=["POST"])

    async def _body(self, request: Request) -> Any:
        """The JSON value of a request that may change something. Raises `_RequestRefused`."""
        if not _is_from_this_machine(request.scope, self.host):
            raise _RequestRefused(HTTPStatus.FORBIDDEN, "changes are taken from this machine only")
        # Browsers send `Origin` with every POST.
        if _only(request, "origin") != f"{request.scope['scheme']}://{_only(request, 'host')}":
            raise _RequestRefused(HTTPStatus.FORBIDDEN, "changes are taken from the page itself only")
        # In constant time, so that the response time does not reveal how much of a guess is right.
        if not hmac.compare_digest(_only(request, TOKEN_HEADER).encode(), self.token.encode()):
            raise _RequestRefused(HTTPStatus.FORBIDDEN, "the server was restarted: reload the page")
        # A form of another website can send neither this type nor the token.
        if _only(request, "content-type").partition(";")[0].strip().lower() != "application/json":
            raise _RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "changes are sent as application/json")
        try:
            return parse_json(decode(await _bounded_body(request)))
        except ValueError as error:
            raise _RequestRefused(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from None


class _RequestRefused(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


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
                raise _RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"larger than {MAX_CHANGE_BYTES} bytes")
    except HTTPException as error:
        # The server's own limit.
        raise _RequestRefused(HTTPStatus(error.status_code), error.detail) from None
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
