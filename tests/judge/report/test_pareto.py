"""Cost against success: only measured costs are drawn, and the front is what no other run beats."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from judge.report.data import TaskRow
from judge.report.pareto import front_of, pareto_chart
from judge.report.totals import Totals, totals_of
from judge.results.metering import MeteredUsage

ROWS = [TaskRow.without_attempt(task_id=str(number), verdict="success") for number in range(4)]


def totals(cost: float | None) -> Totals:
    known = MeteredUsage(calls=1, known_cost_usd=cost or 0.0, unpriced_calls=1 if cost is None else 0)
    return totals_of(ROWS, known)


def test_the_front_has_what_no_other_run_beats() -> None:
    assert front_of([("A", 1, 50), ("B", 2, 40), ("C", 2, 60), ("D", 1, 50)]) == ("A", "C", "D")


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(0, 9), st.floats(0, 100)), min_size=1))
def test_some_run_is_always_on_the_front(points: list[tuple[str, float, float]]) -> None:
    assert front_of(points)


def test_a_run_without_a_known_cost_is_named_and_not_drawn() -> None:
    unmetered = replace(totals(1.0), metered=None)
    chart = pareto_chart([("A", totals(2.0)), ("B", totals(None)), ("C", unmetered)])
    assert chart is not None
    assert chart.rows == (("A", "$0.5000", "100.0 %", "yes"),)
    assert chart.answer.endswith("Without a known cost, so not drawn: B, C.")


def test_without_a_measured_cost_there_is_no_chart() -> None:
    assert pareto_chart([("A", totals(None)), ("B", totals(None))]) is None
