"""How well verdicts agree with human labels: counts, rates with 95 % intervals, by group. Pure.

Accuracy, precision, recall and false-positive rate have Wilson intervals. F1 is 2J / (1 + J), where J is the share of
true positives among everything that either side calls a success, so its interval is that of J (Wilson), transformed.
Cohen's kappa has the large-sample interval of Fleiss, Cohen and Everitt (1969), of width 0 for perfect agreement.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from judge.results.statistics import Z95, wilson
from shared.models import Record

MAX_GROUP_VALUES = 200
_NEVER_GROUPS = {"index", "id", "task_id", "trajectory_id", "episode_id"}
_FEW_ROWS = 10
_TOTAL = "all"

Exclusion = Literal["unscored", "not_executable", "unlabelled", "no_verdict"]
Interval = tuple[float, float]


class Pair(Record):
    """One trajectory's human label and verdict. `excluded` is the reason why they cannot be compared."""

    human: bool = False
    judge: bool = False
    excluded: Exclusion | None = None
    groups: dict[str, str] = Field(default_factory=dict)


class Rates(Record):
    """Agreement over `n` compared trajectories. Rates are fractions, `None` where there is nothing to divide by."""

    n: int
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    false_positive_rate: float | None
    kappa: float | None
    intervals_95: dict[str, Interval | None]
    excluded: dict[str, int]


class Agreement(Record):
    """Rates over everything and by the values of each group column. `notes` are sentences for the reader."""

    overall: Rates
    groups: dict[str, dict[str, Rates]]
    notes: tuple[str, ...] = ()


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """Compare labels and verdicts. A column is a group unless it identifies rows: see `group_columns`."""
    kept, notes = _without_totals(pairs, group_columns(pairs))
    groups = {}
    for column in group_columns(kept):
        by_value: dict[str, list[Pair]] = {}
        for pair in kept:
            by_value.setdefault(pair.groups.get(column, ""), []).append(pair)
        groups[column] = {value: rates(by_value[value]) for value in sorted(by_value)}
    return Agreement(overall=rates(kept), groups=groups, notes=tuple(notes))


def group_columns(pairs: Sequence[Pair]) -> list[str]:
    """The columns whose values are groups.

    Not a group: `index`, `id`, `task_id`, `trajectory_id`, `episode_id`; a column of more than 200 values; a column
    whose value differs on each of more than 10 rows.
    """
    names = dict.fromkeys(name for pair in pairs for name in pair.groups if name not in _NEVER_GROUPS)
    values = {name: len({pair.groups.get(name, "") for pair in pairs}) for name in names}
    return [name for name, n in values.items() if n <= MAX_GROUP_VALUES and not (n == len(pairs) > _FEW_ROWS)]


def rates(pairs: Sequence[Pair]) -> Rates:
    """The rates of these pairs; excluded ones are only counted."""
    excluded = Counter(pair.excluded for pair in pairs if pair.excluded)
    counts = Counter((pair.human, pair.judge) for pair in pairs if pair.excluded is None)
    tp, fp, tn, fn = counts[True, True], counts[False, True], counts[False, False], counts[True, False]
    n = tp + fp + tn + fn
    shares = {
        "accuracy": (tp + tn, n),
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "false_positive_rate": (fp, fp + tn),
    }
    values: dict[str, float | None] = {}
    intervals: dict[str, Interval | None] = {}
    for name, (part, whole) in shares.items():
        values[name] = part / whole if whole else None
        intervals[name] = wilson(part, whole) if whole else None
    either = tp + fp + fn
    values["f1"] = _f1_of(tp / either) if either else None
    low, high = wilson(tp, either)
    intervals["f1"] = (_f1_of(low), _f1_of(high)) if either else None
    values["kappa"], intervals["kappa"] = _kappa(tp, fp, tn, fn)
    return Rates(
        n=n,
        true_positives=tp,
        false_positives=fp,
        true_negatives=tn,
        false_negatives=fn,
        **values,
        intervals_95=intervals,
        excluded={reason: excluded[reason] for reason in sorted(excluded)},
    )


def _f1_of(share: float) -> float:
    return 2 * share / (1 + share)


def _kappa(tp: int, fp: int, tn: int, fn: int) -> tuple[float | None, Interval | None]:
    """Cohen's kappa and its interval; `None` when both sides give one and the same answer throughout."""
    n = tp + fp + tn + fn
    if n == 0 or tp == n or tn == n:
        return None, None
    cells = {(1, 1): tp / n, (0, 1): fp / n, (0, 0): tn / n, (1, 0): fn / n}
    human = {side: cells[side, 0] + cells[side, 1] for side in (0, 1)}
    judge = {side: cells[0, side] + cells[1, side] for side in (0, 1)}
    by_chance = sum(human[side] * judge[side] for side in (0, 1))
    kappa = (cells[0, 0] + cells[1, 1] - by_chance) / (1 - by_chance)
    agreeing = sum(cells[side, side] * (1 - (human[side] + judge[side]) * (1 - kappa)) ** 2 for side in (0, 1))
    differing = (1 - kappa) ** 2 * sum(cells[side, 1 - side] * (judge[side] + human[1 - side]) ** 2 for side in (0, 1))
    spread = agreeing + differing - (kappa - by_chance * (1 - kappa)) ** 2
    half = Z95 * math.sqrt(max(0.0, spread) / n) / (1 - by_chance)
    return kappa, (max(-1.0, kappa - half), min(1.0, kappa + half))


def _without_totals(pairs: Sequence[Pair], columns: Sequence[str]) -> tuple[Sequence[Pair], list[str]]:
    """Leave out total rows.

    Published tables contain the rows of each agent and the same rows again under the agent `all`. Counted twice, they
    would make every interval too narrow. They are left out only if they repeat the other rows exactly.
    """
    notes = []
    for column in columns:
        totals = [pair for pair in pairs if pair.groups.get(column) == _TOTAL]
        others = [pair for pair in pairs if pair.groups.get(column) != _TOTAL]
        rest = [name for name in columns if name != column]
        if totals and _signature(totals, rest) == _signature(others, rest):
            pairs = others
            notes.append(f"{len(totals)} rows with {column} = {_TOTAL} repeat the other rows and are left out")
    return pairs, notes


def _signature(pairs: Sequence[Pair], columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    return Counter(
        (pair.human, pair.judge, pair.excluded, *(pair.groups.get(name, "") for name in columns)) for pair in pairs
    )
