"""What `wabe score --repeat` and `--judges` report: each judge, each judge against itself, and each pair of judges."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from judge.commands import wide_console
from judge.results.reliability import JudgePair, SelfAgreement, compare_judges, self_agreement
from shared.text import one_line

MAX_FLIPS = 50


def reliability(
    summaries: Mapping[str, Sequence[dict[str, Any]]], outcomes: Mapping[str, Sequence[dict[str, str]]]
) -> dict[str, Any]:
    """The report as JSON, from each judge's summaries and outcomes, one for every repeat."""
    firsts = {name: repeats[0] for name, repeats in outcomes.items()}
    return {
        "judges": {
            name: {"repeats": list(repeats), "self_agreement": self_agreement(outcomes[name]).model_dump(mode="json")}
            for name, repeats in summaries.items()
        },
        "pairs": [pair.model_dump(mode="json") for pair in compare_judges(firsts)],
    }


def show(report: Mapping[str, Any]) -> None:
    """Print the report as tables."""
    console = wide_console()
    found = {name: SelfAgreement.model_validate(each["self_agreement"]) for name, each in report["judges"].items()}
    table = Table(title="Judges", title_justify="left")
    for column in ("judge", "successes", "failures", "unscored", "repeats", "self-agreement", "variance", "flips"):
        table.add_column(column, justify="left" if column == "judge" else "right", overflow="fold")
    for name, each in report["judges"].items():
        first, own = each["repeats"][0], found[name]
        counts = [str(first[key]) for key in ("success", "failure", "unscored")]
        flips = f"{len(own.flips)} of {own.n}" if own.n else "-"
        numbers = [
            str(own.repeats),
            _share(own.agreement),
            "-" if own.variance is None else f"{own.variance:.3f}",
            flips,
        ]
        table.add_row(Text(one_line(name)), *counts, *numbers)
    console.print(table)
    pairs = [JudgePair.model_validate(each) for each in report["pairs"]]
    if pairs:
        console.print(_pairs_table(pairs))
    for name, own in found.items():
        for flip in own.flips[:MAX_FLIPS]:
            line = f"{name}: {flip.trajectory}: {flip.successes} successes, {flip.failures} failures"
            console.print(Text(one_line(line, 500)), soft_wrap=True)


def _pairs_table(pairs: Sequence[JudgePair]) -> Table:
    table = Table(title="Pairs of judges (the first verdict of each)", title_justify="left")
    for column in ("first", "second", "n", "agreement", "kappa [95 %]"):
        table.add_column(column, justify="left" if column in ("first", "second") else "right", overflow="fold")
    for pair in pairs:
        interval = pair.kappa_interval_95
        kappa = "-" if pair.kappa is None else f"{pair.kappa:.2f}"
        shown = Text(f"{kappa} [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else kappa)
        table.add_row(
            Text(one_line(pair.first)), Text(one_line(pair.second)), str(pair.n), _share(pair.agreement), shown
        )
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
