"""Records an agent that brings its own browser: its trajectories become a run that can be judged.

    recorder = record("my agent")
    attempt = recorder.start({"task_id": "t1", "task": "Find the cheapest tent", "website": "https://shop.example/"})
    attempt.step(screenshot, "<Search textbox> -> TYPE: tent", "https://shop.example/")     # the page before the action
    attempt.finish("Dome 2, 80 euros", screenshot, "https://shop.example/tents")            # the page at the end

Such a run is self-recorded: its evidence comes from the agent itself, as reports and leaderboard rows state.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from judge.config import RunConfig
from judge.records.steps import MAX_STEPS, Outcome, Step, StopReason
from judge.records.tasks import Task
from judge.results.run_record import package_versions, settings_checksum, task_set_checksum
from judge.store.bounds import bounded
from judge.store.layout import RUN_SCHEMA, RunStore, TaskStore, new_run_id, output_folder
from judge.trajectory.paths import MAX_IMAGE_BYTES
from judge.trajectory.record import SELF_RECORDED, Attempt
from shared.claims import USAGE_KEY, ClaimedUsage
from shared.errors import ConfigError
from shared.fields import printable
from shared.files import read_errors, read_file
from shared.images import media_type
from shared.models import Action, Page
from shared.text import one_line
from shared.validation import validated

_TOOL = "recorded"
_MAX_ACTION_CHARS = 500


def record(agent: str, *, output_dir: Path | str | None = None, run_id: str | None = None) -> "Recorder":
    """Create a run of this agent under `<output_dir>/runs`; `output_dir` is `.output` by default.

    Raises `ConfigError` if the run exists or cannot be written.
    """
    folder = output_folder(Path(output_dir) if output_dir else None)
    store = RunStore(folder, run_id or new_run_id())
    if store.has_begun:
        raise ConfigError(f"run {store.run_id} exists", remedy="choose another run_id")
    store.create()
    return Recorder(agent, store)


class Recorder:
    """One run of an agent. Attempts at different tasks may be recorded at the same time, in one process."""

    def __init__(self, agent: str, store: RunStore) -> None:
        self._agent = one_line(agent, 100) or "agent"
        self._store = store
        self._tasks: dict[str, Task] = {}
        self._open: set[str] = set()
        self._started_at = time.time()
        self._write()

    @property
    def folder(self) -> Path:
        """The run's folder, for `wabe score`."""
        return self._store.folder

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._store.run_id

    def start(self, task: Task | Mapping[str, Any]) -> "Recording":
        """Begin an attempt at a task: `task_id`, `task`, and if known `website`, `level`, `reference_length`, `checks`.

        An earlier attempt at the same task moves to `attempts/`. Raises `ConfigError` for a task that is not usable.
        """
        if not isinstance(task, Task):
            task = validated(TypeAdapter(Task), {"website": "", **task}, "wabe.record: task")
        if task.task_id in self._open:
            raise ConfigError(f"task {task.task_id} is being recorded", remedy="call finish first")
        store = self._store.task(task.task_id)
        store.begin()
        self._tasks[task.task_id] = task
        self._open.add(task.task_id)
        self._write()
        return Recording(task, store, self)

    def closed(self, task_id: str) -> None:
        """An attempt is over; called by its recording."""
        self._open.discard(task_id)
        self._write()

    def _write(self) -> None:
        settings = RunConfig(judge_model="offline").recorded()
        tasks = list(self._tasks.values())
        self._store.write_run(
            {
                "schema_version": RUN_SCHEMA,
                "run_id": self._store.run_id,
                "state": "running" if self._open else "completed",
                "started_at": self._started_at,
                "ended_at": None if self._open else time.time(),
                SELF_RECORDED: True,
                "participants": {self._agent: ""},
                "config": settings,
                "config_checksum": settings_checksum(settings),
                "task_ids": [task.task_id for task in tasks],
                "task_set_checksum": task_set_checksum(tasks),
                # The first judge that decides something becomes the run's (`judge.results.rejudged`).
                "judge_id": None,
                "packages": package_versions(),
            }
        )


