"""What `wabe agreement` shows of people who labelled, and of the order of several runs."""

import json
from collections.abc import Iterator

import typer
from rich.text import Text

from judge.commands import table, wide_console
from judge.plugins.labels.corrections import RULES
from judge.plugins.labels.labellers import LabellerAgreement
from judge.plugins.labels.rank_stability import Order, RankStability
from judge.records.tasks import key_of
from shared.text import counted, one_line

_MAX_NOTE_CHARS = 200


def show_people(agreement: LabellerAgreement) -> None:
    """Print how people agree, the attempts on which they differ first."""
    console = wide_console()
    for line in _conflict_lines(agreement):
        console.print(line, soft_wrap=True)
    if agreement.pairs:
        grid = table("Agreement of people, on what both could decide", ("Labellers",), ("n", "Agreement", "Kappa"))
        for pair in agreement.pairs:
            accuracy, kappa = pair.rates.accuracy, pair.rates.kappa
            cells = ("-" if accuracy is None else f"{100 * accuracy:.1f} %", "-" if kappa is None else f"{kappa:.2f}")
            grid.add_row(Text(f"{pair.one} and {pair.other}"), str(pair.rates.n), *cells)
        console.print(grid)
    alpha = "unknown" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    people = ", ".join(f"{name} {count}" for name, count in agreement.labellers.items())
    lines = [f"Labels: {counted(agreement.attempts, 'attempt')} ({people})"]
    lines += [f"Krippendorff's alpha of all: {alpha}"] if len(agreement.labellers) > 1 else []
    lines += [f"One label of several: {RULES[agreement.rule]}"]
    for text in lines:
        console.print(Text(one_line(text)), soft_wrap=True)


def _conflict_lines(agreement: LabellerAgreement) -> Iterator[Text]:
    if agreement.conflicts:
        open_ = sum(each.adjudicated is None for each in agreement.conflicts)
        open_note = f", {open_} to adjudicate: wabe label RUN --conflicts" if open_ else ""
        yield Text(f"{counted(len(agreement.conflicts), 'attempt')} on which people differ{open_note}", style="bold")
    for each in agreement.conflicts:
        labels = ", ".join(f"{name} says {label}" for name, label in each.labels.items())
        adjudication = f"; adjudicated: {each.adjudicated}" if each.adjudicated else ""
        yield Text.assemble((key_of(each.task_id, each.epoch), "red"), f": {labels}{adjudication}")
        for name, note in each.notes.items():
            yield Text(f"  {name}: {one_line(note, _MAX_NOTE_CHARS)}")


def show_order(stability: RankStability, *, as_json: bool) -> None:
    """Print the order of runs under each judge, and which runs change places."""
    if as_json:
        typer.echo(json.dumps(stability.model_dump(mode="json"), indent=2, allow_nan=False))
        return
    console, first = wide_console(), stability.orders[0]
    title = f"Success rate in %, with the place, over {counted(stability.tasks, 'task')} of all runs"
    grid = table(title, ("Run",), [order.judge for order in stability.orders])
    for run in sorted(first.rates, key=lambda run: -first.rates[run]):
        cells = [f"{order.rates[run]:.1f} ({_place(order, run)})" for order in stability.orders]
        grid.add_row(Text(one_line(run)), *map(Text, cells))
    console.print(grid)
    for order in stability.orders[1:]:
        console.print(Text(one_line(_tau_line(order), 1_000)), soft_wrap=True)
    if len(stability.orders) == 1:
        console.print(Text("No other judge decided all of these tasks in every run, and not every run is labelled."))


def _place(order: Order, run: str) -> int:
    return 1 + sum(rate > order.rates[run] for rate in order.rates.values())


def _tau_line(order: Order) -> str:
    tau = "unknown, all are tied" if order.tau is None else f"{order.tau:.2f}"
    interval = "" if order.interval_95 is None else " [{:.2f}, {:.2f}]".format(*order.interval_95)
    pairs = ", ".join(f"{one} and {other}" for one, other in order.swapped)
    return f"{order.judge}: Kendall's tau {tau}{interval}; {f'change places: {pairs}' if pairs else 'same order'}"
