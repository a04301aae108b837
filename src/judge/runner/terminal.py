"""Shows a run in the terminal: its start and progress, one line per finished task, then the rates."""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from judge.browser.fonts import titles_of, undrawn_scripts
from judge.records.events import (
    Event,
    JudgeText,
    RequestWarning,
    RunDone,
    RunStarted,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
    describe,
    event_name,
)
from judge.records.verdicts import BUDGET_SPENT, MODEL_UNREACHED, WITHOUT_CHECKS
from judge.results.attacks import attack_text
from judge.results.entries import TaskEntry, rate_of, read_entries
from judge.results.figures import Figures
from judge.results.policies import policy_text
from judge.results.rows import EXCLUDED
from judge.results.statistics import repeats_text
from judge.results.submission import coverage_note, incomplete_note, rate_text, share_text
from judge.runner.boundary import EXIT_DONE, EXIT_LOST
from judge.runner.live_page import LivePage
from judge.runner.options import Display
from judge.store.layout import RunStore
from judge.trajectory.record import SHARED_STATE
from shared.fields import as_mapping, as_mappings
from shared.text import counted, one_line

OUTCOME_STYLES = {"success": "green", "failure": "red", "unscored": "yellow", "aborted": "magenta"}
_MAX_ID_CHARS = 40
_MAX_REASON_CHARS = 500
_BAR_WIDTH = 20


@dataclass
class _RunningTask:
    """A running task in the table."""

    attempt: int
    max_steps: int
    since: float
    step: int = 0
    action: str = "opening the website"


