"""The output of `wabe score`: a line per trajectory, the totals of a judge, and tables that compare several."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from judge.commands import table, wide_console
from judge.judges.base import Judge
from judge.judges.rescoring import Scored
from judge.plugins.rejudging.reliability import JudgePair, Reliability
from judge.records.verdicts import BUDGET_SPENT, is_unconfirmed
from judge.results.given_verdicts import plain_name
from judge.results.statistics import Percent, repeats_of, tallies_of
from judge.results.submission import total_cost
from judge.store.layout import TaskStore
from shared.fields import without_none
from shared.llm.limits import Spending
from shared.models import TokenUsage
from shared.text import counted, one_line, usd

_OUTCOMES = ("success", "failure", "unscored", "aborted", "broken")
_MAX_FLIPS = 50


class InOrder:
    """Passes trajectories on in the order of their folders, regardless of the order in which they are judged."""

    def __init__(self, folders: Iterable[Path], take: Callable[[Scored], None]) -> None:
        self._folders, self._take = list(reversed(list(folders))), take
        self._waiting: dict[Path, Scored] = {}

    def __call__(self, scored: Scored) -> None:
        """Take a judged trajectory, and pass on all those next in order."""
        self._waiting[scored.folder] = scored
        while self._folders and self._folders[-1] in self._waiting:
            self._take(self._waiting.pop(self._folders.pop()))


def in_order_of(task_ids: Sequence[str], folders: Iterable[Path]) -> list[Path]:
    """The folders, and within one parent in the order of these tasks; unknown tasks come last."""
    folders = list(folders)
    parents = {parent: place for place, parent in enumerate(dict.fromkeys(folder.parent for folder in folders))}
    places = {task_id: place for place, task_id in enumerate(task_ids)}
    return sorted(folders, key=lambda folder: (parents[folder.parent], places.get(folder.name, len(places))))


@dataclass
class JudgeTally:
    """The outcomes of one judge, by folder."""

    judge: Judge
    is_run: bool
    is_quiet: bool
    # Of the edited scenario, if there is one.
    scenario: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    updated: tuple[str, ...] = ()
    _reused: int = 0
    # Trajectories whose success a frozen site does not confirm, and never will.
    _unconfirmed: set[str] = field(default_factory=set)
    _replaced: list[str] = field(default_factory=list)
    _broken: list[str] = field(default_factory=list)
    _usage: TokenUsage = field(default_factory=TokenUsage)
    _costs: list[float | None] = field(default_factory=list)
    # Trajectories that a budget left unscored.
    unpaid: int = 0

    @property
    def name(self) -> str:
        """The judge's name."""
        return plain_name(self.judge.info, scenario=self.scenario)

    def take(self, scored: Scored) -> None:
        """Count a trajectory and print its line."""
        self.outcomes[str(scored.folder)] = scored.outcome
        self._reused += scored.kept
        if scored.verdict is not None and not scored.kept:
            self._usage += scored.verdict.token_usage
            self._costs.append(scored.verdict.cost)
        if scored.verdict is not None:
            self.unpaid += scored.verdict.reason_code == BUDGET_SPENT
            if is_unconfirmed(scored.outcome, scored.verdict.reason_code):
                self._unconfirmed.add(str(scored.folder))
        name = TaskStore(scored.folder).key
        if scored.replaced:
            self._replaced.append(name)
        mark = " (kept)" if scored.kept else " (the stored verdict differed)" if scored.replaced else ""
        line = f"{name}: {scored.outcome}{mark}: {self._about(scored)}"
        if scored.outcome == "broken":
            self._broken.append(f"{scored.folder}: {scored.reason}")
            typer.echo(line, err=True)
        elif not self.is_quiet:
            typer.echo(line)

    def _about(self, scored: Scored) -> str:
        """The text after the outcome."""
        return one_line(scored.reason)

    @property
    def is_complete(self) -> bool:
        """Whether every trajectory could be read and has a verdict or was aborted."""
        others = (outcome for folder, outcome in self.outcomes.items() if folder not in self._unconfirmed)
        return {"broken", "unscored"}.isdisjoint(others)

    def summary(self) -> dict[str, Any]:
        """The totals, as `--json` prints them."""
        counts = Counter(self.outcomes.values())
        # A run has a folder per epoch, so tasks are counted by folder name; other folders may have any name.
        names = (Path(folder).name if self.is_run else folder for folder in self.outcomes)
        tallies = tallies_of(zip(names, self.outcomes.values(), strict=True))
        percent = Percent.of(tallies.values())
        repeats, sites = repeats_of(tallies), self._sites()
        return {
            "judge": self.judge.id,
            "name": self.name,
            "trajectories": counts.total(),
            **{name: counts[name] for name in _OUTCOMES},
            "kept": self._reused,
            "replaced": list(self._replaced),
            "success_rate": None if percent.rate is None else round(percent.rate, 1),
            "confidence_interval_95": None if percent.rate is None else [round(end, 1) for end in percent[1:]],
            **without_none(repeats=repeats or None),
            "token_usage": self._usage.model_dump(),
            "cost_usd": total_cost(self._costs),
            "broken_folders": self._broken,
            **without_none(sites=sites or None),
            "updated": list(self.updated),
        }

    def _sites(self) -> dict[str, dict[str, int]]:
        """The counts of each site, if the judge groups tasks by them; `error` is any other outcome."""
        sites: dict[str, Counter[str]] = {}
        for folder, outcome in self.outcomes.items():
            if (site := self.judge.site_of(Path(folder).name)) is None:
                continue
            counts = sites.setdefault(site, Counter())
            counts.update(("total", outcome if outcome in ("success", "failure") else "error"))
        keys = ("total", "success", "failure", "error")
        return {name: {key: sites[name][key] for key in keys} for name in sorted(sites)}

    def line(self) -> str:
        """The totals in one line, preceded by a line for each site."""
        summary = self.summary()
        rate = "no success rate"
        if summary["success_rate"] is not None:
            rate = "{} % success ({} to {} %)".format(summary["success_rate"], *summary["confidence_interval_95"])
        counts = ", ".join(f"{summary[name]} {name}" for name in _OUTCOMES)
        sites = [
            f"{name}: {counted(row['total'], 'task')}, {row['success']} success, {row['failure']} failure, "
            f"{row['error']} error\n"
            for name, row in summary.get("sites", {}).items()
        ]
        total = counted(summary["trajectories"], "trajectory", "trajectories")
        line = f"{self.name}: {total}, {counts}; {rate}"
        updated = f"\nThe run's results.json now has the new verdicts of {counted(len(self.updated), 'task')}."
        replaced = (
            f"\n{counted(len(self._replaced), 'stored verdict')} differed from what the recording gives, and "
            f"{'was' if len(self._replaced) == 1 else 'were'} replaced: {one_line(', '.join(self._replaced), 500)}"
        )
        ends = (replaced if self._replaced else "") + (updated if self.updated else "")
        return f"{''.join(sites)}{line}{ends}"


