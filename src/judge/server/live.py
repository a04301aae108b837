"""What is going on, kept small enough to be shown to anyone who asks: the state behind the live page.

A hub keeps the newest runs only, and of each its tasks with the last few actions; a viewer gets what changed since it
last looked. So memory is bounded however long a run is and however slow its viewers are. No I/O here.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from judge.events import Event, RunDone, RunStarted, Sink, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from shared.text import one_line

MAX_RUNS = 4
MAX_TASKS = 5000
MAX_VIEWERS = 32
_SHOWN_ACTIONS = 8
_TEXT_CHARS = 300
_PAUSE_S = 0.2


class _Task:
    """One task as viewers see it."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.state = "running"
        self.attempt = 1
        self.step = 0
        self.max_steps = 0
        self.reason = ""
        self.actions: deque[tuple[int, str]] = deque(maxlen=_SHOWN_ACTIONS)
        self.version = 0

    def view(self, run_id: str) -> dict[str, Any]:
        return {
            "run": run_id,
            "id": self.task_id,
            "state": self.state,
            "attempt": self.attempt,
            "step": self.step,
            "max_steps": self.max_steps,
            "reason": self.reason,
            "actions": list(self.actions),
        }


class _Run:
    """One run as viewers see it."""

    def __init__(self, run_id: str, now: float) -> None:
        self.run_id = run_id
        self.began = now
        self.ended: float | None = None
        self.total = 0
        self.kept = 0
        self.counts = dict.fromkeys(("success", "failure", "unscored", "aborted"), 0)
        self.tasks: dict[str, _Task] = {}

    def view(self, now: float) -> dict[str, Any]:
        return {
            "id": self.run_id,
            "total": self.total,
            "kept": self.kept,
            "counts": self.counts,
            "done": self.ended is not None,
            "seconds": round((self.ended or now) - self.began, 1),
        }


class LiveHub:
    """Takes the events of runs and tells viewers. Use it in one event loop only."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, max_runs: int = MAX_RUNS) -> None:
        self._clock = clock
        self._max_runs = max_runs
        self._runs: dict[str, _Run] = {}
        self._version = 0
        self._viewers: set[asyncio.Event] = set()
        self._closed = False

    def watch(self, run_id: str) -> Sink:
        """The sink for the events of one run; the oldest of too many runs is forgotten."""
        run = _Run(run_id, self._clock())
        self._runs.pop(run_id, None)
        self._runs[run_id] = run
        while len(self._runs) > self._max_runs:
            ended = (key for key, known in self._runs.items() if known.ended is not None)
            self._runs.pop(next(ended, next(iter(self._runs))))

        def take(event: Event) -> None:
            self._version += 1
            _apply(run, event, self._version, self._clock())
            self._wake()

        self._version += 1
        self._wake()
        return take

    def end(self, run_id: str) -> None:
        """The run is over without a word of its own (cancelled, failed): its open tasks are shown as stopped."""
        run = self._runs.get(run_id)
        if run is None or run.ended is not None:
            return
        run.ended = self._clock()
        self._version += 1
        for task in run.tasks.values():
            if task.state in ("running", "judging"):
                task.state, task.reason, task.version = "stopped", "the run was stopped", self._version
        self._wake()

    def knows(self, run_id: str) -> bool:
        """Whether the run is among those that are shown."""
        return run_id in self._runs

    def step_of(self, run_id: str, task_id: str) -> int | None:
        """How many steps of a task are done; `None` for a task that is not known."""
        run = self._runs.get(run_id)
        task = run.tasks.get(task_id) if run else None
        return task.step if task else None

    @property
    def is_full(self) -> bool:
        """Whether no further viewer is let in."""
        return len(self._viewers) >= MAX_VIEWERS

    async def changes(self) -> AsyncIterator[dict[str, Any]]:
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
        return {
            "runs": [run.view(now) for run in self._runs.values()],
            "tasks": [
                task.view(run.run_id)
                for run in self._runs.values()
                for task in run.tasks.values()
                if task.version > version
            ],
        }

    async def close(self) -> None:
        """Let every viewer go, so that the server can stop."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for viewer in self._viewers:
            viewer.set()


def _apply(run: _Run, event: Event, version: int, now: float) -> None:
    match event:
        case RunStarted():
            run.total, run.kept, run.began = event.total, event.kept, now
        case RunDone():
            run.ended = now
        case TaskStarted() | TaskRetried() | StepDone() | TaskJudging() | TaskDone():
            task = run.tasks.get(event.task_id)
            if task is None:
                if len(run.tasks) >= MAX_TASKS:
                    return
                task = run.tasks.setdefault(event.task_id, _Task(event.task_id))
            _apply_to_task(run, task, event)
            task.version = version


def _apply_to_task(
    run: _Run, task: _Task, event: TaskStarted | TaskRetried | StepDone | TaskJudging | TaskDone
) -> None:
    match event:
        case TaskStarted():
            task.state, task.attempt, task.max_steps, task.step = "running", event.attempt, event.max_steps, 0
            task.actions.clear()
        case StepDone():
            task.step, task.max_steps = event.step, event.max_steps
            task.actions.append((event.step, one_line(event.action, _TEXT_CHARS)))
        case TaskRetried():
            task.actions.append((task.step, f"aborted, trying again: {one_line(event.cause, _TEXT_CHARS)}"))
        case TaskJudging():
            task.state = "judging"
        case TaskDone():
            task.state, task.reason, task.step = event.outcome, one_line(event.reason, _TEXT_CHARS), event.steps
            task.actions.clear()
            run.counts[event.outcome] += 1