class Progress:
    """Takes a run's events and shows them. Use it as a context manager around the run.

    `full` is a live table and a progress bar, `plain` one line per task, `json` one line per event, `none` nothing.
    `shown` are the tasks whose results have been printed. Ids are aligned if `task_ids` is given. Outcomes are shown
    only if `is_scored`.
    """

    def __init__(
        self,
        console: Console,
        display: Display | None = None,
        *,
        task_ids: Iterable[str] = (),
        is_scored: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.display: Display = display or ("full" if console.is_terminal else "plain")
        self.shown: set[str] = set()
        self._is_scored = is_scored
        self._console = console
        self._clock = clock
        self._width = _id_width(task_ids)
        self._rows: dict[str, _RunningTask] = {}
        self._counts = dict.fromkeys(OUTCOME_STYLES, 0)
        self._settled_entries: Mapping[str, TaskEntry] = {}
        self._kept_counts: Counter[str] = Counter()
        self._run: RunStarted | None = None
        self._began = self._phase_began = clock()
        self._phase = ""
        self._waiting: dict[str, None] = {}
        is_live = self.display == "full"
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4) if is_live else None

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the live display. The last frame stays on the screen, without the tasks of an interrupted run."""
        self._rows.clear()
        self._phase = ""
        if self._live:
            self._live.stop()

    def phase(self, text: str) -> None:
        """Show what the run is doing apart from its tasks."""
        self._phase, self._phase_began = text, self._clock()
        if self.display == "plain":
            self._console.out(text, highlight=False)
        elif self.display == "json":
            print_json(self._console, "phase", text=text)

    def waiting_for(self, names: Iterable[str]) -> None:
        """Show that the run waits for these agents and sites."""
        self._waiting = dict.fromkeys(names)
        self.phase(f"Waiting for {', '.join(self._waiting)}")

    def is_up(self, name: str) -> None:
        """Show that one of them is up."""
        self._waiting.pop(name, None)
        if self._waiting:
            self._phase = f"Waiting for {', '.join(self._waiting)}"
        else:
            self.phase("Everything is up, the judge prepares the run")

    def live_page(self, page: LivePage) -> None:
        """Show the address of the live page."""
        if self.display == "json":
            print_json(self._console, "live_page", **page.model_dump())
        else:
            note = f" ({page.note})" if page.note else ""
            self._console.out(f"Live page: {page.url or 'none'}{note}", highlight=False)

    def stopping(self) -> None:
        """Show that processes are being stopped."""
        self._rows.clear()
        if self.display == "full":
            self.phase("Stopping what was started")

    def keeps(self, entries: Iterable[dict[str, Any]]) -> None:
        """Show these results of an earlier start when the run begins, if the judge keeps as many."""
        self._settled_entries = {entry.key: entry for entry in read_entries(entries)}

    def __call__(self, event: Event) -> None:
        """Take one event."""
        max_steps = row.max_steps if isinstance(event, TaskDone) and (row := self._rows.get(event.key)) else 0
        self._apply(event)
        match self.display:
            case "none":
                return
            case "json":
                print_json(self._console, event_name(type(event)), **event.model_dump())
                return
        match event:
            case TaskDone() if self._is_scored:
                self.shown.add(event.key)
                self._width = max(self._width, _id_width([event.key]))
                _print_task(self._console, self._width, event.outcome, event.key, event.steps, max_steps, event.reason)
            case TaskRetried() | RequestWarning() | JudgeText():
                self._console.print(describe(event), markup=False, highlight=False, style="dim", soft_wrap=True)
            case RunStarted():
                self._console.out(describe(event), highlight=False)
                if self._kept_counts:
                    _print_tasks(self._console, list(self._settled_entries.values()))
                    self.shown.update(self._settled_entries)

    def _apply(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run, self._began, self._phase = event, self._clock(), ""
                # The judge decides what is kept; a result that it judges again is not.
                agrees = len(self._settled_entries) == event.kept
                self._kept_counts = Counter(
                    entry.outcome for entry in (self._settled_entries.values() if agrees else ())
                )
            case TaskStarted():
                self._rows[event.key] = _RunningTask(event.attempt, event.max_steps, since=self._clock())
            case StepDone() if row := self._rows.get(event.key):
                row.step, row.action = event.reply or event.step, event.action
            case TaskJudging() if row := self._rows.get(event.key):
                row.action = "judging"
            case TaskRetried() if row := self._rows.get(event.key):
                row.action = f"trying again: {event.cause}"
            case TaskDone():
                self._rows.pop(event.key, None)
                self._counts[event.outcome] += 1
            case RunDone():
                self._rows.clear()

    def render(self) -> RenderableType:
        """The live display: the phase, or a table of running tasks; and the totals below."""
        now = self._clock()
        parts: list[RenderableType] = []
        if self._rows:
            parts.append(self._running(now))
        if self._phase:
            parts.append(Text(f" {self._phase} … {_duration(now - self._phase_began)}", style="dim"))
        if self._run and self._run.total:
            parts.append(self._totals(self._run, now - self._began))
        return Group(*parts)

    def _running(self, now: float) -> Table:
        table = Table(box=None, expand=True, padding=(0, 1))
        for name, options in (("Task", {}), ("Step", {"justify": "right"}), ("Action", {"ratio": 1}), ("Elapsed", {})):
            table.add_column(name, no_wrap=True, overflow="ellipsis", **options)
        for key, row in self._rows.items():
            name = key if row.attempt == 1 else f"{key} (attempt {row.attempt})"
            table.add_row(name, f"{row.step}/{row.max_steps}", Text(row.action), _duration(now - row.since))
        return table

    def _totals(self, run: RunStarted, elapsed: float) -> Table:
        done = sum(self._counts.values())
        unit = "task" if run.epochs == 1 else "attempt"
        text = Text(f"{done + run.kept} of {counted(run.attempts, unit)}  ", style="bold")
        for outcome, style in OUTCOME_STYLES.items():
            if self._is_scored and (count := self._counts[outcome] + self._kept_counts[outcome]):
                text.append(f"{count} {outcome}  ", style=style)
        text.append(f"elapsed {_duration(elapsed)}", style="dim")
        # Tasks kept from an earlier run took no time, so the estimate excludes them.
        waiting = run.attempts - run.kept - done
        if done and waiting > 0:
            text.append(f"  about {_duration(elapsed / done * waiting)} left", style="dim")
        line = Table.grid(padding=(0, 1))
        line.add_column()
        line.add_column(width=_BAR_WIDTH)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row("", ProgressBar(total=run.attempts, completed=done + run.kept, width=_BAR_WIDTH), text)
        return line


def print_json(console: Console, event: str, **fields: Any) -> None:
    """One line of `--display json`, on the console's file even if the console itself is quiet."""
    console.file.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")
    console.file.flush()


