"""Success rates corrected with people's labels."""

import math
import random
from collections.abc import Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.corrected import MIN_LABELS, MIN_OF_STRATUM, SampleLabel, Stratum, allocate, estimate, missing_labels


def labels(successes: int, failures: int, website: str = "a") -> list[SampleLabel]:
    return [SampleLabel(website, True)] * successes + [SampleLabel(website, False)] * failures


def test_a_rate_is_what_was_labelled_and_the_expected_share_of_the_rest() -> None:
    estimated = estimate([Stratum("success", 50, labels(6, 2)), Stratum("failure", 150, labels(3, 13))])
    assert estimated is not None
    assert estimated.rate == pytest.approx((6 + 42 * 6.5 / 9 + 3 + 134 * 3.5 / 17) / 200)
    variances = [0.25**2 * 42 / 50 * (6.5 * 2.5 / 81) / 8, 0.75**2 * 134 / 150 * (3.5 * 13.5 / 289) / 16]
    assert estimated.standard_error == pytest.approx(math.sqrt(sum(variances)))


def test_what_rules_decided_counts_as_a_failure_without_labels() -> None:
    judged = [Stratum("success", 10, labels(10, 0)), Stratum("failure", 10, labels(0, 10))]
    estimated = estimate([*judged, Stratum("failure", 20, is_settled=True)])
    assert estimated is not None
    assert estimated.rate == 0.25


def test_a_run_that_is_labelled_completely_has_no_error() -> None:
    estimated = estimate([Stratum("success", 3, labels(1, 2)), Stratum("failure", 9, labels(4, 5))])
    assert estimated is not None
    assert estimated.rate == pytest.approx(5 / 12)
    assert estimated.standard_error == 0


def test_a_verdict_without_an_error_so_far_is_not_taken_to_be_free_of_errors() -> None:
    estimated = estimate([Stratum("success", 100, labels(10, 0)), Stratum("failure", 100, labels(0, 10))])
    assert estimated is not None
    low, high = estimated.interval
    assert low < 0.5 < high


def test_labels_of_one_website_count_as_fewer_when_they_are_alike() -> None:
    alike = [*labels(8, 0, "a"), *labels(0, 8, "b"), *labels(8, 0, "c"), *labels(0, 8, "d")]
    mixed = [*labels(4, 4, "a"), *labels(4, 4, "b"), *labels(4, 4, "c"), *labels(4, 4, "d")]
    errors = []
    for each in (alike, mixed):
        estimated = estimate([Stratum("failure", 500, each)])
        assert estimated is not None
        errors.append(estimated.standard_error)
    assert errors[0] > 2 * errors[1]


@pytest.mark.parametrize(
    ("strata", "missing"),
    [
        ([Stratum("success", 50, labels(5, 0)), Stratum("failure", 50, labels(0, 15))], 0),
        ([Stratum("success", 50, labels(4, 0)), Stratum("failure", 50, labels(0, 15))], 1),
        ([Stratum("success", 50, labels(3, 0)), Stratum("failure", 50, labels(0, 40))], 2),
        ([Stratum("success", 50), Stratum("failure", 50)], MIN_LABELS),
        ([Stratum("success", 2, labels(2, 0)), Stratum("failure", 50, labels(0, 18))], 0),
        ([Stratum("success", 2, labels(2, 0)), Stratum("failure", 7, labels(0, 6))], 1),
        ([Stratum("failure", 30, labels(0, 20)), Stratum("failure", 5, is_settled=True)], 0),
    ],
    ids=[
        "enough",
        "one of a verdict",
        "two of a verdict",
        "all",
        "all of a small stratum",
        "all of a small run",
        "rules",
    ],
)
def test_how_many_labels_are_missing(strata: list[Stratum], missing: int) -> None:
    assert missing_labels(strata) == missing
    assert (estimate(strata) is None) == (missing > 0)


def test_the_difference_of_two_runs_has_both_errors() -> None:
    first = estimate([Stratum("success", 40, labels(10, 2)), Stratum("failure", 160, labels(5, 23))])
    later = estimate([Stratum("success", 80, labels(15, 1)), Stratum("failure", 120, labels(3, 21))])
    assert first is not None
    assert later is not None
    difference = later.minus(first)
    assert difference.rate == pytest.approx(later.rate - first.rate)
    assert difference.spread == pytest.approx(first.spread + later.spread)
    assert first.minus(later).interval == pytest.approx(tuple(-each for each in reversed(difference.interval)))


sizes = st.integers(min_value=0, max_value=400)


@given(successes=sizes, failures=sizes, settled=sizes, total=st.integers(min_value=0, max_value=300))
def test_a_draw_is_as_large_as_asked_and_gives_each_verdict_what_an_estimate_needs(
    successes: int, failures: int, settled: int, total: int
) -> None:
    strata = [Stratum("success", successes), Stratum("failure", failures), Stratum("failure", settled, is_settled=True)]
    sample_sizes = allocate(strata, total)
    least = [min(MIN_OF_STRATUM, successes), min(MIN_OF_STRATUM, failures)]
    assert sample_sizes[2] == 0
    assert all(need <= count <= each.size for need, count, each in zip(least, sample_sizes[:2], strata, strict=False))
    assert sum(sample_sizes) == max(sum(least), min(total, successes + failures))


def test_the_larger_stratum_is_drawn_from_in_proportion_to_size_and_deviation() -> None:
    assert allocate([Stratum("success", 50), Stratum("failure", 250)], 60) == [11, 49]


def run_of(draw: random.Random, size: int, errs: Sequence[float]) -> tuple[list[tuple[str, bool]], float]:
    """Attempts as verdict and truth, where the judge errs so often in each verdict; and people's rate."""
    attempts = []
    for _ in range(size):
        verdict = draw.random() < 0.3
        attempts.append(("success" if verdict else "failure", verdict != (draw.random() < errs[not verdict])))
    return attempts, fmean(truth for _, truth in attempts)


def test_intervals_cover_the_rate_of_people_where_the_judge_does_not() -> None:
    draw, covered = random.Random(5), 0
    for _ in range(400):
        attempts, truth = run_of(draw, 200, (0.2, 0.25))
        pools = {name: [each for verdict, each in attempts if verdict == name] for name in ("success", "failure")}
        strata = [Stratum(name, len(pool)) for name, pool in pools.items()]
        sample_sizes = allocate(strata, 40)
        estimated = estimate(
            [
                Stratum(each.verdict, each.size, [SampleLabel("", one) for one in draw.sample(pools[each.verdict], n)])
                for each, n in zip(strata, sample_sizes, strict=True)
            ]
        )
        assert estimated is not None
        covered += estimated.interval[0] <= truth <= estimated.interval[1]
    # 95 %, less three times the error of 400 samples.
    assert covered / 400 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)