class Recording:
    """One attempt, written to disk step by step. Not thread-safe."""

    def __init__(self, task: Task, store: TaskStore, recorder: Recorder) -> None:
        self.folder = store.folder
        self._task = task
        self._store = store
        self._recorder = recorder
        self._steps: list[Step] = []
        self._started_at = time.time()
        self._is_over = False

    def step(
        self,
        screenshot: bytes | Path | str | None,
        action: str,
        url: str,
        *,
        thought: str = "",
        title: str = "",
        snapshot: str = "",
    ) -> None:
        """Record one executed action, with the page right before it.

        `screenshot` is a JPEG, PNG or WebP image or its path. `action` is a fact in one line, best as
        `<Search textbox> -> TYPE: tent`. `thought` is never evidence. Checks need `snapshot`, an accessibility snapshot
        in Playwright's form. Raises `ConfigError` for an image that cannot be read and after `finish`.
        """
        line = one_line(action, _MAX_ACTION_CHARS)
        page = _page(screenshot, url, title, snapshot)
        self._add(page, Action(tool=_TOOL, thought=thought), Outcome(ok=True, line=line or None))

    def finish(
        self,
        answer: str | None = None,
        screenshot: bytes | Path | str | None = None,
        url: str = "",
        *,
        stop_reason: StopReason = "finished",
        error: str | None = None,
        snapshot: str = "",
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """End the attempt with the agent's answer and the last page, if there is a screenshot of it.

        For an agent that did not finish, `stop_reason` says why: `max_steps`, `task_timeout`, `participant_error`
        (scored 0), or `environment_fault` (aborted, not counted), with the cause in `error`.

        `usage` is what the agent's model used in all: `{"input_tokens": 812, "output_tokens": 64, "cost_usd": 0.01}`,
        each as far as known. Raises `ConfigError` for anything else.
        """
        claim = None if usage is None else ClaimedUsage.in_reply({USAGE_KEY: usage})
        if usage is not None and claim is None:
            problem = f"task {self._task.task_id}: usage {printable(usage)} has no usable numbers"
            raise ConfigError(problem, remedy='give {"input_tokens": 812, "output_tokens": 64, "cost_usd": 0.01}')
        if screenshot is not None:
            is_end = stop_reason == "finished"
            ending = Action(tool="finish", params={} if answer is None else {"answer": answer}) if is_end else None
            outcome = Outcome(ok=True, line="<page> -> FINISH") if is_end else None
            self._add(_page(screenshot, url, "", snapshot), ending, outcome)
        self._refuse_if_over()
        self._is_over = True
        attempt = Attempt(
            task=self._task,
            steps=tuple(self._steps),
            stop_reason=stop_reason,
            # The agent's budget is not known, but the record needs one.
            max_steps=max(1, len(self._steps)),
            final_answer=answer,
            error=error,
            number=self._store.attempts(),
            started_at=self._started_at,
            # Never before the start, even if the machine's clock was set back.
            ended_at=max(time.time(), self._started_at),
            self_recorded=True,
            claimed_usage=claim.model_copy(update={"basis": "recorded", "replies": 0}) if claim else None,
        )
        # The steps were bounded when they were written.
        end = bounded(attempt).model_dump(include={"final_answer", "error"})
        self._store.write_result(attempt.model_copy(update=end).to_json())
        self._recorder.closed(self._task.task_id)

    def _add(self, page: Page, action: Action | None, outcome: Outcome | None) -> None:
        self._refuse_if_over()
        index = len(self._steps)
        if index >= MAX_STEPS:
            raise ConfigError(f"task {self._task.task_id}: more than {MAX_STEPS} steps", remedy="end the attempt")
        files = self._store.write_page(index, page)
        step = Step(index=index, url=page.url, title=page.title, **files, action=action, outcome=outcome)
        self._steps.append(self._store.append_step(step))

    def _refuse_if_over(self) -> None:
        if self._is_over:
            raise ConfigError(f"task {self._task.task_id}: the attempt is over", remedy="call start for another one")


def _page(screenshot: bytes | Path | str | None, url: str, title: str, snapshot: str) -> Page:
    if screenshot is None:
        return Page(url=url, title=title, snapshot=snapshot)
    data, name = screenshot, "the screenshot"
    if not isinstance(data, bytes):
        name = str(data)
        with read_errors(name, "give a screenshot's bytes or path"):
            data = read_file(Path(data), max_bytes=MAX_IMAGE_BYTES)
    kind = media_type(data)
    if kind is None or len(data) > MAX_IMAGE_BYTES:
        raise ConfigError(
            f"{name}: not a JPEG, PNG or WebP image of at most {MAX_IMAGE_BYTES} bytes", remedy="convert it"
        )
    return Page(url=url, title=title, snapshot=snapshot, screenshot=data, media_type=kind)
