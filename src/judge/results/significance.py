"""How sure a difference is: clustered intervals, the smallest detectable difference, corrected p-values.

Clustered standard errors and the minimum detectable effect follow Miller, *Adding Error Bars to Evals*
(arXiv:2411.00640); the interval takes Student's quantile with one degree of freedom less than there are clusters
(Cameron and Miller, 2015), because clusters, such as websites, may be few.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

POWER, LEVEL = 0.8, 0.05


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over clusters of values, such as the rates of tasks by website, with its 95 % interval in percent."""

    low: float
    high: float
    standard_error: float
    clusters: int


@functools.cache
def student_quantile(freedom: int) -> float:
    """How far Student's distribution reaches on either side with 95 % of its mass.

    By the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4), and bisection.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _mass(middle, freedom) > 1 - LEVEL else (middle, high)
    return math.sqrt(freedom) * math.tan(low)


def _mass(angle: float, freedom: int) -> float:
    """The mass between -t and t, where `angle` is the arctangent of t over the root of the degrees of freedom."""
    sine, cosine = math.sin(angle), math.cos(angle)
    term, start = (1.0, 2) if freedom % 2 == 0 else (cosine, 3)
    total = term if freedom > 1 else 0.0
    for each in range(start, freedom, 2):
        term *= cosine * cosine * (each - 1) / each
        total += term
    return sine * total if freedom % 2 == 0 else 2 / math.pi * (angle + sine * total)


def clustered_error(values: Iterable[tuple[str, float]]) -> float | None:
    """The standard error of the mean of values that are correlated within clusters; `None` below two clusters.

    The square root of the sum of all products of two deviations in one cluster, divided by the number of values.
    """
    clusters: defaultdict[str, list[float]] = defaultdict(list)
    for cluster, value in values:
        clusters[cluster].append(value)
    everything = [value for each in clusters.values() for value in each]
    if len(clusters) < 2:
        return None
    mean = math.fsum(everything) / len(everything)
    # The sum of the products of all pairs in a cluster is the square of the sum of its deviations.
    sums = [math.fsum(value - mean for value in each) for each in clusters.values()]
    return math.sqrt(math.fsum(each * each for each in sums)) / len(everything)


def clustered_interval(values: Sequence[tuple[str, float]], *, least: float = 0.0) -> ClusteredMean | None:
    """The 95 % interval of the mean of values from `least` to 1 in percent; `None` below two clusters."""
    error = clustered_error(values)
    if error is None:
        return None
    count = len({cluster for cluster, _ in values})
    mean = math.fsum(value for _, value in values) / len(values)
    # As if drawn from a population of clusters, of which there are few.
    error *= math.sqrt(count / (count - 1))
    half = student_quantile(count - 1) * error
    return ClusteredMean(100 * max(least, mean - half), 100 * min(1.0, mean + half), 100 * error, count)


def detectable(variance: float, size: int, *, level: float = LEVEL, power: float = POWER) -> float | None:
    """The smallest true mean of `size` values with this variance that a two-sided test finds with this power.

    `None` without a value.
    """
    if size < 1:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(power)
    return quantiles * math.sqrt(variance / size)


def detectable_difference(differences: Sequence[float]) -> float | None:
    """The smallest difference of two runs, in percentage points, that a comparison of this size finds in 80 %.

    `differences` are the tasks'. If all are equal, the variance is unknown and nothing can be said.
    """
    size = len(differences)
    if size < 2 or len(set(differences)) == 1:
        return None
    mean = math.fsum(differences) / size
    variance = math.fsum((each - mean) ** 2 for each in differences) / (size - 1)
    difference = detectable(variance, size)
    return None if difference is None else 100 * difference


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values corrected for their number (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return tuple(corrected)
