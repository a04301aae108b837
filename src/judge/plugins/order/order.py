"""Whether later attempts at a task succeed more often than earlier ones, as they do if a participant remembers.

The test is the exact rank-sum test, stratified by task (van Elteren 1960): if nothing is remembered, each order of a
task's outcomes is equally likely. Tasks that were played once, or always end alike, say nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any

from judge.results.part import RunPart
from judge.results.statistics import Percent, tallies_of
from shared.plugins import ReportSection

_LEVEL = 0.05
_PARTS = ("first", "second", "last")
# More would not fit into a line; the last one is shown as well.
_MOST_SHOWN = 6


class OrderOfAttempts(RunPart):
    """The test of a run."""

    def section(self, rows: Sequence[Any]) -> ReportSection | None:
        return order_section(rows)


def order_section(rows: Sequence[Any]) -> ReportSection | None:
    """The section of a report; `None` if no task was scored twice. `rows` are `judge.results.rows.AttemptRow`."""
    scored = [row for row in rows if row.success is not None and row.is_clean]
    scored.sort(key=lambda row: (row.started_at or "", row.epoch))
    tasks: dict[str, list[bool]] = defaultdict(list)
    by_turn: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for row in scored:
        by_turn[len(tasks[row.task_id])].append((row.task_id, row.verdict))
        tasks[row.task_id].append(row.success)
    if len(by_turn) < 2:
        return None
    turns = [*range(len(by_turn))[: _MOST_SHOWN - 1], len(by_turn) - 1]
    size = -(-len(scored) // len(_PARTS))
    parts = [scored[place : place + size] for place in range(0, len(scored), size)]
    lines = [
        "By attempt at a task: " + "; ".join(f"{turn + 1}: {_rate(by_turn[turn])}" for turn in dict.fromkeys(turns)),
        "By position in the run: "
        + "; ".join(
            f"{name} third: {_rate([(row.task_id, row.verdict) for row in part])}"
            for name, part in zip(_PARTS, parts, strict=False)
        ),
    ]
    return ReportSection("Order of attempts", [*lines, _finding(tasks)])


def _rate(outcomes: Iterable[tuple[str, str]]) -> str:
    rate = Percent.of(tallies_of(outcomes).values())
    return f"{rate.rate or 0:.1f} % ({rate.low:.1f} to {rate.high:.1f} %)"


def _finding(tasks: Mapping[str, Sequence[bool]]) -> str:
    better, worse = order_test(tasks.values())
    probability = min(1.0, 2 * min(better, worse))
    if probability > _LEVEL:
        return (
            "Later attempts at a task succeed neither more nor less often than chance explains"
            f" (p = {probability:.2g}, two-sided)."
        )
    direction = "more" if better < worse else "less"
    return (
        f"Later attempts at a task succeed {direction} often than chance explains (p = {probability:.2g}, two-sided):"
        " the participant, or a site without a reset, keeps something from one attempt to the next."
    )


def order_test(tasks: Iterable[Sequence[bool]]) -> tuple[float, float]:
    """The one-sided probabilities of a sum of the successes' places at least as large, and at most as large.

    Each task's outcomes are in the order in which they were played. Small means: later ones are better, or worse.
    """
    observed = 0
    ways = {0: 1}
    for outcomes in tasks:
        successes = sum(outcomes)
        if not 0 < successes < len(outcomes):
            continue
        observed += sum(place for place, success in enumerate(outcomes) if success)
        added = _rank_sums(len(outcomes), successes)
        ways = _combined(ways, added)
    total = sum(ways.values())
    at_least = sum(count for value, count in ways.items() if value >= observed)
    at_most = sum(count for value, count in ways.items() if value <= observed)
    return float(Fraction(at_least, total)), float(Fraction(at_most, total))


def _combined(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    sums: dict[int, int] = defaultdict(int)
    for left, count in one.items():
        for right, more in other.items():
            sums[left + right] += count * more
    return dict(sums)


def _rank_sums(places: int, chosen: int) -> dict[int, int]:
    """In how many ways `chosen` of the places 0, 1, … have each sum."""
    # `sums[k]`: the same for k of the places so far.
    sums: list[dict[int, int]] = [{0: 1}, *({} for _ in range(chosen))]
    for place in range(places):
        for count in range(min(place + 1, chosen), 0, -1):
            for value, ways in sums[count - 1].items():
                sums[count][value + place] = sums[count].get(value + place, 0) + ways
    assert sum(sums[chosen].values()) == comb(places, chosen)
    return sums[chosen]
