"""95 % confidence intervals of a proportion. Pure; results are fractions between 0 and 1."""

import math
from itertools import takewhile

Z95 = 1.959963984540054


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
    """The smallest proportion that is not rejected, to 1e-6. The p-value jumps, so scan first, then halve."""
    log_ways = math.lgamma(total + 1)

    def chance(count: int, share: float) -> float:
        ways = log_ways - math.lgamma(count + 1) - math.lgamma(total - count + 1)
        return math.exp(ways + count * math.log(share) + (total - count) * math.log1p(-share))

    def kept(share: float) -> bool:
        """Whether all counts that are at most as likely as `successes` have together more than 5 %."""
        limit = chance(successes, share) * (1 + 1e-7)
        # The share is below that of `successes`, so the others, which are likelier, follow each other just below it.
        # They are few: thousands of tasks would take minutes if every count were added up.
        likelier = takewhile(lambda each: each > limit, (chance(n, share) for n in range(successes - 1, -1, -1)))
        return 1 - math.fsum(likelier) > 0.05

    share = successes / total
    start = max(0.0, share - 2.5 * (share - wilson(successes, total)[0]))
    step = (share - start) / 250
    first = next(n for n in range(1, 251) if n == 250 or kept(start + n * step))
    low, high = start + (first - 1) * step, start + first * step
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high
