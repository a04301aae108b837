import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.statistics import exact, wilson

COUNTS = st.integers(0, 60).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


def test_six_of_seventeen_is_the_interval_of_the_contract() -> None:
    low, high = exact(6, 17)
    assert (round(100 * low, 1), round(100 * high, 1)) == (16.6, 59.4)


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [(0, 5, 0.0, 0.5), (5, 5, 0.5, 1.0), (3, 3, 0.05 ** (1 / 3), 1.0), (1, 1, 0.05, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_exact_interval_of_small_counts(successes: int, total: int, low: float, high: float) -> None:
    assert exact(successes, total) == pytest.approx((low, high), abs=1e-5)


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [(6, 17, 0.173097, 0.586996), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_score_interval(successes: int, total: int, low: float, high: float) -> None:
    assert wilson(successes, total) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(("successes", "total"), [(7_500, 10_000), (9_990, 10_000), (1, 10_000)])
def test_every_share_of_the_exact_interval_passes_the_exact_test_and_none_outside(successes: int, total: int) -> None:
    def chance(count: int, share: float) -> float:
        ways = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
        return math.exp(ways + count * math.log(share) + (total - count) * math.log1p(-share))

    def p_value(share: float) -> float:
        chances = [chance(count, share) for count in range(total + 1)]
        return math.fsum(each for each in chances if each <= chances[successes] * (1 + 1e-7))

    low, high = exact(successes, total)
    assert min(p_value(low * (1 + 1e-5)), p_value(high * (1 - 1e-5))) > 0.049
    assert max(p_value(low * (1 - 1e-3)), p_value(high + 1e-3 * (1 - high))) < 0.051


@given(COUNTS)
def test_intervals_hold_the_share_and_mirror_each_other(counts: tuple[int, int]) -> None:
    successes, total = counts
    for interval in (exact, wilson):
        low, high = interval(successes, total)
        assert 0.0 <= low <= high <= 1.0
        assert total == 0 or low - 1e-9 <= successes / total <= high + 1e-9
        assert interval(total - successes, total) == pytest.approx((1 - high, 1 - low), abs=1e-9)
