"""Success rates corrected with people's labels."""

import math

import pytest

from judge.results.corrected import MIN_LABELS, SampleLabel, Stratum, estimate, missing_labels


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
