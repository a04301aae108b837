"""The order of runs under several judges."""

from itertools import permutations
from pathlib import Path

import pytest

from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, write_verdict_on
from judge.plugins.labels.labelling import begin
from judge.plugins.labels.rank_stability import COUNTED, LABELS, kendall_tau, rank_stability
from judge.store.layout import RunStore
from plugins.labels.labelled import label_truly
from shared.errors import ConfigError

OTHER = "webvoyager-0123456789ab"


def a_run(folder: Path, run_id: str, successes: int, others: int, tasks: int = 12) -> RunStore:
    """A run in which the first tasks succeeded, and another judge says the same of another number of them."""
    run = a_finished_run(
        folder,
        *(a_result(f"t{n}", verdict=a_verdict("success" if n < successes else "failure")) for n in range(tasks)),
        run_id=run_id,
    )
    judge = JUDGE.model_copy(update={"method": "webvoyager"})
    for n in range(tasks):
        write_verdict_on(run.task(f"t{n}"), OTHER, a_verdict("success" if n < others else "failure", judge=judge))
    return run


def test_runs_that_change_places_are_named_with_kendalls_tau(tmp_path: Path) -> None:
    runs = [a_run(tmp_path, name, *counts) for name, counts in {"a": (9, 2), "b": (6, 6), "c": (1, 5)}.items()]
    result = rank_stability(runs)
    assert result.tasks == 12
    counted, *others = result.orders
    assert (counted.judge, counted.rates, counted.tau) == (COUNTED, {"a": 75.0, "b": 50.0, "c": 8.3}, None)
    [other] = [order for order in others if "webvoyager" in order.judge]
    assert other.rates == {"a": 16.7, "b": 50.0, "c": 41.7}
    assert other.tau == pytest.approx(-1 / 3)
    assert other.swapped == (("a", "b"), ("a", "c"))
    assert other.interval_95 is not None
    low, high = other.interval_95
    assert low <= -1 / 3 <= high
    same = next(order for order in others if order is not other)
    assert (same.tau, same.swapped, same.interval_95) == (1.0, (), (1.0, 1.0))


@pytest.mark.slow
def test_labels_order_runs_if_all_of_them_have_enough(tmp_path: Path) -> None:
    runs = [a_run(tmp_path, name, *counts, tasks=24) for name, counts in {"a": (12, 12), "b": (4, 4)}.items()]
    assert LABELS not in [order.judge for order in rank_stability(runs).orders]
    label_truly(begin(runs, "anna"))
    order = rank_stability(runs).orders[-1]
    # What people say depends on the task's number only, so both runs are alike to them.
    assert (order.judge, order.tau, order.swapped) == (LABELS, None, ())
    assert order.rates["a"] == order.rates["b"]


def test_runs_without_a_common_task_are_refused(tmp_path: Path) -> None:
    runs = [a_finished_run(tmp_path, a_result(name), run_id=name) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="no scored task in common"):
        rank_stability(runs)


@pytest.mark.parametrize("order", list(permutations((1.0, 2.0, 3.0))))
def test_tau_counts_pairs(order: tuple[float, float, float]) -> None:
    pairs = [(a, b) for a in range(3) for b in range(a)]
    expected = sum(1 if order[a] > order[b] else -1 for a, b in pairs) / 3
    assert kendall_tau((1.0, 2.0, 3.0), order) == pytest.approx(expected)


def test_tau_with_ties_is_tau_b() -> None:
    # As scipy.stats.kendalltau gives it.
    assert kendall_tau((1, 2, 2, 3), (1, 2, 3, 3)) == pytest.approx(0.8)
    assert kendall_tau((1, 1), (1, 2)) is None
