"""The page's addresses: the page, what it shows, and what it sends. For people at this machine only."""

from functools import cache
from http import HTTPStatus
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from participants.play_page.desk import Desk, Move, Pass
from participants.play_page.gestures import Place
from shared.a2a.local_pages import PAGE_HEADERS, TOKEN_HEADER, Changes, local_only
from shared.errors import ConfigError
from shared.pages import PACKAGE, asset, page_policy
from shared.participants import PLAY_PATH

_OWN = "participants.play_page"
_REFUSAL = "The page for a person who plays is shown on its own machine only, at a loopback address.\n"
# Not longer, so that the server can stop while a page waits.
_WAIT_S = 2.0
_PLACE: TypeAdapter[Place] = TypeAdapter(Place)


def play_routes(desk: Desk, note: str) -> list[Route]:
    """The page at `PLAY_PATH`. `note` is shown on it."""
    pages, changes = _PlayPage(desk, note), Changes()
    guards = [Middleware(local_only, refusal=_REFUSAL)]
    shown = [
        Route(PLAY_PATH + path, endpoint, methods=["GET"], middleware=guards)
        for path, endpoint in (
            ("", pages.front(changes.token)),
            ("/state", pages.state),
            ("/screenshot/{turn:int}", pages.screenshot),
            ("/element", pages.element),
        )
    ]
    return [
        *shown,
        changes.route(f"{PLAY_PATH}/move", TypeAdapter(Move), desk.take),
        changes.route(f"{PLAY_PATH}/pass", TypeAdapter(Pass), desk.take),
    ]


class _PlayPage:
    def __init__(self, desk: Desk, note: str) -> None:
        self._desk = desk
        self._note = note

    def front(self, token: str) -> Any:
        html, policy = _page(self._note, token)
        headers = {**PAGE_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}

        async def front(_: Request) -> Response:
            return HTMLResponse(html, headers=headers)

        return front

    async def state(self, request: Request) -> Response:
        seen = _number(request, "seen")
        return JSONResponse(await self._desk.state(seen, _WAIT_S), headers=PAGE_HEADERS)

    async def screenshot(self, request: Request) -> Response:
        found = self._desk.screenshot(request.path_params["turn"])
        if found is None:
            return PlainTextResponse("not found\n", HTTPStatus.NOT_FOUND, headers=PAGE_HEADERS)
        image, media_type = found
        return Response(image, media_type=media_type, headers=PAGE_HEADERS)

    async def element(self, request: Request) -> Response:
        """The element that a click on this place is for."""
        given = {key: value for key, value in request.query_params.items() if key != "turn"}
        try:
            found = self._desk.aim(_number(request, "turn"), _PLACE.validate_python(given))
        except (ConfigError, ValidationError):
            found = None
        return JSONResponse(found, headers=PAGE_HEADERS)


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


@cache
def _page(note: str, token: str) -> tuple[str, str]:
    """The page, and its Content-Security-Policy."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(_OWN), PackageLoader(PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    css = asset("base.css") + asset("play.css", _OWN)
    script = asset("theme.js") + asset("play.js", _OWN)
    policy = page_policy(script, css=css, connect=True)
    html = environment.get_template("play.html").render(
        # Our own files: the only values that are not escaped.
        css=Markup(css),
        script=Markup(script),
        csp=policy,
        note=note,
        token=token,
        token_header=TOKEN_HEADER,
        path=PLAY_PATH,
    )
    return html, policy
