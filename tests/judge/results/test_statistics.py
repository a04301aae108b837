"""Success rates and their intervals, against brute force, published values and by their properties."""

import math
import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.entries import counts_of
from judge.results.statistics import (
    AttemptCounts,
    bootstrap,
    exact,
    interval_95,
    pass_at_k,
    pass_hat_k,
    repeats_of,
    sample_variance,
    success_rate,
    success_rate_of_all,
    tallies_of,
    wilson,
)

OUTCOMES = st.sampled_from(["success", "failure", "unscored", "aborted"])
# A task's attempts: outcomes of success and failure.
SCORED = st.lists(st.booleans(), min_size=1, max_size=8)


@given(SCORED, st.data())
def test_pass_at_k_and_pass_hat_k_are_the_shares_of_all_samples_of_k_attempts(
    attempts: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(attempts)))
    samples = list(combinations(attempts, k))
    successes, scored = sum(attempts), len(attempts)
    assert pass_at_k(successes, scored, k) == pytest.approx(sum(map(any, samples)) / len(samples))
    assert pass_hat_k(successes, scored, k) == pytest.approx(sum(map(all, samples)) / len(samples))


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_the_variance_within_a_task_is_half_the_chance_that_two_attempts_differ(attempts: list[bool]) -> None:
    pairs = list(combinations(attempts, 2))
    differing = sum(one != other for one, other in pairs) / len(pairs)
    assert sample_variance(sum(attempts), len(attempts)) == pytest.approx(differing / 2)


def test_a_task_counts_once_however_many_of_its_attempts_are_scored() -> None:
    tallies = [AttemptCounts(1, 1, 3), AttemptCounts(0, 3, 3), AttemptCounts(0, 0, 3)]
    assert success_rate(tallies) == pytest.approx(1 / 2)
    assert success_rate_of_all(tallies) == pytest.approx(1 / 9)


def test_with_one_attempt_at_each_task_the_interval_is_the_exact_one() -> None:
    tallies = [AttemptCounts(int(n < 6), 1, 1) for n in range(17)]
    assert interval_95(tallies) == exact(6, 17)
    assert interval_95([*tallies, AttemptCounts(0, 0, 1)]) == exact(6, 17)
    assert interval_95([]) == (0, 1)


def test_tasks_that_all_have_the_same_rate_do_not_make_the_interval_a_point() -> None:
    assert interval_95([AttemptCounts(2, 3, 3)] * 4) == pytest.approx(wilson(4 * 2 / 3, 4))
    low, high = interval_95([AttemptCounts(3, 3, 3)] * 4)
    assert low < 0.6
    assert high == 1


@given(st.lists(st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]), min_size=2, max_size=12), st.randoms())
def test_the_bootstrap_does_not_depend_on_the_order_of_tasks_and_holds_the_mean(
    values: list[float], shuffler: random.Random
) -> None:
    result = bootstrap(values)
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert bootstrap(shuffled) == result
    assert (result is None) == (len(set(values)) == 1)
    if result is not None:
        assert min(values) <= result[0] <= sum(values) / len(values) <= result[1] <= max(values)


def test_the_bootstrap_resamples_tasks_and_not_attempts() -> None:
    """Ten tasks that always succeed or always fail tell no more in nine epochs than in three."""
    three, nine = ([AttemptCounts(n * (i % 2), n, n) for i in range(10)] for n in (3, 9))
    assert interval_95(three) == interval_95(nine)


def test_the_bootstrap_of_many_tasks_is_close_to_the_normal_interval() -> None:
    values = [0.0] * 60 + [0.5] * 40 + [1.0] * 100
    mean = sum(values) / 200
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / 200 / 200)
    assert bootstrap(values) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.2 * error)


@given(st.lists(OUTCOMES, max_size=20))
def test_one_epoch_has_the_same_counts_as_a_file_without_epochs(outcomes: list[str]) -> None:
    entries = [{"task_id": f"t{n}", "verdict": outcome} for n, outcome in enumerate(outcomes)]
    counts = counts_of([{**entry, "epoch": 1} for entry in entries])
    assert counts == counts_of(entries)
    assert (counts["attempts"], counts["scored_attempts"]) == (counts["total_tasks"], counts["scored_tasks"])
    assert repeats_of(tallies_of((entry["task_id"], entry["verdict"]) for entry in entries)) is None


def entries(**outcomes: str) -> list[dict[str, Any]]:
    """Entries by task: `s`, `f`, `u` and `a` for the outcome in each epoch."""
    names = {"s": "success", "f": "failure", "u": "unscored", "a": "aborted"}
    return [
        {"task_id": task, "epoch": epoch, "verdict": names[letter], "stop_reason": "finished"}
        for task, letters in outcomes.items()
        for epoch, letter in enumerate(letters, 1)
    ]


def test_tasks_are_counted_once_and_attempts_apart() -> None:
    counts = counts_of(entries(a="ssf", b="fua", c="uaa", d="aaa"))
    assert {key: counts[key] for key in counts if key.endswith(("tasks", "attempts", "successes"))} == {
        "total_tasks": 4,
        "scored_tasks": 2,
        "unscored_tasks": 1,
        "aborted_tasks": 1,
        "successful_tasks": 4,
        "completed_tasks": 4,
        "judged_successes": 2,
        "attempts": 12,
        "scored_attempts": 4,
    }
    assert (counts["success_rate"], counts["success_rate_of_all"]) == (33.3, 16.7)


def test_a_task_is_completed_only_if_all_of_its_attempts_are() -> None:
    listed = entries(a="ss", b="sf")
    listed[3]["stop_reason"] = "max_steps"
    assert counts_of(listed)["completed_tasks"] == 1


def test_attempts_that_were_lost_make_the_counts_incomplete_though_every_task_has_a_score() -> None:
    counts = counts_of(entries(a="sua", b="fff"))
    assert (counts["scored_tasks"], counts["is_complete"]) == (2, False)


def test_repeats_name_the_chances_for_each_k_and_the_spread_of_each_task() -> None:
    repeats = repeats_of(tallies_of((each["task_id"], each["verdict"]) for each in entries(a="ssf", b="fff", c="su")))
    assert repeats == {
        "epochs": 3,
        "by_k": [
            {"k": 1, "tasks": 3, "pass_at_k": 55.6, "pass_hat_k": 55.6},
            {"k": 2, "tasks": 2, "pass_at_k": 50.0, "pass_hat_k": 16.7},
            {"k": 3, "tasks": 2, "pass_at_k": 50.0, "pass_hat_k": 0.0},
        ],
        "variance": 0.1667,
        "tasks": [
            {"task_id": "a", "attempts": 3, "scored": 3, "successes": 2, "variance": 0.3333},
            {"task_id": "b", "attempts": 3, "scored": 3, "successes": 0, "variance": 0.0},
            {"task_id": "c", "attempts": 2, "scored": 1, "successes": 1, "variance": None},
        ],
    }


COUNTS = st.integers(0, 60).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


def test_of_many_repeats_the_usual_values_of_k_and_the_largest_are_shown() -> None:
    repeats = repeats_of(tallies_of((each["task_id"], each["verdict"]) for each in entries(a="s" * 12)))
    assert repeats is not None
    assert [row["k"] for row in repeats["by_k"]] == [1, 2, 5, 10, 12]


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
