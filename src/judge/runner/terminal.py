"""Progress in the terminal: a live table where there is one, plain lines where there is none."""

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from judge.events import (
    Event,
    Noted,
    RunDone,
    RunStarted,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
    describe,
)

OUTCOME_STYLES = {"success": "green", "failure": "red", "unscored": "yellow", "aborted": "magenta"}


class _Row:
    """A running task as the table shows it."""

    def __init__(self, event: TaskStarted, now: float) -> None:
        self.attempt = event.attempt
        self.max_steps = event.max_steps
        self.step = 0
        self.action = "opening the website"
        self.since = now


class Progress:
    """Keeps the state that events tell of and draws it. Use as a context manager around the run."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._rows: dict[str, _Row] = {}
        self._counts = dict.fromkeys(OUTCOME_STYLES, 0)
        self._total = 0
        self._kept = 0
        self._begun = clock()
        self._live = (
            Live(console=console, get_renderable=self.render, refresh_per_second=4) if console.is_terminal else None
        )

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._rows.clear()
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._apply(event)
        if self._live is None:
            self._console.print(describe(event), markup=False, highlight=False, soft_wrap=True)
        elif isinstance(event, TaskRetried | Noted):
            self._live.console.print(describe(event), markup=False, highlight=False, style="dim")
        elif isinstance(event, TaskDone):
            line = Text.assemble((f"{event.outcome:>9} ", OUTCOME_STYLES[event.outcome]), event.task_id)
            line.append(f"  {event.steps} steps  ", style="dim").append(event.reason, style="dim")
            self._live.console.print(line, no_wrap=True, overflow="ellipsis")

    def _apply(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._total, self._kept = event.total, event.kept
                self._begun = self._clock()
            case TaskStarted():
                self._rows[event.task_id] = _Row(event, self._clock())
            case StepDone():
                row = self._rows.get(event.task_id)
                if row:
                    row.step, row.action = event.step, event.action
            case TaskJudging():
                row = self._rows.get(event.task_id)
                if row:
                    row.action = "judging"
            case TaskRetried():
                row = self._rows.get(event.task_id)
                if row:
                    row.action = f"trying again: {event.cause}"
            case TaskDone():
                self._rows.pop(event.task_id, None)
                self._counts[event.outcome] += 1
            case RunDone():
                self._rows.clear()

    def render(self) -> RenderableType:
        """The table of running tasks and the line of totals, as of now."""
        now = self._clock()
        table = Table(box=None, expand=True, padding=(0, 1))
        for name, options in (("Task", {}), ("Step", {"justify": "right"}), ("Action", {"ratio": 1}), ("Elapsed", {})):
            table.add_column(name, no_wrap=True, overflow="ellipsis", **options)
        for task_id, row in self._rows.items():
            name = task_id if row.attempt == 1 else f"{task_id} (attempt {row.attempt})"
            table.add_row(name, f"{row.step}/{row.max_steps}", Text(row.action), _duration(now - row.since))
        return Group(table, self._totals(now))

    def _totals(self, now: float) -> Text:
        done = sum(self._counts.values())
        elapsed = now - self._begun
        text = Text(f" {done + self._kept} of {self._total} tasks  ", style="bold")
        for outcome, style in OUTCOME_STYLES.items():
            if self._counts[outcome]:
                text.append(f"{self._counts[outcome]} {outcome}  ", style=style)
        text.append(f"elapsed {_duration(elapsed)}", style="dim")
        waiting = self._total - self._kept - done
        if done and waiting > 0:
            text.append(f"  about {_duration(elapsed / done * waiting)} left", style="dim")
        return text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
