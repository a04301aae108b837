"""Success rates over tasks that may be played several times (`epochs`), and their 95 % confidence intervals. Pure.

Results are fractions between 0 and 1. A task counts once, however often it was played: its rate is the mean over its
scored attempts, and the rate of a run is the mean over its tasks. Attempts at the same task are correlated, so
intervals resample tasks, not attempts; tasks of one cluster (`cluster` in the settings) are correlated as well, so that
intervals are by cluster (`judge.results.significance`). Unscored and aborted attempts only count in the rate of all
attempts.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import takewhile
from typing import Any, NamedTuple, Self

from judge.results.significance import clustered_interval

Z95 = 1.959963984540054
_RESAMPLES = 2_000
# Arbitrary, but fixed, so that the same results always give the same interval.
_SEED = 1979


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """The counts of one task's attempts."""

    successes: int
    scored: int
    attempts: int

    @property
    def rate(self) -> Fraction | None:
        """Successes among the scored attempts; `None` without any."""
        return Fraction(self.successes, self.scored) if self.scored else None

    @property
    def variance(self) -> float | None:
        """The variance of an attempt's success (1 or 0), estimated from this sample; `None` below two attempts."""
        return sample_variance(self.successes, self.scored)


def sample_variance(successes: int, scored: int) -> float | None:
    """The unbiased variance of results that are 1 or 0."""
    return successes * (scored - successes) / (scored * (scored - 1)) if scored > 1 else None


def tallies_of(outcomes: Iterable[tuple[str, str]]) -> dict[str, AttemptCounts]:
    """The tally of each task, from the task and outcome of every attempt."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for task, outcome in outcomes:
        counts[task][outcome] += 1
    return {
        task: AttemptCounts(count["success"], count["success"] + count["failure"], count.total())
        for task, count in counts.items()
    }


def success_rate(tallies: Collection[AttemptCounts]) -> Fraction | None:
    """The mean rate of the tasks with a scored attempt; `None` without any."""
    # Fractions, because a sum of floats depends on the order of the tasks.
    rates = [tally.rate for tally in tallies if tally.rate is not None]
    return sum(rates, Fraction()) / len(rates) if rates else None


def success_rate_of_all(tallies: Collection[AttemptCounts]) -> Fraction:
    """The mean rate of all tasks if unscored and aborted attempts count as failures; 0 without tasks."""
    rates = [Fraction(tally.successes, tally.attempts) for tally in tallies]
    return sum(rates, Fraction()) / len(rates) if rates else Fraction()


def interval_95(tallies: Collection[AttemptCounts], clusters: Sequence[str] = ()) -> tuple[float, float]:
    """The 95 % interval of `success_rate`; (0, 1) if nothing was scored.

    It is Sterne's exact interval if no task has more than one scored attempt, else the bootstrap's. If all tasks have
    the same rate, resampling shows no spread; then it is Wilson's, as if each task had been played once.

    `clusters` are the tasks'. If two scored tasks are in one cluster, the interval is the clustered one, of one cluster
    (0, 1), and of equal rates Wilson's, as if each cluster were one task.
    """
    scored = [tally for tally in tallies if tally.scored]
    of_scored = [cluster for tally, cluster in zip(tallies, clusters, strict=bool(clusters)) if tally.scored]
    if len(set(of_scored)) < len(of_scored):
        values = [(cluster, tally.successes / tally.scored) for tally, cluster in zip(scored, of_scored, strict=True)]
        interval = clustered_interval(values)
        if interval is None:
            return 0.0, 1.0
        if interval.standard_error == 0:
            return wilson(values[0][1] * interval.clusters, interval.clusters)
        return interval.low / 100, interval.high / 100
    if all(tally.scored == 1 for tally in scored):
        return exact(sum(tally.successes for tally in scored), len(scored))
    rates = [tally.successes / tally.scored for tally in scored]
    return bootstrap(rates) or wilson(sum(rates), len(rates))


class Percent(NamedTuple):
    """A success rate in percent with its 95 % interval; without a scored task `None`, between 0 and 100."""

    rate: float | None
    low: float
    high: float

    @classmethod
    def of(cls, tallies: Collection[AttemptCounts], clusters: Sequence[str] = ()) -> Self:
        """The rate of these tasks, which may be of clusters."""
        share, (low, high) = success_rate(tallies), interval_95(tallies, clusters)
        return cls(None if share is None else float(100 * share), 100 * low, 100 * high)


def bootstrap(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean, from resampling one value per task (Efron 1979).

    With paired differences as values it is the interval of the mean difference. `None` if all values are equal.
    """
    if len(set(values)) < 2:
        return None
    # Sorted, so that the result does not depend on the order of tasks.
    ordered, size = sorted(values), len(values)
    draw = random.Random(_SEED)
    sums = sorted(math.fsum(draw.choices(ordered, k=size)) for _ in range(_RESAMPLES))
    # 2.5 % at each end.
    tail = _RESAMPLES // 40
    return sums[tail] / size, sums[-1 - tail] / size


def wilson(successes: float, total: int) -> tuple[float, float]:
    """Wilson's score interval (1927); (0, 1) for a `total` of 0."""
    if total == 0:
        return 0.0, 1.0
    share, spread = successes / total, Z95 * Z95 / total
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