def tell_problem(console: Console, text: str, style: str = "red") -> None:
    """Print a line that matters in every display mode; on standard error if nothing else is shown."""
    (Console(stderr=True) if console.quiet else console).out(text, style=style, highlight=False)


def _id_width(task_ids: Iterable[str]) -> int:
    return min(max(map(len, task_ids), default=0), _MAX_ID_CHARS)


def _print_task(
    console: Console, width: int, outcome: str, task_id: str, steps: int, max_steps: int, reason: str
) -> None:
    """Print a finished task on one line; on a terminal, the reason has a column and may take several lines.

    `width` is the id column's.
    """
    steps_text = f"{steps}/{counted(max_steps, 'step')}" if max_steps else counted(steps, "step")
    cells = (
        Text(f"{outcome:<9}", style=OUTCOME_STYLES.get(outcome, "")),
        Text(f"{one_line(task_id, _MAX_ID_CHARS):<{width}}"),
        Text(f"{steps_text:>11}", style="dim"),
    )
    why = Text(one_line(reason, _MAX_REASON_CHARS), style="dim" if outcome == "success" else "")
    if not console.is_terminal:
        console.print(Text("  ").join((*cells, why)), soft_wrap=True, highlight=False)
        return
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for cell in cells:
        grid.add_column(width=len(cell), no_wrap=True, overflow="ellipsis")
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(*cells, why)
    console.print(grid)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def print_summary(
    console: Console, submission: dict[str, Any], store: RunStore | None, already_shown: Collection[str] = ()
) -> int:
    """Print the tasks not in `already_shown`, the rates, and the paths of files stored here.

    Returns the exit code: 1 if tasks were aborted or unscored, or nothing was scored; else 0.
    """
    lost_count = 0
    for result in submission["results"]:
        # Older judges leave out some counts, which can be computed from the tasks.
        tasks = read_entries(result["detail"]["tasks"])
        detail = rate_of(tasks).published() | result["detail"]
        # For example tasks that a shard has played.
        _print_tasks(console, [task for task in tasks if task.key not in already_shown])
        _print_line(console, _rates_line(str(result.get("winner", "")), detail, tasks))
        if repeats := Figures.of(task.counted for task in tasks).repeats:
            _print_line(console, Text(f"  {repeats_text(repeats)}"))
        for figures in filter(None, (policy_text(detail), attack_text(detail))):
            _print_line(console, Text(f"  {one_line(figures, _MAX_REASON_CHARS)}"))
        for each in as_mappings(detail.get(EXCLUDED)):
            if each.get("by") == "scenario":
                left_out = one_line(f"{each.get('task_id')}: {each.get('reason')}", _MAX_REASON_CHARS)
                _print_line(console, Text(f"  excluded by the scenario: {left_out}"))
        for line in _truth_lines(detail, tasks):
            _print_line(console, line)
        for note, style in (
            (incomplete_note(detail), "bold yellow"),
            (coverage_note(detail), ""),
            ((detail.get("judge") or {}).get("note"), "yellow"),
            (_budget_note(tasks, store), "yellow"),
            (_unreached_note(tasks, store), "yellow"),
        ):
            if note:
                _print_line(console, Text(note, style=style))
        # Excluded on purpose, and counted in the rate of all tasks.
        excluded = sum(task.excluded is not None for task in tasks)
        lost_count += sum(_without_verdict(detail, tasks).values()) - (excluded if detail["scored_tasks"] else 0)
        lost_count -= sum(task.is_unconfirmed for task in tasks)
        # The user was warned about tasks without checks at the start, so they are only an error if nothing was scored.
        if detail["scored_tasks"]:
            lost_count -= sum(task.reason_code == WITHOUT_CHECKS for task in tasks)
    if store is not None:
        console.out(f"Results: {store.folder / 'results.json'}", highlight=False)
    return EXIT_LOST if lost_count else EXIT_DONE


