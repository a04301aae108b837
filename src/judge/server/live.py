"""The live page: shows the running assessments with bounded memory.

A hub keeps only the newest runs, and for each its tasks with the last few actions; a viewer receives the changes since
its last update. So memory is bounded, regardless of the length of a run and the speed of its viewers. The routes are
read-only and serve only the page and, for runs in the hub, the screenshots, the steps, the task pages and the report.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from judge.records.events import Event, RunDone, RunStarted, Sink, StepBegun, TaskDone, TaskEvent
from judge.records.verdicts import TaskOutcome
from judge.report.data import read_task
from judge.report.pages import Renderer
from judge.results.rates import CountedAttempt, Rate
from judge.results.submission import rate_text
from judge.server.live_records import LiveRecords, LiveTask, RunRecord, steps_of
from judge.server.reports import Reports
from judge.store.layout import RunStore, TaskStore
from shared.a2a.local_pages import LocalPages, PageRefused
from shared.a2a.serving import SHUTDOWN_GRACE_S

# Per run: the running tasks and those that ended last. Limited to bound memory, because anyone on this machine may open
# the page.
MAX_TASKS = 1000
MAX_VIEWERS = 32
_MAX_RUNS = 4
# The pause between two updates of a viewer, so that a burst of events becomes one message.
_PAUSE_S = 0.2
# The interval of heartbeats to viewers when nothing changes.
_SILENCE_S = 15.0

# A task in an epoch, as `key_of` names it.
_TASK = re.compile(r"([A-Za-z0-9_-]{1,128})(?:\.([1-9][0-9]{0,2}))?")
_IMAGE = re.compile(r"(?:step_\d{3,6}|(screenshot))\.(?:jpg|png|webp)")
# Limited, because rendering the page of a long episode takes time and much memory.
_RENDERED_AT_ONCE = 2
# A viewer that stops reading is disconnected.
_SEND_TIMEOUT_S = 30.0
_REFUSAL = (
    "The live page is shown on the judge's own machine only, at a loopback address: open it there, or start the judge"
    " with WABE_AUTH_TOKEN set or with --public-live.\n"
)


@dataclass
class LiveRun:
    """One run as shown to viewers. `state` is `running`, `finished` or `stopped`; `total` counts attempts."""

    id: str
    began: float
    ended_at: float | None = None
    state: str = "running"
    scenario: str = ""
    player: str = ""
    total: int = 0
    epochs: int = 1
    kept: int = 0
    tasks: dict[str, LiveTask] = field(default_factory=dict)
    # Of all tasks, including those that are no longer in `tasks`.
    outcomes: dict[str, str] = field(default_factory=dict)
    # How many attempts are under attack, and the keys of those that are known: they count in no rate.
    attacks: int = 0
    attacked: set[str] = field(default_factory=set)
    # From before a restart, so known only from its files.
    is_restored: bool = False
    # Of a sealed task set: nothing is read from its files.
    is_sealed: bool = False
    is_read: bool = False
    has_pages: bool = False
    # The tasks that ended in this start; those kept from before took no time.
    played: int = 0

    def take(self, event: Event, version: int, now: float) -> None:
        if isinstance(event, StepBegun) and not self.has_pages:
            # From now on the run's files name the participant.
            self.has_pages, self.is_read = True, False
        match event:
            case RunStarted():
                self.total, self.epochs, self.kept, self.began = event.attempts, event.epochs, event.kept, now
                self.attacks = event.attacked * event.epochs
            case RunDone():
                self.ended_at, self.state = now, "finished"
            case TaskEvent():
                task = self.tasks.get(event.key) or LiveTask(self.id, event.key)
                task.take(event)
                self.changed(task, version)
                if isinstance(event, TaskDone):
                    self.outcomes[task.id] = event.outcome
                    self.attacked |= {task.id} if event.attacked else set()
                    self.played += 1

    def add(self, record: RunRecord, version: int) -> None:
        """Add data from the run's files; data from events is newer and is kept."""
        self.scenario, self.player = record.scenario, record.player
        if self.is_restored:
            self.state = "finished" if record.is_complete else "stopped"
            self.total, self.epochs, self.ended_at = record.total, record.epochs, record.seconds
            self.attacks = len(record.attacked)
        self.attacked |= record.attacked
        for task in record.tasks:
            # Tasks without a verdict are played or judged again when a run is resumed.
            is_settled = self.is_restored or task.state in ("success", "failure")
            if is_settled and task.id not in self.tasks and task.id not in self.outcomes:
                self.changed(task, version)
                self.outcomes[task.id] = task.state

    def changed(self, task: LiveTask, version: int) -> None:
        """Move a changed task to the end; if there are too many, drop the one that ended first."""
        self.tasks.pop(task.id, None)
        self.tasks[task.id] = task
        task.version = version
        if len(self.tasks) > MAX_TASKS:
            ended_keys = (key for key, known in self.tasks.items() if not known.is_open)
            self.tasks.pop(next(ended_keys, next(iter(self.tasks))))

    def changed_since(self, version: int) -> list[LiveTask]:
        """The tasks that changed after `version`, in the order of their last changes."""
        return [task for task in self.tasks.values() if task.version > version]

    def view(self, now: float) -> dict[str, Any]:
        every = {key: CountedAttempt(key.partition(".")[0], outcome) for key, outcome in self.outcomes.items()}
        counts = Rate.of(every.values()).counts
        rate = Rate.of(counted for key, counted in every.items() if key not in self.attacked)
        # For tasks not played yet, only their number is known.
        clean = self.total - self.attacks
        fields = {**rate.published(), "total_tasks": clean // self.epochs, "attempts": clean}
        return {
            **{name: getattr(self, name) for name in ("id", "state", "scenario", "player", "total", "epochs", "kept")},
            "counts": {outcome: count for outcome, count in counts.items() if outcome in get_args(TaskOutcome)},
            "attacks": self.attacks,
            "rate": rate_text(fields),
            "rate_of_all": round(100 * rate.successes / clean, 1) if clean else 0.0,
            "seconds": round((now if self.ended_at is None else self.ended_at) - self.began, 1),
            "left_s": self._left_s(now),
        }

    def _left_s(self, now: float) -> float | None:
        """About how long the rest will take, as the terminal estimates it."""
        waiting = self.total - self.kept - self.played
        if self.ended_at is not None or not self.played or waiting <= 0:
            return None
        return round((now - self.began) / self.played * waiting, 1)


class LiveHub:
    """Receives the events of runs and updates viewers. Use it in one event loop only.

    With `records` it also shows data from the files of its runs, and runs from before a restart.
    """

    def __init__(
        self,
        records: LiveRecords | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_runs: int = _MAX_RUNS,
    ) -> None:
        self._records = records
        self._clock = clock
        self._max_runs = max_runs
        self._version = 0
        self._viewers: set[asyncio.Event] = set()
        self._closed = False
        earlier = records.remembered(max_runs) if records else ()
        # The runs shown, by id.
        self.runs: dict[str, LiveRun] = {}
        for run_id in earlier:
            self.show(run_id)

    def show(self, run_id: str) -> None:
        """Show a run that is not being played, from its files."""
        self.runs[run_id] = LiveRun(run_id, 0.0, ended_at=0.0, state="stopped", is_restored=True)

    def watch(self, run_id: str, *, is_sealed: bool = False) -> Sink:
        """The sink for the events of one run. If there are too many runs, drops the oldest, finished ones first."""
        run = LiveRun(run_id, self._clock(), is_sealed=is_sealed)
        # Removed first, so that a resumed run becomes the newest.
        self.runs.pop(run_id, None)
        self.runs[run_id] = run
        while len(self.runs) > self._max_runs:
            ended_keys = (key for key, known in self.runs.items() if known.ended_at is not None)
            self.runs.pop(next(ended_keys, next(iter(self.runs))))
        if self._records and not is_sealed:
            self._records.remember(run_id)

        def take(event: Event) -> None:
            run.take(event, self._version + 1, self._clock())
            self._changed()

        self._changed()
        return take

    def end(self, run_id: str) -> None:
        """Mark a run as over. If it was cancelled or failed, its unfinished tasks are shown as stopped."""
        run = self.runs.get(run_id)
        if run is None or run.ended_at is not None:
            return
        run.ended_at, run.state = self._clock(), "stopped"
        for task in [task for task in run.tasks.values() if task.is_open]:
            task.state, task.reason = "stopped", "the run was stopped"
            run.changed(task, self._version + 1)
        self._changed()

    def reported(self, run_id: str) -> RunStore | None:
        """A run that has ended, if the viewers may see its report."""
        run = self.runs.get(run_id)
        if run is None or run.is_sealed or run.state == "running":
            return None
        return self._records.reported(run_id) if self._records else None

    @property
    def is_full(self) -> bool:
        """Whether the limit on viewers is reached."""
        return len(self._viewers) >= MAX_VIEWERS

    async def changes(self) -> AsyncGenerator[dict[str, Any], None]:
        """First everything, then changes, at most five times a second; ends when the hub is closed or full.

        Without changes the totals are sent at intervals, so that a viewer notices when the judge is gone.
        """
        if self.is_full:
            return
        wake, last_version = asyncio.Event(), -1
        self._viewers.add(wake)
        try:
            # Send the last changes even after closing, because a judge may stop as soon as its run is over.
            while not self._closed or last_version < self._version:
                wake.clear()
                await self._read_records()
                update, last_version = self.since(last_version), self._version
                yield update
                if not self._closed:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_SILENCE_S):
                            await wake.wait()
                await asyncio.sleep(0 if self._closed else _PAUSE_S)
        finally:
            self._viewers.discard(wake)

    def since(self, version: int) -> dict[str, Any]:
        """Every run's totals and the tasks that changed after `version`; `full` if that is everything."""
        now = self._clock()
        return {
            "full": version < 0,
            "runs": [run.view(now) | {"report": self._report(run)} for run in self.runs.values()],
            "tasks": [task.view() for run in self.runs.values() for task in run.changed_since(version)],
        }

    async def close(self) -> None:
        """Send every viewer what has changed and disconnect it, so that the server can stop."""
        self._closed = True
        for viewer in self._viewers:
            viewer.set()

    def _report(self, run: LiveRun) -> dict[str, str | None] | None:
        is_shown = self._records and run.state != "running" and not run.is_sealed
        return self._records.report(run.id) if self._records and is_shown else None

    async def _read_records(self) -> None:
        """Add data from the runs' files. Only when there is a viewer, because reading a long run takes a while."""
        for run in [run for run in self.runs.values() if self._records and not (run.is_read or run.is_sealed)]:
            assert self._records
            # Before the await, so that another viewer does not read the same files.
            run.is_read = True
            run.add(await asyncio.to_thread(self._records.read, run.id), self._version + 1)
            self._changed()

    def _changed(self) -> None:
        self._version += 1
        for viewer in self._viewers:
            viewer.set()


