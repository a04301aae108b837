"""Charts as shapes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.charts import Chart, categories_chart, charts_of, duration, steps_chart
from judge.report.data import TaskRow
from judge.report.totals import totals_of
from judge.results.categories import Category
from judge.results.rates import LEVELS, OUTCOMES

ROW = TaskRow.without_attempt(
    task_id="t", website="https://a.example/", level="easy", verdict="success", steps=3, reference_length=4
)
PHASES = ("observe_s", "reply_s", "act_s", "judge_s", "duration_s")
ROWS = st.lists(
    st.builds(
        replace,
        st.just(ROW),
        verdict=st.sampled_from(OUTCOMES),
        level=st.sampled_from(LEVELS),
        steps=st.integers(0, 1000),
        reference_length=st.none() | st.integers(1, 400),
        scores=st.lists(st.none() | st.integers(1, 5), max_size=5).map(tuple),
        **dict.fromkeys(PHASES, st.floats(0, 1e5)),
    ),
    max_size=25,
)


def inside(chart: Chart) -> bool:
    limits = {"x": chart.width, "cx": chart.width, "x1": chart.width, "x2": chart.width}
    heights = dict.fromkeys(("y", "cy", "y1", "y2"), chart.height)
    return all(
        0 <= float(shape.attrs[name]) <= limit + 1
        for shape in chart.shapes
        for name, limit in (limits | heights).items()
        if name in shape.attrs
    )


@given(ROWS)
def test_every_shape_of_any_run_lies_inside_its_chart(rows: list[TaskRow]) -> None:
    for chart in charts_of(totals_of(rows), rows):
        assert inside(chart), chart.name


@given(ROWS)
def test_every_chart_has_its_numbers_as_a_table(rows: list[TaskRow]) -> None:
    for chart in charts_of(totals_of(rows), rows):
        assert {len(row) for row in chart.rows} == {len(chart.columns)}
        assert len(chart.sizes) == len(chart.rows) if chart.sizes else chart.shapes


def test_a_run_without_tasks_has_no_charts() -> None:
    assert charts_of(totals_of([]), []) == ()


def test_without_reference_lengths_there_is_nothing_to_compare_steps_with() -> None:
    assert steps_chart([replace(ROW, reference_length=None)]) is None


def test_categories_are_counted_over_failures_only() -> None:
    results: list[dict[Category, str]] = [{"loop": "x", "over_budget": "x"}, {"loop": "x"}, {}]
    failed = [replace(ROW, verdict="failure", categories=each) for each in results]
    chart = categories_chart([*failed, ROW, replace(ROW, verdict="aborted", categories={"blocked": "x"})])
    assert chart is not None
    assert chart.rows == (("loop", "2", "67 %"), ("over budget", "1", "33 %"))
    assert chart.answer.startswith("2 of 3 failures")
    assert categories_chart([ROW]) is None


def test_tasks_at_the_same_place_are_one_bigger_mark() -> None:
    chart = steps_chart([ROW, ROW, replace(ROW, steps=5)])
    assert chart is not None
    marks = [shape.title for shape in chart.shapes if shape.tag == "path"]
    assert marks == ["2 success: 3 steps, reference 4", "1 success: 5 steps, reference 4"]


def test_the_answer_says_how_many_steps_successes_took() -> None:
    chart = steps_chart([ROW, replace(ROW, steps=5), replace(ROW, steps=99, verdict="failure")])
    assert chart is not None
    assert "1.0 × the human steps" in chart.answer


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 ms"), (0.34, "340 ms"), (0.9999, "1.0 s"), (12.44, "12.4 s"), (59.96, "1 min 00 s"), (185, "3 min 05 s"),
     (7620, "2 h 07 min")],
)  # fmt: skip
def test_times_are_written_for_people(seconds: float, words: str) -> None:
    assert duration(seconds).replace("\u00a0", " ") == words
