"""One-time links: they open the pages of a server with a token in a browser that does not know the token.

A link is good for ten minutes and for one browser, which gets a cookie. The cookie admits to pages only (GET), for half
a day or until the server stops. Links and cookies are kept in memory, as digests.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

PATH = "/open"
_LINK_S = 600.0
_SESSION_S = 43_200
# The oldest are dropped.
_MAX_KEPT = 100
_GONE = "This link was used before, or is older than ten minutes. Ask for another one.\n"


class PageLinks:
    """The links and the browsers of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._links: dict[str, float] = {}
        self._sessions: dict[str, float] = {}
        # Cookies are shared by all ports of a host, so two servers there need two names.
        self._cookie = f"wabe_page_{secrets.token_hex(4)}"

    def new(self) -> str:
        """The path of a new link."""
        return f"{PATH}/{self._new_key(self._links, _LINK_S)}"

    def answer(self, scope: Scope, *, has_token: bool) -> Response | None:
        """The answer to a request about links: a new one for a client with the token, or the page that one opens."""
        path, method = scope["path"], scope["method"]
        if method == "POST" and path == PATH and has_token:
            return JSONResponse({"path": self.new()}, headers={"Cache-Control": "no-store"})
        if method != "GET" or not path.startswith(f"{PATH}/"):
            return None
        if not self._is_kept(self._links, path.removeprefix(f"{PATH}/"), takes=True):
            return PlainTextResponse(_GONE, 410)
        # Without the link in its address, so that neither history nor referrer keeps it.
        opened = RedirectResponse("/", 303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
        # Not `strict`: a browser does not send such a cookie when a link on another site led to the page.
        opened.set_cookie(
            self._cookie,
            self._new_key(self._sessions, _SESSION_S),
            max_age=_SESSION_S,
            httponly=True,
            samesite="lax",
            secure=scope["scheme"] == "https",
        )
        return opened

    def admits(self, scope: Scope) -> bool:
        """Whether a request has the cookie of a browser that opened a link."""
        try:
            cookie = SimpleCookie(Headers(scope=scope).get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and self._is_kept(self._sessions, cookie.value)

    def _new_key(self, where: dict[str, float], seconds: float) -> str:
        key = secrets.token_urlsafe(32)
        where[_digest(key)] = self._clock() + seconds
        while len(where) > _MAX_KEPT:
            del where[next(iter(where))]
        return key

    def _is_kept(self, where: dict[str, float], key: str, *, takes: bool = False) -> bool:
        # By digest, so that the time of the look-up says nothing about the key.
        digest = _digest(key)
        until = where.get(digest, 0.0)
        if takes:
            where.pop(digest, None)
        return until > self._clock()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
