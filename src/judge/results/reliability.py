"""The reliability of a judge: how often it contradicts itself when asked again."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean

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
