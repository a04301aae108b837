"""What a run's rows add up to."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.data import OUTCOMES, RowOutcome, TaskRow
from judge.report.totals import rate_of, totals_of
from judge.results.submission import counts_of
from shared.models import TokenUsage

ROW = TaskRow("t", "Find it.", "https://a.example/", "a.example", "easy", "success", "", cost_usd=0.5, duration_s=10.0)


@given(st.lists(st.sampled_from(OUTCOMES), max_size=40))
def test_every_task_is_in_exactly_one_count(outcomes: list[RowOutcome]) -> None:
    rate = rate_of(outcomes)
    assert sum(rate.counts.values()) == rate.total == len(outcomes)
    assert rate.scored == rate.counts["success"] + rate.counts["failure"]


@given(st.lists(st.sampled_from(OUTCOMES[:4]), min_size=1, max_size=40))
def test_rate_and_interval_are_those_of_the_submission(outcomes: list[RowOutcome]) -> None:
    official = counts_of([{"verdict": outcome, "level": "easy"} for outcome in outcomes])
    rate = rate_of(outcomes)
    assert round(rate.rate or 0.0, 1) == official["success_rate"]
    assert [round(rate.low, 1), round(rate.high, 1)] == official["confidence_interval_95"]


def test_nothing_scored_gives_no_rate() -> None:
    assert rate_of(["aborted", "unscored"]).rate is None


def test_one_unknown_price_makes_the_cost_unknown_but_not_the_known_part() -> None:
    totals = totals_of([ROW, replace(ROW, cost_usd=None)])
    assert (totals.cost_usd, totals.known_cost_usd, totals.cost_per_success) == (None, 0.5, None)


def test_cost_per_success_counts_what_failures_cost_too() -> None:
    assert totals_of([ROW, replace(ROW, outcome="failure")]).cost_per_success == 1.0


def test_levels_stand_in_their_order_and_websites_by_name() -> None:
    totals = totals_of([replace(ROW, level="hard"), replace(ROW, level="unknown"), replace(ROW, site="0.example")])
    assert list(totals.by_level) == ["easy", "hard", "unknown"]
    assert list(totals.by_site) == ["0.example", "a.example"]


def test_scores_are_counted_with_those_that_are_missing() -> None:
    assert totals_of([replace(ROW, scores=(1, 5, 5, None))]).scores == {
        "1": 1, "2": 0, "3": 0, "4": 0, "5": 2, "none": 1,
    }  # fmt: skip


def test_tokens_and_median_are_of_all_tasks() -> None:
    totals = totals_of([replace(ROW, tokens=TokenUsage(calls=1, input=5)), replace(ROW, duration_s=20.0)])
    assert (totals.tokens.input, totals.median_task_s) == (5, pytest.approx(15.0))


def test_each_judge_has_its_own_rate() -> None:
    totals = totals_of([ROW, ROW], [{"a": "success", "b": "failure"}, {"a": "success"}])
    assert {name: (rate.rate, rate.total) for name, rate in totals.by_judge.items()} == {"a": (100, 2), "b": (0, 1)}
