"""What a run shows in the terminal: progress while it runs (a live table, or plain lines), then the results."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich import box
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
from judge.results.submission import counts_of, incomplete_note
from judge.runner.boundary import EXIT_DONE, EXIT_LOST
from judge.store import RunStore
from judge.trajectory.record import SHARED_STATE
from shared.checks import NO_CHECKS
from shared.text import one_line

OUTCOME_STYLES = {"success": "green", "failure": "red", "unscored": "yellow", "aborted": "magenta"}
_MAX_FAILURES = 10


@dataclass
class _Row:
    """A running task in the table."""

    attempt: int
    max_steps: int
    since: float
    step: int = 0
    action: str = "opening the website"


class Progress:
    """Takes a run's events and shows them. Use it as a context manager around the run."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._rows: dict[str, _Row] = {}
        self._counts = dict.fromkeys(OUTCOME_STYLES, 0)
        self._total = 0
        self._kept = 0
        self._began = clock()
        self._live = (
            Live(console=console, get_renderable=self.render, refresh_per_second=4) if console.is_terminal else None
        )

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            # The last frame stays on the screen: without the tasks of an interrupted run.
            self._rows.clear()
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._apply(event)
        if self._live is None:
            self._console.out(describe(event), highlight=False)
        elif isinstance(event, TaskRetried | Noted):
            self._console.print(describe(event), markup=False, highlight=False, style="dim")
        elif isinstance(event, TaskDone):
            line = Text.assemble((f"{event.outcome:>9} ", OUTCOME_STYLES[event.outcome]), event.task_id)
            line.append(f"  {event.steps} steps  ", style="dim").append(event.reason, style="dim")
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def _apply(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._total, self._kept, self._began = event.total, event.kept, self._clock()
            case TaskStarted():
                self._rows[event.task_id] = _Row(event.attempt, event.max_steps, since=self._clock())
            case StepDone() if row := self._rows.get(event.task_id):
                row.step, row.action = event.step, event.action
            case TaskJudging() if row := self._rows.get(event.task_id):
                row.action = "judging"
            case TaskRetried() if row := self._rows.get(event.task_id):
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
        return Group(table, self._totals(now - self._began))

    def _totals(self, elapsed: float) -> Text:
        done = sum(self._counts.values())
        text = Text(f" {done + self._kept} of {self._total} tasks  ", style="bold")
        for outcome, style in OUTCOME_STYLES.items():
            if self._counts[outcome]:
                text.append(f"{self._counts[outcome]} {outcome}  ", style=style)
        text.append(f"elapsed {_duration(elapsed)}", style="dim")
        # Tasks kept from before took no time in this run, so the estimate leaves them out.
        waiting = self._total - self._kept - done
        if done and waiting > 0:
            text.append(f"  about {_duration(elapsed / done * waiting)} left", style="dim")
        return text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def print_summary(console: Console, submission: dict[str, Any], store: RunStore | None) -> int:
    """Print a table of tasks, the reasons for failures, the rates, and where the files are if they are here.

    Returns the exit code: 1 when tasks were aborted or unscored, or nothing was scored; else 0.
    """
    lost = 0
    for result in submission["results"]:
        # Older judges leave some counts out; they can be computed from the tasks.
        detail = counts_of(result["detail"]["tasks"]) | result["detail"]
        tasks = detail["tasks"]
        console.print(_task_table(tasks))
        # The table has no room for what the checks or the judge found.
        failures = [task for task in tasks if task.get("verdict") == "failure" and task.get("reason")]
        for task in failures[:_MAX_FAILURES]:
            line = Text.assemble((one_line(str(task["task_id"]), 32), "red"), f": {one_line(str(task['reason']), 500)}")
            console.print(line, soft_wrap=True, highlight=False)
        if len(failures) > _MAX_FAILURES:
            console.print(f"and {len(failures) - _MAX_FAILURES} more failures", highlight=False)
        console.print(_rates_line(str(result.get("winner", "")), detail), soft_wrap=True)
        for line in _truth_lines(detail):
            console.print(line, soft_wrap=True, highlight=False)
        for note, style in (
            (incomplete_note(detail), "bold yellow"),
            ((detail.get("judge") or {}).get("note"), "yellow"),
        ):
            if note:
                console.out(note, style=style)
        lost += int(detail.get("aborted_tasks", 0)) + int(detail.get("unscored_tasks", 0))
        # The user was warned of tasks without checks at the start: they count as lost only if nothing was scored.
        if detail["scored_tasks"]:
            lost -= sum(task.get("reason") == NO_CHECKS for task in tasks)
    if store is not None:
        console.out(f"Results: {store.folder / 'results.json'}", highlight=False)
    return EXIT_LOST if lost else EXIT_DONE


def _task_table(tasks: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in ("Task", "Level", "Verdict", "Steps"):
        table.add_column(name, justify="right" if name == "Steps" else "left", no_wrap=True)
    table.add_column("Why", no_wrap=True, overflow="ellipsis", ratio=1)
    for task in tasks:
        verdict = str(task.get("verdict") or "aborted")
        table.add_row(
            Text(one_line(str(task["task_id"]), 32)),
            Text(str(task.get("level") or "")),
            Text(verdict, style=OUTCOME_STYLES.get(verdict, "")),
            f"{task.get('steps_taken', 0)}/{task.get('max_steps', 0)}",
            Text(one_line(str(task.get("reason") or task.get("error") or task.get("stop_reason") or ""), 200)),
        )
    return table


def _truth_lines(detail: dict[str, Any]) -> list[Text]:
    """A rate for each kind of verdict where the run mixes them, and how many tasks found a site that was not reset."""
    by_truth = detail.get("by_truth") or {}
    model = (detail.get("judge") or {}).get("model")
    lines = []
    for truth, counts in by_truth.items() if len(by_truth) > 1 else ():
        name = f"judge model {model}" if truth == "judge" and model else truth
        text = Text(f"  decided by {one_line(name, 100)}: {counts['success_rate']} %")
        text.append(f", {counts['judged_successes']} of {counts['scored_tasks']} scored tasks")
        lines.append(text)
    shared = sum(SHARED_STATE in (task.get("flags") or ()) for task in detail["tasks"])
    if shared:
        lines.append(Text(f"  {SHARED_STATE}: {shared} played on a site that was not brought back to its first state"))
    return lines


def _rates_line(role: str, detail: dict[str, Any]) -> Text:
    text = Text.assemble((f"{role}: success rate {detail['success_rate']} %", "bold"))
    if interval := detail.get("confidence_interval_95"):
        text.append(" (95 % interval {} to {})".format(*interval), style="dim")
    text.append(f", {detail['judged_successes']} of {detail['scored_tasks']} scored tasks")
    text.append(f"; of all {detail['total_tasks']} tasks: {detail['success_rate_of_all']} %")
    for key, name in (("unscored_tasks", "unscored"), ("aborted_tasks", "aborted")):
        if detail.get(key):
            text.append(f", {detail[key]} {name}", style=OUTCOME_STYLES[name])
    cost = detail.get("cost_usd")
    text.append(f", judge cost {'unknown' if cost is None else f'${cost:.4f}'}", style="dim")
    return text
