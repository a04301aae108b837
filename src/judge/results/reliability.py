"""The reliability of judges: how often one contradicts itself when asked again, and how far several agree."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from judge.results.agreement import Interval, LabelledVerdict, rates
from judge.results.statistics import sample_variance
from shared.models import Record

# Outcomes by trajectory; only successes and failures are compared.
Outcomes = Mapping[str, str]


class Flip(Record):
    """A trajectory on which a judge contradicted itself."""

    trajectory: str
    successes: int
    failures: int


class SelfAgreement(Record):
    """A judge against itself, over the trajectories with at least two decided verdicts.

    `agreement` is the probability that two verdicts on the same trajectory are the same, `variance` the variance of a
    verdict (1 or 0) on one trajectory, both averaged over trajectories; `None` if there is nothing to compare.
    """

    repeats: int
    n: int
    agreement: float | None
    variance: float | None
    flips: tuple[Flip, ...]


class JudgePair(Record):
    """Two judges on the trajectories that both decided; `kappa` is `None` if it is not defined."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: float | None
    kappa_interval_95: Interval | None


class JudgeReport(Record):
    """The totals of each repeat of a judge, and the judge's agreement with itself."""

    repeats: tuple[dict[str, Any], ...]
    self_agreement: SelfAgreement


class Reliability(Record):
    """What `wabe score --repeat` and `--judges` report: each judge by its name, and each pair of judges."""

    judges: dict[str, JudgeReport]
    pairs: tuple[JudgePair, ...]


def self_agreement(repeats: Sequence[Outcomes]) -> SelfAgreement:
    """How far the same judge's repeated verdicts agree."""
    variances, flips = [], []
    for trajectory in sorted({*itertools.chain.from_iterable(repeats)}):
        verdicts = [outcomes.get(trajectory) for outcomes in repeats]
        successes, failures = verdicts.count("success"), verdicts.count("failure")
        n = successes + failures
        variance = sample_variance(successes, n)
        if variance is None:
            continue
        variances.append(variance)
        if successes and failures:
            flips.append(Flip(trajectory=trajectory, successes=successes, failures=failures))
    mean = fmean(variances) if variances else None
    return SelfAgreement(
        repeats=len(repeats),
        n=len(variances),
        # With s successes in n verdicts, two differ with probability 2s(n - s) / (n(n - 1)): twice the variance.
        agreement=None if mean is None else 1 - 2 * mean,
        variance=mean,
        flips=tuple(flips),
    )


def compare_judges(judges: Mapping[str, Outcomes]) -> tuple[JudgePair, ...]:
    """Each pair of judges."""
    compared = []
    for (first, ones), (second, others) in itertools.combinations(judges.items(), 2):
        decided = [
            (ones[each], others[each]) for each in ones if {ones[each], others.get(each)} <= {"success", "failure"}
        ]
        agreement = rates([LabelledVerdict(human=one == "success", judge=other == "success") for one, other in decided])
        compared.append(
            JudgePair(
                first=first,
                second=second,
                n=agreement.n,
                agreement=agreement.accuracy,
                kappa=agreement.kappa,
                kappa_interval_95=agreement.intervals_95["kappa"],
            )
        )
    return tuple(compared)
