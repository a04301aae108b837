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


@given(COUNTS)
def test_intervals_hold_the_share_and_mirror_each_other(counts: tuple[int, int]) -> None:
    successes, total = counts
    for interval in (exact, wilson):
        low, high = interval(successes, total)
        assert 0.0 <= low <= high <= 1.0
        assert total == 0 or low - 1e-9 <= successes / total <= high + 1e-9
        assert interval(total - successes, total) == pytest.approx((1 - high, 1 - low), abs=1e-9)
