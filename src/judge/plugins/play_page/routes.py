"""The page's addresses: the page, what it shows, and what it sends. For people at this machine only."""

from html import escape
from string import Template
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from judge.plugins.play_page.desk import Desk, Move, Pass
from judge.plugins.play_page.gestures import AimPlace
from shared.a2a.local_pages import LocalPages
from shared.errors import ConfigError
from shared.pages import BODY_END, HtmlPage, asset, body_start, page_frame, page_head, page_policy
from shared.participants import PLAY_PATH

_OWN = "judge.plugins.play_page"
_REFUSAL = "The page for a person who plays is shown on its own machine only, at a loopback address.\n"
_NAV = """<span class="home">WABE play</span><span class="link" id="status" role="status">connecting …</span>"""
# Not longer, so that the server can stop while a page waits.
_WAIT_S = 2.0
_PLACE: TypeAdapter[AimPlace] = TypeAdapter(AimPlace)


def play_routes(desk: Desk, note: str) -> list[Route]:
    """The page at `PLAY_PATH`. `note` is shown on it."""
    local = LocalPages(_REFUSAL)
    page = _page(note, local.token)

    async def state(request: Request) -> Any:
        return await desk.state(_number(request, "seen"), _WAIT_S)

    async def screenshot(request: Request) -> Response | None:
        picture = desk.screenshot(request.path_params["turn"])
        return Response(picture[0], media_type=picture[1]) if picture else None

    async def element(request: Request) -> Response:
        """The element that a click on this place is for."""
        query = {key: value for key, value in request.query_params.items() if key != "turn"}
        try:
            aim = desk.aim(_number(request, "turn"), _PLACE.validate_python(query))
        except (ConfigError, ValidationError):
            aim = None
        return JSONResponse(aim)

    return [
        *local.shows(
            {
                PLAY_PATH: lambda _: page,
                f"{PLAY_PATH}/state": state,
                f"{PLAY_PATH}/screenshot/{{turn:int}}": screenshot,
                f"{PLAY_PATH}/element": element,
            }
        ),
        local.takes(f"{PLAY_PATH}/move", Move, desk.take),
        local.takes(f"{PLAY_PATH}/pass", Pass, desk.take),
    ]


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _page(note: str, token: str) -> HtmlPage:
    """The page, which is the same for all tasks. A script fills it with text."""
    css = asset("base.css") + asset("play.css", _OWN)
    script = "".join(map(asset, ("theme.js", "change.js"))) + asset("play.js", _OWN)
    policy = page_policy(script, css=css, connect=True)
    frame = page_frame(
        title="Play · WABE",
        begin=body_start(token),
        label="Play",
        nav=_NAV,
        content=Template(asset("play.html", _OWN)).substitute(note=escape(note)),
        script=script,
        end=BODY_END,
    )
    return HtmlPage(page_head(policy, css) + frame, policy)
