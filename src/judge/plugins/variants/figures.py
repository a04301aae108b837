"""What a participant loses under variants: pairs of an attempt at the clean task and one under a variant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple, Self

from judge.results.attacks import PairedRates
from judge.results.part import RunPart
from judge.results.statistics import Percent, tallies_of
from judge.results.tables import TableAttempt, table_of
from shared.fields import as_mapping, without_none
from shared.plugins import ReportSection
from shared.text import counted

ROBUSTNESS = "robustness"
_MOST_LISTED = 10


class Lost(NamedTuple):
    """A clean success that is a failure under a variant, and the first step at which the actions differ."""

    task: str
    variant: str
    step: int | None


class Kept(NamedTuple):
    """The pairs of one or more variants, and the share of the clean successes that are successes under them."""

    pairs: PairedRates
    retained: Percent
    of: int

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[Any, Any]]) -> Self:
        """The figures of these pairs of rows; the variants of one task are one cluster."""
        rows = {row.key: row.counted for pair in pairs for row in pair}
        solved = [under for clean, under in pairs if clean.success and under.success is not None]
        tallies = tallies_of((under.task_id, under.verdict) for under in solved)
        cluster_of = {under.task_id: under.clean_task for under in solved}
        retained = Percent.of(tallies.values(), [cluster_of[task] for task in tallies])
        return cls(PairedRates.of(list(rows.values())), retained, len(solved))

    def published(self) -> dict[str, Any]:
        """As in a submission."""
        known = {"success_clean": self.pairs.clean, "success_under_variant": self.pairs.under}
        known |= {"retained": self.retained.rate}
        interval = [round(self.retained.low, 1), round(self.retained.high, 1)]
        return {
            "pairs": self.pairs.paired,
            **{name: round(rate, 1) for name, rate in known.items() if rate is not None},
            **({} if self.retained.rate is None else {"retained_interval_95": interval}),
            "lost": self.pairs.lost,
            "gained": self.pairs.gained,
            "p": round(self.pairs.p, 4),
        }

    def line(self, name: str) -> str:
        """The figures in one line."""
        if not self.pairs.paired:
            return f"{name}: no pair was scored"
        words = f"{name}: {self.pairs.clean:.1f} % clean, {self.pairs.under:.1f} % under it"
        words += f" ({counted(self.pairs.paired, 'pair')}, p = {self.pairs.p:.3f})"
        if self.retained.rate is None:
            return words
        low, high = self.retained.low, self.retained.high
        return f"{words}; keeps {self.retained.rate:.1f} % of {self.of} clean successes ({low:.1f} to {high:.1f} %)"


@dataclass(frozen=True)
class Robustness:
    """The figures of a run by family and by variant, and what was lost."""

    families: dict[str, Kept]
    variants: dict[str, Kept]
    lost: tuple[Lost, ...]

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Self | None:
        """The figures of `judge.results.rows.AttemptRow`; `None` if no task was played under a variant."""
        clean = {(row.task_id, row.epoch): row for row in rows if row.is_clean}
        pairs = [
            (clean[place], row)
            for row in rows
            if row.variant_name is not None and (place := (row.clean_task, row.epoch)) in clean
        ]
        if not any(row.variant_name is not None for row in rows):
            return None
        return cls(
            families={name: Kept.of_pairs(group) for name, group in _grouped(pairs, "variant_family")},
            variants={name: Kept.of_pairs(group) for name, group in _grouped(pairs, "variant_name")},
            lost=tuple(
                Lost(before.key, after.variant_name, _parting(before.action_digests, after.action_digests))
                for before, after in pairs
                if before.success and after.success is False
            ),
        )

    @property
    def worst(self) -> str | None:
        """The one of several families that keeps the smallest share of the clean successes, if not all keep all."""
        known = {name: kept.retained.rate for name, kept in self.families.items() if kept.retained.rate is not None}
        worst = min(known, key=known.__getitem__, default=None)
        return worst if worst is not None and len(known) > 1 and known[worst] < 100 else None

    def published(self) -> dict[str, Any]:
        """As in a submission: what was not measured is absent."""
        families, variants = (
            {name: kept.published() for name, kept in group.items()} for group in (self.families, self.variants)
        )
        lost = sorted({each.task for each in self.lost})
        return {
            "by_family": families,
            "by_variant": variants,
            **without_none(worst_family=self.worst),
            "tasks_lost": lost,
        }

    def section(self) -> ReportSection:
        """The section of a report."""
        lines = [kept.line(name) for name, kept in self.families.items()]
        lines += [f"Worst family: {self.worst}"] if self.worst else []
        lines += [kept.line(name) for name, kept in self.variants.items()]
        shown = [_lost_text(each) for each in self.lost[:_MOST_LISTED]]
        more = len(self.lost) - len(shown)
        lines += [f"Lost: {'; '.join(shown)}{f'; and {more} more' if more else ''}"] if shown else []
        return ReportSection("Robustness", lines)


class LostUnderVariants(RunPart):
    """The figures of a run."""

    keys = (ROBUSTNESS,)
    is_compared = True

    def totals(self) -> Mapping[str, Any]:
        config = as_mapping((self.store.read_run() or {}).get("config"))
        if config.get("variants", "off") == "off":
            return {}
        found = Robustness.of([each.row for each in table_of(self.store) if isinstance(each, TableAttempt)])
        return {ROBUSTNESS: found.published()} if found else {}

    def section(self, rows: Sequence[Any]) -> ReportSection | None:
        return found.section() if (found := Robustness.of(rows)) else None


def _grouped(pairs: Sequence[tuple[Any, Any]], key: str) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    for name in dict.fromkeys(getattr(under, key) for _, under in pairs):
        yield name, [pair for pair in pairs if getattr(pair[1], key) == name]


def _parting(before: Sequence[str], after: Sequence[str]) -> int | None:
    steps = enumerate(zip_longest(before, after), 1)
    return next((step for step, (one, other) in steps if one != other), None)


def _lost_text(lost: Lost) -> str:
    where = f", the walks part at step {lost.step}" if lost.step else ", by the same actions"
    return f"{lost.task} under {lost.variant}{where}"
