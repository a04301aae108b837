import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.agreement import LabelledVerdict, rates


def pairs_of(tp: int, fp: int, tn: int, fn: int, **groups: str) -> list[LabelledVerdict]:
    cells = [(True, True, tp), (False, True, fp), (False, False, tn), (True, False, fn)]
    return [
        LabelledVerdict(human=human, judge=judge, groups=groups) for human, judge, count in cells for _ in range(count)
    ]


def test_rates_of_a_worked_example() -> None:
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15))
    assert measured.n == 100
    assert measured.accuracy == pytest.approx(0.8)
    assert measured.precision == pytest.approx(0.8)
    assert measured.recall == pytest.approx(20 / 35)
    assert measured.f1 == pytest.approx(40 / 60)
    assert measured.false_positive_rate == pytest.approx(5 / 65)
    assert measured.kappa == pytest.approx((0.8 - 0.575) / (1 - 0.575))


def test_a_proportion_has_wilsons_interval() -> None:
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15)).intervals_95
    assert measured["precision"] == pytest.approx((0.608691, 0.911395), abs=1e-5)


def test_the_interval_of_kappa_is_that_of_the_delta_method() -> None:
    """The 1969 formula is the delta method for multinomial counts; here its gradient is taken by differences."""
    counts = (20, 5, 60, 15)
    n = sum(counts)

    def kappa(tp: float, fp: float, tn: float, fn: float) -> float:
        total = tp + fp + tn + fn
        chance = ((tp + fn) * (tp + fp) + (tn + fp) * (tn + fn)) / total**2
        return ((tp + tn) / total - chance) / (1 - chance)

    shares = [count / n for count in counts]
    slopes = []
    for place in range(4):
        up, down = (
            [share + (step if place == other else 0) for other, share in enumerate(shares)] for step in (1e-6, -1e-6)
        )
        slopes.append((kappa(*up) - kappa(*down)) / 2e-6)
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    variance = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True)) - mean**2
    half = 1.959964 * (variance / n) ** 0.5
    centre = kappa(*counts)
    assert rates(pairs_of(*counts)).intervals_95["kappa"] == pytest.approx((centre - half, centre + half), abs=1e-5)


def test_the_interval_of_f1_is_that_of_the_jaccard_share_carried_over() -> None:
    """20 of 40 that either side calls a success: Wilson says 35.2 % to 64.8 %."""
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15)).intervals_95["f1"]
    assert measured == pytest.approx((2 * 0.351995 / 1.351995, 2 * 0.648005 / 1.648005), abs=1e-5)


def test_a_rate_without_a_denominator_is_none() -> None:
    measured = rates(pairs_of(tp=0, fp=0, tn=4, fn=0))
    assert (measured.precision, measured.recall, measured.f1, measured.kappa) == (None, None, None, None)
    assert (measured.accuracy, measured.false_positive_rate) == (1.0, 0.0)
    assert measured.intervals_95["precision"] is None


def test_no_rows_give_no_rates() -> None:
    assert rates([]).n == 0
    assert rates([]).accuracy is None


def test_perfect_agreement_has_kappa_one() -> None:
    assert rates(pairs_of(3, 0, 3, 0)).kappa == pytest.approx(1.0)


def test_full_disagreement_has_kappa_minus_one() -> None:
    assert rates(pairs_of(0, 3, 0, 3)).kappa == pytest.approx(-1.0)


def test_excluded_pairs_are_counted_and_not_compared() -> None:
    measured = rates(
        [*pairs_of(1, 0, 1, 0), LabelledVerdict(excluded="unscored"), LabelledVerdict(excluded="not_executable")]
    )
    assert measured.n == 2
    assert measured.excluded == {"not_executable": 1, "unscored": 1}


COUNTS = st.tuples(*[st.integers(0, 12)] * 4)


@given(COUNTS)
def test_every_rate_lies_in_its_interval_and_range(counts: tuple[int, int, int, int]) -> None:
    measured = rates(pairs_of(*counts))
    for name, interval in measured.intervals_95.items():
        value = getattr(measured, name)
        assert (value is None) == (interval is None)
        if interval is not None:
            assert (-1.0 if name == "kappa" else 0.0) <= interval[0] <= value + 1e-9
            assert value - 1e-9 <= interval[1] <= 1.0