def _budget_note(tasks: list[TaskEntry], store: RunStore | None) -> str:
    """What to do about a spent budget, in one line; empty if none was spent."""
    count = sum(task.reason_code == BUDGET_SPENT for task in tasks)
    if not count:
        return ""
    config = as_mapping(((store.read_run() if store else None) or {}).get("config"))
    limits = {"max_judge_cost_usd": "--max-cost-usd", "max_judge_tokens": "--max-tokens"}
    limited = [option for key, option in limits.items() if config.get(key) is not None]
    note = f"the judge model's budget is spent, {counted(count, 'verdict')} missing"
    if not limited or store is None:
        # The budget with which the judge itself was started.
        return f"{note}: start the judge with a higher --max-cost-usd or --max-tokens"
    return f"{note}: wabe score {store.run_id} with a higher {' or '.join(limited)}"


def _unreached_note(tasks: list[TaskEntry], store: RunStore | None) -> str:
    """What to do about verdicts for which the judge model could not be reached; empty if there are none."""
    count = sum(task.reason_code == MODEL_UNREACHED for task in tasks)
    remedy = f": wabe score {store.run_id} once it can be" if store else ""
    return f"the judge model could not be reached, {counted(count, 'verdict')} missing{remedy}" if count else ""


def _print_tasks(console: Console, tasks: list[TaskEntry]) -> None:
    width = _id_width(task.key for task in tasks)
    for task in tasks:
        _print_task(console, width, task.outcome, task.key, task.steps, task.max_steps, task.why)


def _print_line(console: Console, line: Text) -> None:
    """Print a line, wrapped between words on a terminal; in a file or pipe it stays one line."""
    console.print(line, soft_wrap=not console.is_terminal, highlight=False)


def _truth_lines(detail: dict[str, Any], tasks: list[TaskEntry]) -> list[Text]:
    """The rate for each kind of verdict if there are several, and the numbers of tasks whose evidence may be poor."""
    by_truth = detail.get("by_truth") or {}
    model = (detail.get("judge") or {}).get("model")
    lines = []
    for truth, counts in by_truth.items() if len(by_truth) > 1 else ():
        name = f"judge model {model}" if truth == "judge" and model else truth
        lines.append(Text(f"  decided by {one_line(name, 100)}: {share_text(counts)}"))
    shared = sum(SHARED_STATE in task.flags for task in tasks)
    if shared:
        lines.append(Text(f"  {SHARED_STATE}: {shared} played on a site that was not brought back to its first state"))
    undrawn = [scripts for task in tasks if (scripts := undrawn_scripts(task.flags))]
    if undrawn:
        titles = titles_of({script for scripts in undrawn for script in scripts})
        count_text = f"{counted(len(undrawn), 'task')} with text in {titles}"
        lines.append(
            Text(f"  no font for: {count_text}; screenshots show boxes unless the page has its own: wabe doctor")
        )
    return lines


def _without_verdict(detail: dict[str, Any], tasks: list[TaskEntry]) -> dict[str, int]:
    """The numbers of unscored and aborted attempts: the judge's counts, or its entries' if higher."""
    counts = Counter(task.outcome for task in tasks)
    return {name: max(int(detail.get(f"{name}_tasks") or 0), counts[name]) for name in ("unscored", "aborted")}


def _rates_line(role: str, detail: dict[str, Any], tasks: list[TaskEntry]) -> Text:
    text = Text.assemble((f"{role}: {rate_text(detail)}", "bold"))
    if detail["scored_tasks"] and (interval := detail.get("confidence_interval_95")):
        text.append(" (95 % interval {} to {})".format(*interval), style="dim")
    text.append(f"; of all tasks ({detail['total_tasks']}): {detail['success_rate_of_all']} %")
    excluded = sum(task.excluded is not None for task in tasks)
    for name, count in {**_without_verdict(detail, tasks), "excluded": excluded}.items():
        # An excluded task is one of the aborted ones.
        if others := count - (excluded if name == "aborted" else 0):
            text.append(f", {others} {name}", style=OUTCOME_STYLES.get(name, ""))
    if (cost := detail.get("cost_usd")) != 0:
        text.append(f", judge cost {'unknown' if cost is None else f'${cost:.4f}'}", style="dim")
    return text
