"""The live page: what is running now, kept small enough to be shown to anyone who may see it.

A hub keeps the newest runs only, and of each its tasks with the last few actions; a viewer gets what changed since its
last update. So memory is bounded however long a run is and however slow its viewers are. The routes are read-only and
serve nothing but the page, the screenshots and the task pages of the runs in the hub.
"""

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from judge.events import (
    Event,
    RunDone,
    RunStarted,
    Sink,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
)
from judge.report.data import read_task
from judge.report.pages import Renderer
from judge.store import RunStore, TaskStore
from shared.a2a.serving import loopback_only
from shared.text import one_line

# Memory must stay bounded: a run may have any number of tasks, and anyone on this machine may open the page.
MAX_TASKS = 5000
MAX_VIEWERS = 32
_MAX_RUNS = 4
_SHOWN_ACTIONS = 8
_TEXT_CHARS = 300
# Between two updates of a viewer, so that a burst of events becomes one message.
_PAUSE_S = 0.2

# A task in an epoch, as `key_of` names it.
_TASK = re.compile(r"([A-Za-z0-9_-]{1,128})(?:\.([1-9][0-9]{0,2}))?")
_IMAGE = re.compile(r"(?:step_\d{3,6}|(screenshot))\.(?:jpg|png|webp)")
# Rendering the page of a long episode takes a while and much memory.
_RENDERED_AT_ONCE = 2
# A viewer that stops reading is disconnected.
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
_MISSING = PlainTextResponse("not found", status_code=404, headers=_HEADERS)


@dataclass
class _Task:
    """One task as viewers see it; `version` is the hub's version of its last change."""

    run: str
    id: str
    state: str = "running"
    attempt: int = 1
    step: int = 0
    max_steps: int = 0
    reason: str = ""
    actions: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_SHOWN_ACTIONS))
    version: int = 0

    def take(self, event: TaskStarted | TaskRetried | StepDone | TaskJudging | TaskDone) -> None:
        match event:
            case TaskStarted():
                # A further attempt starts over.
                self.state, self.attempt, self.max_steps, self.step = "running", event.attempt, event.max_steps, 0
                self.actions.clear()
            case StepDone():
                self.step, self.max_steps = event.step, event.max_steps
                self.actions.append((event.step, one_line(event.action, _TEXT_CHARS)))
            case TaskRetried():
                self.actions.append((self.step, f"aborted, trying again: {one_line(event.cause, _TEXT_CHARS)}"))
            case TaskJudging():
                self.state = "judging"
            case TaskDone():
                self.state, self.reason, self.step = event.outcome, one_line(event.reason, _TEXT_CHARS), event.steps
                # A finished task has a page of its own, which shows them all.
                self.actions.clear()

    def view(self) -> dict[str, Any]:
        shown = {name: value for name, value in vars(self).items() if name != "version"}
        return shown | {"actions": list(self.actions)}


@dataclass
class _Run:
    """One run as viewers see it."""

    id: str
    began: float
    ended: float | None = None
    total: int = 0
    kept: int = 0
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("success", "failure", "unscored", "aborted"), 0)
    )
    tasks: dict[str, _Task] = field(default_factory=dict)

    def take(self, event: Event, version: int, now: float) -> None:
        match event:
            case RunStarted():
                self.total, self.kept, self.began = event.attempts, event.kept, now
            case RunDone():
                self.ended = now
            case TaskStarted() | TaskRetried() | StepDone() | TaskJudging() | TaskDone():
                task = self.tasks.get(event.key)
                if task is None:
                    if len(self.tasks) >= MAX_TASKS:
                        return
                    task = self.tasks[event.key] = _Task(self.id, event.key)
                task.take(event)
                task.version = version
                if isinstance(event, TaskDone):
                    self.counts[event.outcome] += 1

    def view(self, now: float) -> dict[str, Any]:
        return {
            "id": self.id,
            "total": self.total,
            "kept": self.kept,
            "counts": self.counts,
            "done": self.ended is not None,
            "seconds": round((self.ended or now) - self.began, 1),
        }


