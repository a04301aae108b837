"""What `wabe agreement` shows of people who labelled, and of the order of several runs."""

import json
from collections.abc import Iterator

import typer
from rich.text import Text

from judge.commands import table, wide_console
from judge.records.tasks import key_of
from judge.results.corrections import RULES
from judge.results.labellers import LabellerAgreement
from judge.results.rank_stability import Order, RankStability
from shared.text import counted, one_line

_MAX_NOTE_CHARS = 200


def show_people(found: LabellerAgreement) -> None:
    """Print how people agree, the attempts on which they differ first."""
    console = wide_console()
    for line in _conflict_lines(found):
        console.print(line, soft_wrap=True)
    if found.pairs:
        made = table("Agreement of people, on what both could decide", ("Labellers",), ("n", "Agreement", "Kappa"))
        for pair in found.pairs:
            accuracy, kappa = pair.rates.accuracy, pair.rates.kappa
            cells = ("-" if accuracy is None else f"{100 * accuracy:.1f} %", "-" if kappa is None else f"{kappa:.2f}")
            made.add_row(Text(f"{pair.one} and {pair.other}"), str(pair.rates.n), *cells)
        console.print(made)
    alpha = "unknown" if found.alpha is None else f"{found.alpha:.3f}"
    people = ", ".join(f"{name} {count}" for name, count in found.labellers.items())
    lines = [f"Labels: {counted(found.attempts, 'attempt')} ({people})"]
    lines += [f"Krippendorff's alpha of all: {alpha}"] if len(found.labellers) > 1 else []
    lines += [f"One label of several: {RULES[found.rule]}"]
    for text in lines:
        console.print(Text(one_line(text)), soft_wrap=True)


def _conflict_lines(found: LabellerAgreement) -> Iterator[Text]:
    if found.conflicts:
        open_ = sum(each.adjudicated is None for each in found.conflicts)
        left = f", {open_} to adjudicate: wabe label RUN --conflicts" if open_ else ""
        yield Text(f"{counted(len(found.conflicts), 'attempt')} on which people differ{left}", style="bold")
    for each in found.conflicts:
        labels = ", ".join(f"{name} says {label}" for name, label in each.labels.items())
        ended = f"; adjudicated: {each.adjudicated}" if each.adjudicated else ""
        yield Text.assemble((key_of(each.task_id, each.epoch), "red"), f": {labels}{ended}")
        for name, note in each.notes.items():
            yield Text(f"  {name}: {one_line(note, _MAX_NOTE_CHARS)}")


def show_order(found: RankStability, *, as_json: bool) -> None:
    """Print the order of runs under each judge, and which runs change places."""
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=2, allow_nan=False))
        return
    console, first = wide_console(), found.orders[0]
    title = f"Success rate in %, with the place, over {counted(found.tasks, 'task')} of all runs"
    made = table(title, ("Run",), [order.judge for order in found.orders])
    for run in sorted(first.rates, key=lambda run: -first.rates[run]):
        cells = [f"{order.rates[run]:.1f} ({_place(order, run)})" for order in found.orders]
        made.add_row(Text(one_line(run)), *map(Text, cells))
    console.print(made)
    for order in found.orders[1:]:
        console.print(Text(one_line(_tau_line(order), 1_000)), soft_wrap=True)
    if len(found.orders) == 1:
        console.print(Text("No other judge decided all of these tasks in every run, and not every run is labelled."))


def _place(order: Order, run: str) -> int:
    return 1 + sum(rate > order.rates[run] for rate in order.rates.values())


def _tau_line(order: Order) -> str:
    tau = "unknown, all are tied" if order.tau is None else f"{order.tau:.2f}"
    interval = "" if order.interval_95 is None else " [{:.2f}, {:.2f}]".format(*order.interval_95)
    pairs = ", ".join(f"{one} and {other}" for one, other in order.swapped)
    return f"{order.judge}: Kendall's tau {tau}{interval}; {f'change places: {pairs}' if pairs else 'same order'}"