def live_routes(hub: LiveHub, output_dir: Path, *, is_open: bool = False) -> list[Route]:
    """Routes for the running assessment: the page at `/`, its events, screenshots, steps, pages of tasks, reports.

    Unless `is_open`, they answer requests from this machine only.
    """
    pages = _Pages(hub, output_dir)
    return LocalPages(_REFUSAL, is_open=is_open).shows(
        {
            "/": lambda _: pages.front,
            "/events": pages.events,
            "/live/{run_id:path}/shot/{task_id}": pages.newest_screenshot,
            "/live/{run_id:path}/steps/{task_id}.json": pages.steps,
            # Before the task pages, because the report has pages of the same names.
            "/live/{run_id:path}/report/{name:path}": pages.report,
            "/live/{run_id:path}/tasks/{task_id}.html": pages.task,
            "/live/{run_id:path}/images/{task_id}/{name}": pages.image,
        }
    )


class _Pages:
    def __init__(self, hub: LiveHub, output_dir: Path) -> None:
        self._hub = hub
        self._output_dir = output_dir
        self._renderer = Renderer()
        self._rendering = asyncio.Semaphore(_RENDERED_AT_ONCE)
        self._reports = Reports()
        self.front = self._renderer.of_server("live.html")

    async def events(self, _: Request) -> Response:
        if self._hub.is_full:
            raise PageRefused(HTTPStatus.SERVICE_UNAVAILABLE, "too many viewers")
        updates = (ServerSentEvent(data=json.dumps(update, allow_nan=False)) async for update in self._hub.changes())
        return EventSourceResponse(
            updates,
            ping=15,
            send_timeout=_SEND_TIMEOUT_S,
            # Long enough for viewers to see the runs end after a signal; the hub is closed then.
            shutdown_grace_period=SHUTDOWN_GRACE_S,
        )

    async def newest_screenshot(self, request: Request) -> Path | None:
        run = self._hub.runs.get(request.path_params["run_id"])
        task = run.tasks.get(request.path_params["task_id"]) if run else None
        store = self._shown_task(request)
        if store is None or task is None or not task.page:
            return None
        files = [] if task.state == "running" else [*store.folder.glob("final/screenshot.*")]
        files += store.folder.glob(f"trajectory/step_{task.page - 1:03d}.*")
        return _screenshot(store, next((path.name for path in files), ""))

    async def steps(self, request: Request) -> list[dict[str, Any]] | None:
        store, after = self._shown_task(request), request.query_params.get("after", "0")
        if store is None or not re.fullmatch(r"[0-9]{1,4}", after):
            return None
        async with self._rendering:
            return await asyncio.to_thread(steps_of, store, int(after))

    async def report(self, request: Request) -> Path | None:
        store = self._hub.reported(request.path_params["run_id"])
        return await self._reports.file([store], request.path_params["name"]) if store else None

    async def image(self, request: Request) -> Path | None:
        return _screenshot(self._shown_task(request), request.path_params["name"])

    async def task(self, request: Request) -> Response | None:
        store = self._shown_task(request)
        if store is None or not store.folder.is_dir():
            return None
        # In a thread: reading a long episode takes a while and must not delay the assessment.
        async with self._rendering:
            task = await asyncio.to_thread(read_task, store)
            return HTMLResponse(await asyncio.to_thread(self._renderer.task, task, home="/"))

    def _shown_task(self, request: Request) -> TaskStore | None:
        """The folder of a task whose run is shown; no other folder can be requested."""
        run_id, task_match = request.path_params["run_id"], _TASK.fullmatch(request.path_params["task_id"])
        run = self._hub.runs.get(run_id)
        if run is None or run.is_sealed or not task_match:
            return None
        return RunStore(self._output_dir, run_id).task(task_match[1], int(task_match[2] or 1))


def _screenshot(store: TaskStore | None, name: str) -> Path | None:
    # Validated before it becomes part of a path; links are refused because they could point outside the folder.
    if store is None or not (image := _IMAGE.fullmatch(name)):
        return None
    path = store.folder / ("final" if image[1] else "trajectory") / name
    return path if path.is_file() and not path.is_symlink() else None
