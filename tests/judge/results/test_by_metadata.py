"""Metadata of tasks in results: rates by group, clustered intervals, tables and pages; and efficiency."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import scipy

from helpers.plugins import make_board
from helpers.results import a_result, a_step, a_submission, a_verdict
from judge.records.tasks import Task
from judge.report.data import TaskRow
from judge.report.totals import totals_of
from judge.results.columns import RowSource
from judge.results.comparison import compare
from judge.results.entries import read_entries
from judge.results.rates import CountedAttempt, Rate
from judge.results.significance import student_quantile
from judge.results.tables import csv_of
from judge.trajectory.record import Attempt

# Successes of four tasks each.
TEMPLATES = {"t1": 4, "t2": 3, "t3": 2, "t4": 1, "t5": 2}


def attempt(name: str, outcome: str, *, steps: int = 2, length: int | None = None, **metadata: Any) -> Attempt:
    task = Task(task_id=name, website="https://a.example/", task="Find it.", metadata=metadata, reference_length=length)
    steps_taken = tuple(a_step(index) for index in range(steps))
    return a_result(name, verdict=a_verdict(outcome), steps=steps_taken).model_copy(update={"task": task})


def by_template() -> list[Attempt]:
    return [
        attempt(f"{name}-{number}", "success" if number < successes else "failure", template=name)
        for name, successes in TEMPLATES.items()
        for number in range(4)
    ]


def detail_of(*attempts: Attempt, **provenance: Any) -> dict[str, Any]:
    value: dict[str, Any] = a_submission(*attempts, provenance=provenance)["results"][0]["detail"]
    return value


def rows_of(*attempts: Attempt) -> list[TaskRow]:
    return [TaskRow.of(RowSource(each, each.task.task_id, 1, each.verdict)) for each in attempts]


def test_v5_b8_a_clustered_interval_is_the_one_computed_by_hand() -> None:
    # Mean 12/20. The deviations add up to 1.6, 0.6, -0.4, -1.4 and -0.4 in the five clusters; their squares to 5.2.
    error = math.sqrt(5.2) / 20 * math.sqrt(5 / 4)
    # Student's 97.5 % quantile with 4 degrees of freedom, from a printed table.
    low, high = 100 * (0.6 - 2.776 * error), 100 * (0.6 + 2.776 * error)
    detail = detail_of(*by_template(), cluster="template")
    assert detail["confidence_interval_95"] == [round(low, 1), round(high, 1)] == [24.6, 95.4]
    assert (detail["success_rate"], detail["cluster"]) == (60.0, "template")
    assert detail_of(*by_template())["confidence_interval_95"] == [37.2, 79.1]
    totals = totals_of(rows_of(*by_template()), cluster="template")
    assert (round(totals.all.low, 1), round(totals.all.high, 1), totals.clusters) == (24.6, 95.4, 5)


@pytest.mark.slow
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 811])
def test_students_quantile_is_scipys(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-9)


def test_clusters_of_one_task_change_nothing() -> None:
    attempts = [CountedAttempt(f"t{n}", "success" if n else "failure", metadata={"k": n}) for n in range(5)]
    assert Rate.of(each.clustered_by("k") for each in attempts) == Rate.of(attempts)
    assert Rate.of(each.clustered_by("other") for each in attempts) == Rate.of(attempts)


def test_equal_rates_are_those_of_as_many_tasks_as_clusters_and_one_cluster_says_nothing() -> None:
    all_right = [CountedAttempt(f"t{n}", "success", cluster=f"c{n % 3}") for n in range(30)]
    rate = Rate.of(all_right)
    assert (round(rate.low, 1), rate.high) == (43.9, 100.0)
    one = Rate.of([CountedAttempt("a", "success", cluster="c"), CountedAttempt("b", "failure", cluster="c")])
    assert (one.low, one.high) == (0.0, 100.0)


def test_the_difference_of_two_runs_is_clustered_as_well() -> None:
    first, later = (rows_of(*by_template()) for _ in range(2))
    better = rows_of(*(each.model_copy(update={"verdict": a_verdict("success")}) for each in by_template()))
    comparison = compare(first, better, "template")
    # The differences add up to 0, 1, 2, 3 and 2 in the clusters of four: 1.6 and so on from the mean of 0.4.
    half = 2.776 * math.sqrt(5.2) / 20 * math.sqrt(5 / 4)
    assert comparison.interval == pytest.approx((100 * (0.4 - half), 100 * (0.4 + half)), abs=0.02)
    assert compare(first, later, "template").interval is None


def test_rates_by_group_have_intervals_and_stand_in_the_submission() -> None:
    attempts = [attempt("a", "success", category="shop"), attempt("b", "failure", category="shop", n=2)]
    detail = detail_of(*attempts, attempt("c", "failure"))
    found = {(each["key"], each["value"]): each for each in detail["by_metadata"]}
    assert list(found) == [("category", "shop"), ("n", "2")]
    shop = found["category", "shop"]
    assert (shop["success_rate"], shop["scored_tasks"]) == (50.0, 2)
    assert shop["confidence_interval_95"][0] < 50 < shop["confidence_interval_95"][1]
    assert [each.get("metadata") for each in detail["tasks"]] == [
        {"category": "shop"},
        {"category": "shop", "n": 2},
        None,
    ]
    assert "by_metadata" not in detail_of(attempt("a", "success"))


def test_a_key_that_is_different_for_every_task_is_no_group() -> None:
    detail = detail_of(*(attempt(f"t{n}", "success", id=n, set="x") for n in range(51)))
    assert [(each["key"], each["value"]) for each in detail["by_metadata"]] == [("set", "x")]


def test_a_sealed_task_publishes_no_metadata() -> None:
    sealed = attempt("t", "success", category="shop")
    sealed = sealed.model_copy(update={"task": sealed.task.model_copy(update={"sealed": "ab" * 32})})
    text = json.dumps(a_submission(sealed))
    assert "shop" not in text
    assert "by_metadata" not in text


@pytest.mark.parametrize("value", [{"a": {"b": 1}}, {"a": "x" * 500}, [1], "x", {"<b>": 1}])
def test_a_strangers_metadata_are_bounded(value: Any) -> None:
    (entry,) = read_entries([{"task_id": "t", "verdict": "success", "metadata": value}])
    assert entry.metadata is None


def test_tables_have_metadata_as_json_and_reports_group_by_them(tmp_path: Path) -> None:
    rows = rows_of(attempt("a", "success", category="a shop", n=2), attempt("b", "success"))
    table = list(csv.DictReader(io.StringIO(csv_of(rows))))
    assert [row["metadata"] for row in table] == ['{"category": "a shop", "n": 2}', ""]


def test_a_leaderboard_page_has_the_rates_by_group_and_the_efficiency(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    runs = [attempt("a", "success", steps=4, length=3, category="<shop>"), attempt("b", "failure", category="desk")]
    path.write_text(json.dumps(a_submission(*runs)))
    page = make_board([path], tmp_path / "board").read_text()
    assert "By category" in page
    assert "&lt;shop&gt;" in page
    assert ">100.0 %</td><td" in page.replace("\n", "").partition("By category")[2] or "desk" in page
    (row,) = json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    assert row["by_metadata"] == {"category": {"<shop>": 100.0, "desk": 0.0}}
    assert row["efficiency"] == 0.75


def test_efficiency_is_the_mean_over_successes_of_reference_length_by_steps() -> None:
    attempts = [
        attempt("a", "success", steps=4, length=3),
        # Fewer steps than the reference count as much as as many.
        attempt("b", "success", steps=2, length=5),
        attempt("c", "failure", steps=1, length=5),
        attempt("d", "success", steps=1),
    ]
    detail = detail_of(*attempts)
    assert [each.get("efficiency") for each in detail["tasks"]] == [0.75, 1.0, None, None]
    assert detail["efficiency"] == 0.875
    assert totals_of(rows_of(*attempts)).efficiency == 0.875
    assert "efficiency" not in detail_of(attempt("d", "success"))
