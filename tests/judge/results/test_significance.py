"""Clustered intervals, detectable differences and corrected p-values, against published examples."""

import pytest

from judge.results.significance import clustered_error, clustered_interval, detectable, detectable_difference, holm

# Lohr, Sampling: Design and Analysis, chapter 5: the grade point averages of four students in each of five suites.
SUITES = (
    (3.08, 2.60, 3.44, 3.04),
    (2.36, 3.04, 3.28, 2.68),
    (2.00, 2.56, 2.52, 1.88),
    (3.00, 2.88, 3.44, 3.64),
    (2.68, 1.92, 3.28, 3.20),
)


def test_the_error_of_clusters_is_that_of_a_published_cluster_sample() -> None:
    error = clustered_error((str(number), value) for number, suite in enumerate(SUITES) for value in suite)
    assert error is not None
    # The book's estimate divides by the number of clusters less one, and is for 5 of 100 suites.
    assert (error * error * 5 / 4 * 95 / 100) ** 0.5 == pytest.approx(0.164, abs=0.0005)


def test_clusters_of_one_have_the_error_of_independent_values() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0]
    error = clustered_error((str(number), value) for number, value in enumerate(values))
    assert error == pytest.approx((0.6 * 0.4 / 5) ** 0.5)


def test_values_that_agree_within_clusters_count_as_few() -> None:
    few = clustered_interval([("a", 1.0), ("b", 0.0), ("c", 1.0)])
    many = clustered_interval([("a", 1.0), ("b", 0.0), ("c", 1.0)] * 50)
    assert few is not None
    assert many is not None
    assert (many.low, many.high) == pytest.approx((few.low, few.high))


def test_one_website_has_no_clusters() -> None:
    assert clustered_interval([("a", 1.0), ("a", 0.0)]) is None


def test_the_detectable_effect_is_that_of_nists_handbook() -> None:
    # NIST/SEMATECH e-Handbook 7.2.2.2: one-sided 5 %, power 90 %, one standard deviation: 8.567 values, so 9.
    (enough, too_few) = (detectable(1.0, size, level=0.10, power=0.90) for size in (9, 8))
    assert enough is not None
    assert too_few is not None
    assert enough < 1 < too_few
    assert 9 * enough**2 == pytest.approx(8.567, abs=0.004)


def test_the_questions_that_three_points_need_are_those_of_adding_error_bars_to_evals() -> None:
    # Miller 2024: with a variance of 1/9 between questions, 80 % power and 3 points need about 1,000 questions.
    result = detectable(1 / 9, 969)
    assert result == pytest.approx(0.03, abs=1e-5)


def test_equal_differences_say_nothing_about_what_can_be_detected() -> None:
    assert detectable_difference([0.0, 0.0, 0.0]) is None
    assert detectable_difference([1.0, 0.0, -1.0, 0.0]) == pytest.approx(114.4, abs=0.1)


def test_holms_correction_is_that_of_the_published_example() -> None:
    # The example of the article on the Holm-Bonferroni method in Wikipedia.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_a_corrected_p_value_is_at_most_one() -> None:
    assert holm([0.9, 0.8]) == (1.0, 1.0)
