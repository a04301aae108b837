"""The tasks on the live page, and the data that it reads from run folders, so that it survives a judge's restart.

Damaged or partly written files are left out.
"""

import contextlib
import itertools
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from judge.records.events import StepBegun, StepDone, TaskDone, TaskEvent, TaskJudging, TaskRetried, TaskStarted
from judge.records.steps import Step
from judge.report.data import RunView, read_run
from judge.store.layout import RunStore, TaskStore, runs_in
from judge.trajectory.files import read_attempt, read_steps
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_text
from shared.text import clip, one_line, show_hidden

# Who may see the live page: users on the judge's machine, holders of its token, or everyone who can reach its port.
Audience = Literal["machine", "token", "everyone"]

_MAX_MARK_BYTES = 400
_MARK = ".live"
# A judge's address: nothing else that a mark may contain becomes a link.
_ADDRESS = re.compile(r"http://(?:[A-Za-z0-9.-]{1,255}|\[[0-9a-f:]{2,45}\]):[0-9]{1,5}/")
_SHOWN_ACTIONS = 8
_TEXT_CHARS = 300
_THOUGHT_CHARS = 1000


@dataclass
class LiveTask:
    """One task as shown to viewers; `id` is its key, `version` the hub's version at its last change.

    `step` counts the replies that were carried out, `page` the recorded pages, of this attempt.
    """

    run: str
    id: str
    state: str = "running"
    attempt: int = 1
    step: int = 0
    page: int = 0
    max_steps: int = 0
    task: str = ""
    url: str = ""
    reason: str = ""
    is_attacked: bool = False
    actions: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_SHOWN_ACTIONS))
    version: int = 0

    def take(self, event: TaskEvent) -> None:
        match event:
            case TaskStarted():
                # A further attempt starts over.
                self.state, self.attempt, self.max_steps = "running", event.attempt, event.max_steps
                self.step, self.page, self.url, self.reason = 0, 0, "", ""
                self.actions.clear()
            case StepBegun():
                self.page = event.step
                self.task, self.url = (one_line(text, _TEXT_CHARS) for text in (event.task, event.url))
            case StepDone():
                self.step, self.max_steps = event.reply or event.step, event.max_steps
                self.page = max(self.page, event.step)
                self.actions.append((event.step, one_line(event.action, _TEXT_CHARS)))
            case TaskRetried():
                self.actions.append((self.step, f"aborted, trying again: {one_line(event.cause, _TEXT_CHARS)}"))
            case TaskJudging():
                self.state = "judging"
            case TaskDone():
                self.state, self.reason, self.step = event.outcome, one_line(event.reason, _TEXT_CHARS), event.steps
                self.is_attacked = event.attacked
                # A finished task has its page, which shows all actions.
                self.actions.clear()

    @property
    def is_open(self) -> bool:
        return self.state in ("running", "judging")

    def view(self) -> dict[str, Any]:
        fields = {name: value for name, value in vars(self).items() if name != "version"}
        return fields | {"actions": list(self.actions)}


@dataclass(frozen=True)
class RunRecord:
    """A run on disk. `total` is the number of its attempts, `tasks` are those with a result."""

    scenario: str
    player: str
    is_complete: bool
    seconds: float
    total: int
    epochs: int
    tasks: tuple[LiveTask, ...]

    @property
    def attacked(self) -> frozenset[str]:
        """The keys of the tasks under attack."""
        return frozenset(task.id for task in self.tasks if task.is_attacked)


