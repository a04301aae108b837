"""The page's addresses: the page, what it shows, and what it sends. For people at this machine only."""

from html import escape
from http import HTTPStatus
from string import Template

from pydantic import TypeAdapter, ValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from participants.play_page.desk import Desk, Move, Pass
from participants.play_page.gestures import AimPlace
from shared.a2a.local_pages import PAGE_HEADERS, TOKEN_HEADER, Changes, local_only
from shared.errors import ConfigError
from shared.pages import asset, page_policy
from shared.participants import PLAY_PATH

_OWN = "participants.play_page"
_REFUSAL = "The page for a person who plays is shown on its own machine only, at a loopback address.\n"
# Not longer, so that the server can stop while a page waits.
_WAIT_S = 2.0
_PLACE: TypeAdapter[AimPlace] = TypeAdapter(AimPlace)


def play_routes(desk: Desk, note: str) -> list[Route]:
    """The page at `PLAY_PATH`. `note` is shown on it."""
    changes = Changes()
    pages = _PlayPage(desk, *_page(note, changes.token))
    guards = [Middleware(local_only, refusal=_REFUSAL)]
    page_routes = [
        Route(PLAY_PATH + path, endpoint, methods=["GET"], middleware=guards)
        for path, endpoint in (
            ("", pages.front),
            ("/state", pages.state),
            ("/screenshot/{turn:int}", pages.screenshot),
            ("/element", pages.element),
        )
    ]
    return [
        *page_routes,
        changes.route(f"{PLAY_PATH}/move", TypeAdapter(Move), desk.take),
        changes.route(f"{PLAY_PATH}/pass", TypeAdapter(Pass), desk.take),
    ]


class _PlayPage:
    def __init__(self, desk: Desk, html: str, policy: str) -> None:
        self._desk = desk
        self._html = html
        self._policy = policy

    async def front(self, _: Request) -> Response:
        headers = {**PAGE_HEADERS, "Content-Security-Policy": f"{self._policy}; frame-ancestors 'none'"}
        return HTMLResponse(self._html, headers=headers)

    async def state(self, request: Request) -> Response:
        last_seen = _number(request, "seen")
        return JSONResponse(await self._desk.state(last_seen, _WAIT_S), headers=PAGE_HEADERS)

    async def screenshot(self, request: Request) -> Response:
        picture = self._desk.screenshot(request.path_params["turn"])
        if picture is None:
            return PlainTextResponse("not found\n", HTTPStatus.NOT_FOUND, headers=PAGE_HEADERS)
        image, media_type = picture
        return Response(image, media_type=media_type, headers=PAGE_HEADERS)

    async def element(self, request: Request) -> Response:
        """The element that a click on this place is for."""
        query = {key: value for key, value in request.query_params.items() if key != "turn"}
        try:
            aim = self._desk.aim(_number(request, "turn"), _PLACE.validate_python(query))
        except (ConfigError, ValidationError):
            aim = None
        return JSONResponse(aim, headers=PAGE_HEADERS)


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _page(note: str, token: str) -> tuple[str, str]:
    """The page, which is the same for all tasks, and its Content-Security-Policy. A script fills it with text."""
    css = asset("base.css") + asset("play.css", _OWN)
    script = asset("theme.js") + asset("play.js", _OWN)
    context = {"note": note, "token": token, "header": TOKEN_HEADER, "path": PLAY_PATH}
    values = {name: escape(value) for name, value in context.items()}
    # Without a template engine, which images of participants do not have.
    html = Template(asset("play.html", _OWN)).substitute(values, css=css, script=script)
    return html, page_policy(script, css=css, connect=True)