def exact(successes: int, total: int) -> tuple[float, float]:
    """Sterne's interval (1954): every proportion that the exact two-sided binomial test does not reject at 5 %.

    It covers the true proportion at least 95 % of the time, also for the few tasks of one level; statsmodels calls it
    `binom_test`. 6 of 17 gives 16.6 % to 59.4 %; (0, 1) for a `total` of 0.
    """
    if total == 0:
        return 0.0, 1.0
    low = 0.0 if successes == 0 else _lowest_kept(successes, total)
    high = 1.0 if successes == total else 1.0 - _lowest_kept(total - successes, total)
    return low, high


def _lowest_kept(successes: int, total: int) -> float:
    """The smallest proportion not rejected, to 1e-6. The p-value is not monotonic, so scan, then bisect."""
    log_ways = math.lgamma(total + 1)

    def chance(count: int, share: float) -> float:
        ways = log_ways - math.lgamma(count + 1) - math.lgamma(total - count + 1)
        return math.exp(ways + count * math.log(share) + (total - count) * math.log1p(-share))

    def is_likely(share: float) -> bool:
        """Whether all counts at most as likely as `successes` together have a probability above 5 %."""
        # The tolerance of R's `binom.test`: equally likely counts differ by rounding errors.
        limit = chance(successes, share) * (1 + 1e-7)
        # The share is below the one of `successes`, so the likelier counts are a contiguous range just below.
        # They are few, and summing only those avoids minutes of work for thousands of tasks.
        likelier = takewhile(lambda each: each > limit, (chance(n, share) for n in range(successes - 1, -1, -1)))
        return 1 - math.fsum(likelier) > 0.05

    share = successes / total
    start = max(0.0, share - 2.5 * (share - wilson(successes, total)[0]))
    step = (share - start) / 250
    first = next(n for n in range(1, 251) if n == 250 or is_likely(start + n * step))
    low, high = start + (first - 1) * step, start + first * step
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if is_likely(middle) else (middle, high)
    return high


def mcnemar_exact(gained: int, lost: int) -> float:
    """The two-sided p-value of McNemar's exact test: both tails of `gained + lost` fair coin tosses.

    Without a differing task it is 1.
    """
    thrown, fewer = gained + lost, min(gained, lost)
    # Integers until the last division, so that there is no rounding error.
    tail: int = sum(math.comb(thrown, heads) for heads in range(fewer + 1))
    return min(1.0, float(2 * tail / (1 << thrown)))


# Fifty lines for fifty epochs would hide these.
_SHOWN_K = (1, 2, 5, 10)


def pass_at_k(successes: int, scored: int, k: int) -> float:
    """The probability that at least one of `k` attempts succeeds (Chen et al. 2021); unbiased, for `k` <= `scored`."""
    return 1 - math.comb(scored - successes, k) / math.comb(scored, k)


def pass_hat_k(successes: int, scored: int, k: int) -> float:
    """The probability that all of `k` attempts succeed (tau-bench, Yao et al. 2024); unbiased, for `k` <= `scored`."""
    return math.comb(successes, k) / math.comb(scored, k)


def repeats_text(repeats: Mapping[str, Any]) -> str:
    """The statistics of repeats in one line."""
    chances = [f"k={row['k']}: {row['pass_at_k']} % and {row['pass_hat_k']} %" for row in repeats["by_k"]]
    variance = "" if repeats["variance"] is None else f"; variance within a task {repeats['variance']:.3f}"
    return f"{repeats['epochs']} epochs; pass@k and pass^k: {', '.join(chances) or 'nothing was scored'}{variance}"


def repeats_of(tallies: Mapping[str, AttemptCounts]) -> dict[str, Any] | None:
    """The statistics of repeats, for a submission; `None` if every task was played once.

    `by_k` has the mean of pass@k and pass^k, in percent, over those tasks that have `k` scored attempts, for the usual
    values of `k` and the largest. `variance` is
    the mean over the tasks with at least two.
    """
    epochs = max((tally.attempts for tally in tallies.values()), default=0)
    if epochs < 2:
        return None
    by_k = []
    most = max(tally.scored for tally in tallies.values())
    for k in (*(k for k in _SHOWN_K if k < most), *((most,) if most else ())):
        pairs = [(tally.successes, tally.scored) for tally in tallies.values() if tally.scored >= k]
        means = {
            name: round(100 * math.fsum(estimator(*pair, k) for pair in pairs) / len(pairs), 1)
            for name, estimator in (("pass_at_k", pass_at_k), ("pass_hat_k", pass_hat_k))
        }
        by_k.append({"k": k, "tasks": len(pairs), **means})
    variances = [tally.variance for tally in tallies.values() if tally.variance is not None]
    return {
        "epochs": epochs,
        "by_k": by_k,
        "variance": round(math.fsum(variances) / len(variances), 4) if variances else None,
        "tasks": [
            {"task_id": task, **asdict(tally), "variance": None if tally.variance is None else round(tally.variance, 4)}
            for task, tally in tallies.items()
        ],
    }