class LiveRecords:
    """The runs below one output folder that the live page shows to one audience."""

    def __init__(self, output_dir: Path, audience: Audience = "machine", address: str = "") -> None:
        self._output_dir = output_dir
        self._audience = audience
        self._address = address

    def remember(self, run_id: str) -> None:
        """Mark a run as shown to this audience: a restarted judge shows it again, but to no other audience.

        The mark also has the address of the live page, for `live_address`.
        """
        # A full or read-only disk must not stop the run.
        with contextlib.suppress(OSError):
            (self._store(run_id).folder / _MARK).write_text(f"{self._audience}\n{self._address}")

    def remembered(self, limit: int) -> list[str]:
        """The newest runs that were shown to this audience, oldest first; none that another process is judging."""
        newest = reversed(runs_in(self._output_dir))
        run_ids = (store.run_id for store in newest if self._is_marked(store) and not store.is_being_judged)
        return [*itertools.islice(run_ids, limit)][::-1]

    def read(self, run_id: str) -> RunRecord:
        """The data from the run's files."""
        store = self._store(run_id)
        try:
            run = read_run(store)
        except ConfigError:
            # Written by a newer version, or with ids that cannot be folder names.
            run = RunView(run_id, {}, "")
        began, ended_at = run.record.get("resumed_at") or run.record.get("started_at"), run.record.get("ended_at")
        return RunRecord(
            scenario=show_hidden(run.identity["scenario"] or ""),
            player=show_hidden(run.player),
            is_complete=run.record.get("state") == "completed",
            seconds=max(0.0, ended_at - began) if isinstance(began, float) and isinstance(ended_at, float) else 0.0,
            total=len(run.task_ids) * run.epochs,
            epochs=run.epochs,
            tasks=tuple(record for task in store.tasks() if (record := _recorded(run_id, task))),
        )

    def report(self, run_id: str) -> dict[str, str | None]:
        """A finished run's report: the path at which it is written, and its address if it can be opened here.

        The public sees neither this machine's folders nor the report, which contains the run's configuration.
        """
        page = self._store(run_id).derived / "report" / "index.html"
        if self._audience == "everyone":
            return {"path": page.relative_to(self._output_dir).as_posix(), "url": None}
        return {"path": str(page.resolve()), "url": f"/live/{run_id}/report/index.html"}

    def reported(self, run_id: str) -> RunStore | None:
        """The run, if this audience may see its report."""
        store = self._store(run_id)
        return store if self._audience != "everyone" and store.has_begun else None

    def _is_marked(self, store: RunStore) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return _mark_of(store)[0] == self._audience
        return False

    def _store(self, run_id: str) -> RunStore:
        return RunStore(self._output_dir, run_id)


def live_address(store: RunStore) -> str | None:
    """The address of the live page on which a run being played can be followed; `None` if it has none."""
    # Only the judge that holds the run can have written it: whoever copies a run here does not hold its lock.
    if store.is_being_judged:
        with contextlib.suppress(OSError, ValueError):
            address = _mark_of(store)[1]
            return address if _ADDRESS.fullmatch(address) else None
    return None


def _mark_of(store: RunStore) -> tuple[str, str]:
    """The audience and the address in a mark, `""` in earlier versions' marks. Raises `OSError` or `ValueError`."""
    audience, _, address = read_text(store.folder / _MARK, max_bytes=_MAX_MARK_BYTES).partition("\n")
    return audience, address


def steps_of(store: TaskStore, after: int) -> list[dict[str, Any]]:
    """The recorded steps of a task's current attempt after the first `after`; all text is bounded, not escaped."""
    steps: tuple[Step, ...] = ()
    with contextlib.suppress(TrajectoryError):
        steps = read_steps(store.folder / "steps.jsonl")
    return [_step(step) for step in steps[after:]]


def _step(step: Step) -> dict[str, Any]:
    outcome = step.outcome
    return {
        "step": step.index + 1,
        "line": _bounded(outcome.line) if outcome and outcome.line else None,
        "problem": _bounded(outcome.message) if outcome and not outcome.line else "",
        "thought": _bounded(step.action.thought, _THOUGHT_CHARS) if step.action else "",
        "url": _bounded(step.url),
        "image": Path(step.screenshot).name if step.screenshot else None,
    }


def _recorded(run_id: str, store: TaskStore) -> LiveTask | None:
    with contextlib.suppress(TrajectoryError):
        attempt = read_attempt(store.folder)
        task = LiveTask(
            run_id, store.key, attempt.outcome, attempt.number, attempt.steps_taken, max_steps=attempt.max_steps
        )
        task.page = attempt.actions_taken
        task.task = _bounded(attempt.task.task)
        task.is_attacked = attempt.task.clean_task is not None
        task.reason = _bounded(attempt.verdict.reason if attempt.verdict else attempt.error or attempt.stop_reason)
        return task
    return None


def _bounded(text: str, limit: int = _TEXT_CHARS) -> str:
    return show_hidden(clip(text, limit))