def spent(spending: Spending) -> str:
    """The judge models' usage, including calls that were cut off."""
    usage = spending.usage
    estimated = f", {usage.estimated_calls} of them estimated" if usage.estimated_calls else ""
    tokens = counted(usage.input + usage.output, "token")
    return f"{counted(usage.calls, 'model call')}{estimated}: {tokens}, {usd(spending.cost_usd)}"


def show(report: Reliability, names: Mapping[str, str]) -> None:
    """Print the comparison of judges as tables. `names` are the judges' names by that in the report."""
    console = wide_console()
    console.print(_judges_table(report, names))
    if report.pairs:
        console.print(_pairs_table(report.pairs, names))
    for name, judge in report.judges.items():
        for flip in judge.self_agreement.flips[:_MAX_FLIPS]:
            successes, failures = counted(flip.successes, "success", "successes"), counted(flip.failures, "failure")
            line = f"{names[name]}: {flip.trajectory}: {successes}, {failures}"
            console.print(Text(one_line(line, 500)), soft_wrap=True)


def _judges_table(report: Reliability, names: Mapping[str, str]) -> Table:
    numbers = ("successes", "failures", "unscored", "repeats", "self-agreement", "variance", "flips")
    grid = table("Judges", ("judge",), numbers)
    for name, judge in report.judges.items():
        first, own = judge.repeats[0], judge.self_agreement
        grid.add_row(
            Text(one_line(names[name])),
            *(str(first[key]) for key in ("success", "failure", "unscored")),
            str(own.repeats),
            _share(own.agreement),
            "-" if own.variance is None else f"{own.variance:.3f}",
            f"{len(own.flips)} of {own.n}" if own.n else "-",
        )
    return grid


def _pairs_table(pairs: Sequence[JudgePair], names: Mapping[str, str]) -> Table:
    grid = table("Pairs of judges (the first verdict of each)", ("first", "second"), ("n", "agreement", "kappa [95 %]"))
    for pair in pairs:
        kappa = "-" if pair.kappa is None else f"{pair.kappa:.2f}"
        if pair.kappa_interval_95 is not None:
            kappa += " [{:.2f}, {:.2f}]".format(*pair.kappa_interval_95)
        both = (Text(one_line(names[name])) for name in (pair.first, pair.second))
        grid.add_row(*both, str(pair.n), _share(pair.agreement), Text(kappa))
    return grid


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
