"""Measures how well verdicts agree with human labels: counts, and rates with 95 % intervals.

Accuracy, precision, recall and false-positive rate have Wilson intervals. F1 is 2J / (1 + J), where J is the share of
true positives among everything that either side calls a success, so its interval is J's (Wilson), transformed.
Cohen's kappa has the large-sample interval of Fleiss, Cohen and Everitt (1969), of width 0 for perfect agreement.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from judge.records.verdicts import Verdict
from judge.results.statistics import Z95, wilson
from judge.store.layout import VERDICTS, verdicts_in
from shared.errors import ConfigError
from shared.files import read_errors
from shared.models import Record

ExclusionReason = Literal["unscored", "not_executable", "undecided", "unlabelled", "no_verdict", "settled"]
Interval = tuple[float, float]


class LabelledVerdict(Record):
    """One trajectory's human label and verdict. `excluded` is the reason why they cannot be compared.

    `task_id` and the judge's `reason` are empty for the rows of a CSV of both.
    """

    human: bool = False
    judge: bool = False
    excluded: ExclusionReason | None = None
    groups: dict[str, str] = Field(default_factory=dict)
    task_id: str = ""
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether the label and the verdict are compared and not the same."""
        return self.excluded is None and self.human != self.judge


class Rates(Record):
    """Agreement over `n` compared trajectories. Rates are fractions, `None` if the denominator is zero."""

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


def rates(pairs: Sequence[LabelledVerdict]) -> Rates:
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
    """Cohen's kappa and its interval; `None` if both sides always give the same single answer."""
    n = tp + fp + tn + fn
    # Agreement by chance is then 1, and kappa 0 divided by 0.
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
    # Rounding can make the spread slightly negative where agreement is perfect.
    half = Z95 * math.sqrt(max(0.0, spread) / n) / (1 - by_chance)
    return kappa, (max(-1.0, kappa - half), min(1.0, kappa + half))


def required_verdicts(folder: Path) -> dict[str, Verdict]:
    """A task's verdicts by judge id, oldest first. Raises `ConfigError` if one cannot be read."""
    remedy, verdicts = "remove it and run wabe score again", {}
    for judge_id, each in verdicts_in(folder).items():
        if isinstance(each, Verdict):
            verdicts[judge_id] = each
            continue
        path = folder / VERDICTS / f"{judge_id}.json"
        with read_errors(path, remedy):
            raise ConfigError(f"{path}: not a verdict", remedy=remedy) if isinstance(each, ValidationError) else each
    return verdicts
