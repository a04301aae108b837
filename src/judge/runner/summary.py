"""The end of a run in the terminal: a table of tasks, the rates, where the files are."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.results.submission import counts_of, incomplete_note
from judge.runner.boundary import EXIT_DONE, EXIT_LOST
from judge.runner.terminal import OUTCOME_STYLES
from judge.store import RunStore
from shared.checks import NO_CHECKS
from shared.text import one_line

_MAX_TOLD = 10


def print_summary(console: Console, submission: dict[str, Any], store: RunStore | None) -> int:
    """Print it, and where the files are when they are here.

    Returns the exit code: 1 when something was lost (aborted or unscored) or nothing scored, else 0.
    """
    lost = 0
    for result in submission["results"]:
        # A judge of an older version leaves some counts out; its tasks still give them.
        detail = counts_of(result["detail"]["tasks"]) | result["detail"]
        console.print(task_table(detail))
        for line in failures(detail):
            console.print(line, soft_wrap=True, highlight=False)
        console.print(rates_line(str(result.get("winner", "")), detail), soft_wrap=True)
        if incomplete := incomplete_note(detail):
            console.print(Text(incomplete, style="bold yellow"), soft_wrap=True)
        note = (detail.get("judge") or {}).get("note")
        if note:
            console.print(Text(str(note), style="yellow"), soft_wrap=True)
        lost += int(detail.get("aborted_tasks", 0)) + int(detail.get("unscored_tasks", 0))
        # Tasks without checks were announced at the start; they are lost only if nothing else was scored either.
        if detail["scored_tasks"]:
            lost -= sum(task.get("reason") == NO_CHECKS for task in detail["tasks"])
    if store is not None:
        console.print(f"Results: {store.folder / 'results.json'}", highlight=False, soft_wrap=True)
    return EXIT_LOST if lost else EXIT_DONE


def task_table(detail: dict[str, Any]) -> Table:
    """One row per task: verdict, steps, why."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in ("Task", "Level", "Verdict", "Steps"):
        table.add_column(name, justify="right" if name == "Steps" else "left", no_wrap=True)
    table.add_column("Why", no_wrap=True, overflow="ellipsis", ratio=1)
    for task in detail["tasks"]:
        verdict = str(task.get("verdict") or "aborted")
        why = one_line(str(task.get("reason") or task.get("error") or task.get("stop_reason") or ""), 200)
        table.add_row(
            Text(one_line(str(task["task_id"]), 32)),
            Text(str(task.get("level") or "")),
            Text(verdict, style=OUTCOME_STYLES.get(verdict, "")),
            f"{task.get('steps_taken', 0)}/{task.get('max_steps', 0)}",
            Text(why),
        )
    return table


def failures(detail: dict[str, Any]) -> list[Text]:
    """A line for each of the first failed tasks, with what its checks or its judge found: the table has no room."""
    told = [task for task in detail["tasks"] if task.get("verdict") == "failure" and task.get("reason")]
    lines = [
        Text.assemble((one_line(str(task["task_id"]), 32), "red"), f": {one_line(str(task['reason']), 500)}")
        for task in told[:_MAX_TOLD]
    ]
    return [*lines, Text(f"and {len(told) - _MAX_TOLD} more failures")] if len(told) > _MAX_TOLD else lines


def rates_line(role: str, detail: dict[str, Any]) -> Text:
    """The success rate with its interval, the rate of all tasks, and every task accounted for."""
    low, high = detail.get("confidence_interval_95") or (None, None)
    text = Text.assemble((f"{role}: success rate {detail['success_rate']} %", "bold"))
    if low is not None:
        text.append(f" (95 % interval {low} to {high})", style="dim")
    text.append(f", {detail['judged_successes']} of {detail['scored_tasks']} scored tasks")
    text.append(f"; of all {detail['total_tasks']} tasks: {detail['success_rate_of_all']} %")
    for key, name in (("unscored_tasks", "unscored"), ("aborted_tasks", "aborted")):
        if detail.get(key):
            text.append(f", {detail[key]} {name}", style=OUTCOME_STYLES[name])
    cost = detail.get("cost_usd")
    text.append(f", judge cost {'unknown' if cost is None else f'${cost:.4f}'}", style="dim")
    return text
