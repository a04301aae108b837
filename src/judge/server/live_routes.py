"""The live page over HTTP: read-only, only files of runs that are shown, and only screenshots among them."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from judge.report.data import read_task
from judge.report.pages import Renderer
from judge.server.live import LiveHub
from judge.store import RunStore
from shared.a2a.serving import loopback_only
from shared.models import TASK_ID

_IMAGE = re.compile(r"step_\d{3,6}\.(?:jpg|png|webp)")
_SUFFIXES = ("jpg", "png", "webp")
_RENDERED_AT_ONCE = 2
_SEND_TIMEOUT_S = 30.0
_REFUSAL = (
    "The live page is shown on the judge's own machine only, at a loopback address: open it there, or start the judge"
    " with WABE_AUTH_TOKEN set or with --public-live.\n"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def live_routes(hub: LiveHub, output_dir: Path, *, is_open: bool = False) -> list[Route]:
    """Routes for the running assessment: the page at `/`, its events, screenshots, and the pages of finished tasks.

    All of them answer only people at this machine, unless `is_open`.
    """
    pages = _Pages(hub, output_dir)
    guards = [] if is_open else [Middleware(loopback_only, refusal=_REFUSAL)]
    return [
        Route(path, endpoint, methods=["GET"], middleware=guards)
        for path, endpoint in (
            ("/", pages.front),
            ("/events", pages.events),
            ("/live/{run_id}/shot/{task_id}", pages.newest_screenshot),
            ("/live/{run_id}/tasks/{task_id}.html", pages.task),
            ("/live/{run_id}/images/{task_id}/{name}", pages.image),
        )
    ]


class _Pages:
    def __init__(self, hub: LiveHub, output_dir: Path) -> None:
        self._hub = hub
        self._output_dir = output_dir
        self._renderer = Renderer()
        self._rendering = asyncio.Semaphore(_RENDERED_AT_ONCE)
        html, policy = self._renderer.live()
        self._front = HTMLResponse(
            html, headers=_HEADERS | {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
        )

    async def front(self, _: Request) -> Response:
        return self._front

    async def events(self, _: Request) -> Response:
        if self._hub.is_full:
            return PlainTextResponse("too many viewers", status_code=503, headers=_HEADERS)
        return EventSourceResponse(self._stream(), ping=15, send_timeout=_SEND_TIMEOUT_S, headers=_HEADERS)

    async def _stream(self) -> AsyncIterator[ServerSentEvent]:
        async for update in self._hub.changes():
            yield ServerSentEvent(data=json.dumps(update, allow_nan=False))

    async def newest_screenshot(self, request: Request) -> Response:
        folder = self._task_folder(request)
        step = self._hub.step_of(request.path_params["run_id"], request.path_params["task_id"])
        if folder is None or not step:
            return _missing()
        names = (f"step_{step - 1:03d}.{suffix}" for suffix in _SUFFIXES)
        return next((_file(folder / name) for name in names if (folder / name).is_file()), _missing())

    async def image(self, request: Request) -> Response:
        folder, name = self._task_folder(request), request.path_params["name"]
        return _missing() if folder is None or not _IMAGE.fullmatch(name) else _file(folder / name)

    async def task(self, request: Request) -> Response:
        folder = self._task_folder(request)
        if folder is None or not folder.is_dir():
            return _missing()
        store = RunStore(self._output_dir, request.path_params["run_id"])
        # Reading a long episode takes a while; the assessment must not wait for a viewer.
        async with self._rendering:
            task = await asyncio.to_thread(read_task, store.task(request.path_params["task_id"]))
            html = await asyncio.to_thread(self._renderer.task, task, home="/")
        return HTMLResponse(html, headers=_HEADERS)

    def _task_folder(self, request: Request) -> Path | None:
        """The screenshots' folder of a task that is shown; nothing else of the disk has an address."""
        run_id, task_id = request.path_params["run_id"], request.path_params["task_id"]
        if not self._hub.knows(run_id) or not TASK_ID.fullmatch(task_id):
            return None
        return RunStore(self._output_dir, run_id).task(task_id).folder / "trajectory"


def _file(path: Path) -> Response:
    return FileResponse(path, headers=_HEADERS) if path.is_file() and not path.is_symlink() else _missing()


def _missing() -> Response:
    return PlainTextResponse("not found", status_code=404, headers=_HEADERS)