class LiveHub:
    """Takes the events of runs and updates viewers. Use it in one event loop only."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, max_runs: int = _MAX_RUNS) -> None:
        self._clock = clock
        self._max_runs = max_runs
        self._runs: dict[str, _Run] = {}
        self._version = 0
        self._viewers: set[asyncio.Event] = set()
        self._closed = False

    def watch(self, run_id: str) -> Sink:
        """The sink for the events of one run; of too many runs the oldest is dropped, finished ones first."""
        run = _Run(run_id, self._clock())
        # Removed first, so that a resumed run becomes the newest.
        self._runs.pop(run_id, None)
        self._runs[run_id] = run
        while len(self._runs) > self._max_runs:
            ended = (key for key, known in self._runs.items() if known.ended is not None)
            self._runs.pop(next(ended, next(iter(self._runs))))

        def take(event: Event) -> None:
            run.take(event, self._version + 1, self._clock())
            self._changed()

        self._changed()
        return take

    def end(self, run_id: str) -> None:
        """Call it when the run is over. If it was cancelled or failed, its open tasks are shown as stopped."""
        run = self._runs.get(run_id)
        if run is None or run.ended is not None:
            return
        run.ended = self._clock()
        for task in run.tasks.values():
            if task.state in ("running", "judging"):
                task.state, task.reason, task.version = "stopped", "the run was stopped", self._version + 1
        self._changed()

    def knows(self, run_id: str) -> bool:
        """Whether the run is shown."""
        return run_id in self._runs

    def step_of(self, run_id: str, task_id: str) -> int | None:
        """How many steps of a task are done; `None` for an unknown task."""
        run = self._runs.get(run_id)
        task = run.tasks.get(task_id) if run else None
        return task.step if task else None

    @property
    def is_full(self) -> bool:
        """Whether the limit on viewers is reached."""
        return len(self._viewers) >= MAX_VIEWERS

    async def changes(self) -> AsyncGenerator[dict[str, Any], None]:
        """First everything, then what changed, at most five times a second; ends when the hub is closed."""
        wake, seen = asyncio.Event(), -1
        self._viewers.add(wake)
        try:
            while not self._closed:
                wake.clear()
                update, seen = self.since(seen), self._version
                yield update
                await wake.wait()
                await asyncio.sleep(0 if self._closed else _PAUSE_S)
        finally:
            self._viewers.discard(wake)

    def since(self, version: int) -> dict[str, Any]:
        """Every run's totals and the tasks that changed after `version`."""
        now = self._clock()
        tasks = (task for run in self._runs.values() for task in run.tasks.values())
        return {
            "runs": [run.view(now) for run in self._runs.values()],
            "tasks": [task.view() for task in tasks if task.version > version],
        }

    async def close(self) -> None:
        """Disconnect every viewer, so that the server can stop."""
        self._closed = True
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        for viewer in self._viewers:
            viewer.set()


def live_routes(hub: LiveHub, output_dir: Path, *, is_open: bool = False) -> list[Route]:
    """Routes for the running assessment: the page at `/`, its events, screenshots, and the pages of finished tasks.

    Unless `is_open`, they answer requests from this machine only.
    """
    pages = _Pages(hub, output_dir)
    guards = [] if is_open else [Middleware(loopback_only, refusal=_REFUSAL)]
    return [
        Route(path, endpoint, methods=["GET"], middleware=guards)
        for path, endpoint in (
            ("/", pages.front),
            ("/events", pages.events),
            ("/live/{run_id:path}/shot/{task_id}", pages.newest_screenshot),
            ("/live/{run_id:path}/tasks/{task_id}.html", pages.task),
            ("/live/{run_id:path}/images/{task_id}/{name}", pages.image),
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
        updates = (ServerSentEvent(data=json.dumps(update, allow_nan=False)) async for update in self._hub.changes())
        return EventSourceResponse(updates, ping=15, send_timeout=_SEND_TIMEOUT_S, headers=_HEADERS)

    async def newest_screenshot(self, request: Request) -> Response:
        step = self._hub.step_of(request.path_params["run_id"], request.path_params["task_id"])
        store = self._shown_task(request)
        if store is None or not step:
            return _MISSING
        files = (store.folder / "trajectory").glob(f"step_{step - 1:03d}.*")
        return _screenshot(store, next((path.name for path in files), ""))

    async def image(self, request: Request) -> Response:
        return _screenshot(self._shown_task(request), request.path_params["name"])

    async def task(self, request: Request) -> Response:
        store = self._shown_task(request)
        if store is None or not store.folder.is_dir():
            return _MISSING
        # In a thread: reading a long episode takes a while and must not delay the assessment.
        async with self._rendering:
            task = await asyncio.to_thread(read_task, store)
            html = await asyncio.to_thread(self._renderer.task, task, home="/")
        return HTMLResponse(html, headers=_HEADERS)

    def _shown_task(self, request: Request) -> TaskStore | None:
        """The folder of a task whose run is shown; nothing else on the disk has an address."""
        run_id, named = request.path_params["run_id"], _TASK.fullmatch(request.path_params["task_id"])
        if not self._hub.knows(run_id) or not named:
            return None
        return RunStore(self._output_dir, run_id).task(named[1], int(named[2] or 1))


def _screenshot(store: TaskStore | None, name: str) -> Response:
    # The name is checked before it becomes part of a path, and a link could lead out of the folder.
    if store is None or not (image := _IMAGE.fullmatch(name)):
        return _MISSING
    path = store.folder / ("final" if image[1] else "trajectory") / name
    return FileResponse(path, headers=_HEADERS) if path.is_file() and not path.is_symlink() else _MISSING
