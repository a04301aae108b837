"""What a run's rows add up to, and how two runs compare."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.report_rows import repeated, rows
from judge.report.data import TaskRow
from judge.report.totals import totals_of
from judge.results.entries import counts_of
from judge.results.given_verdicts import GivenVerdict
from judge.results.rates import OUTCOMES, CountedAttempt, Rate, RowOutcome
from shared.models import TokenUsage

ROW = TaskRow.without_attempt(
    task_id="t",
    epoch=1,
    task="Find it.",
    website="https://a.example/",
    level="easy",
    verdict="success",
    cost_usd=0.5,
    duration_s=10.0,
)


def rate_of_tasks(outcomes: Sequence[RowOutcome]) -> Rate:
    return Rate.of(CountedAttempt(f"t{number}", outcome) for number, outcome in enumerate(outcomes))


@given(st.lists(st.sampled_from(OUTCOMES), max_size=40))
def test_every_task_is_in_exactly_one_count(outcomes: list[RowOutcome]) -> None:
    rate = rate_of_tasks(outcomes)
    assert sum(rate.counts.values()) == rate.total == len(outcomes)
    assert rate.scored == rate.counts["success"] + rate.counts["failure"]


@given(st.lists(st.sampled_from(OUTCOMES[:4]), min_size=1, max_size=40))
def test_rate_and_interval_are_those_of_the_submission(outcomes: list[RowOutcome]) -> None:
    official = counts_of([{"verdict": outcome, "level": "easy"} for outcome in outcomes])
    rate = rate_of_tasks(outcomes)
    assert round(rate.rate or 0.0, 1) == official["success_rate"]
    assert [round(rate.low, 1), round(rate.high, 1)] == official["confidence_interval_95"]


def test_nothing_scored_gives_no_rate() -> None:
    assert rate_of_tasks(["aborted", "unscored"]).rate is None


def test_one_unknown_price_makes_the_cost_unknown_but_not_the_known_part() -> None:
    totals = totals_of([ROW, replace(ROW, cost_usd=None)])
    assert (totals.cost_usd, totals.known_cost_usd, totals.cost_per_success) == (None, 0.5, None)


def test_steps_are_those_per_attempt_also_under_attack() -> None:
    attack: dict[str, Any] = {"attack": "a", "attack_kind": "insert", "clean_task": ROW.task_id, "attack_shown": True}
    totals = totals_of([replace(ROW, steps=2), replace(ROW, task_id="t--a", steps=4, **attack)])
    assert (totals.all.total, totals.steps_per_attempt) == (1, 3.0)


def test_cost_per_success_counts_what_failures_cost_too() -> None:
    assert totals_of([ROW, replace(ROW, verdict="failure")]).cost_per_success == 1.0


def test_levels_are_in_their_order_and_websites_sorted_by_name() -> None:
    totals = totals_of(
        [replace(ROW, level="hard"), replace(ROW, level=None), replace(ROW, website="https://0.example/")]
    )
    assert list(totals.by_level) == ["easy", "hard", "unknown"]
    assert list(totals.by_site) == ["0.example", "a.example"]


def test_scores_are_counted_with_those_that_are_missing() -> None:
    assert totals_of([replace(ROW, scores=(1, 5, 5, None))]).scores == {
        "1": 1, "2": 0, "3": 0, "4": 0, "5": 2, "none": 1,
    }  # fmt: skip


def test_tokens_and_median_are_of_all_tasks() -> None:
    totals = totals_of([replace(ROW, input_tokens=5), replace(ROW, duration_s=20.0)])
    assert totals.tokens.input == 5
    assert totals.median_task_s == pytest.approx(15.0)


def test_each_judge_has_its_own_rate() -> None:
    first = (
        GivenVerdict(judge_id="a-1", name="a", outcome="success"),
        GivenVerdict(judge_id="b-1", name="b", outcome="failure"),
    )
    totals = totals_of([replace(ROW, given_verdicts=first), replace(ROW, given_verdicts=first[:1])])
    rates = {str(name): (rate.rate, rate.total) for name, rate in totals.by_judge.items()}
    assert rates == {"a": (100, 2), "b": (0, 1)}


def test_judges_of_one_name_have_rates_of_their_own_and_one_that_was_asked_again_has_one() -> None:
    ids = ("w-0123456789ab", "w-0123456789ab.r2", "w-fedcba987654")
    given_verdicts = tuple(GivenVerdict(judge_id=judge_id, name="w · m", outcome="success") for judge_id in ids)
    totals = totals_of([replace(ROW, given_verdicts=given_verdicts)])
    rates = {str(name): rate.total for name, rate in totals.by_judge.items()}
    assert rates == {"w · m (012345)": 2, "w · m (fedcba)": 1}


def test_all_judgings_are_added_up_and_each_judge_is_shown() -> None:
    def given(judge_id: str, cost_usd: float | None) -> GivenVerdict:
        usage = TokenUsage(calls=2, input=10)
        return GivenVerdict(judge_id=judge_id, name=judge_id, outcome="success", usage=usage, cost_usd=cost_usd)

    rows = [replace(ROW, given_verdicts=(given("a-1", 0.5), given("b-1", 0.25))), replace(ROW, given_verdicts=())]
    totals = totals_of(rows)
    assert totals.judging_cost_usd == 0.75
    assert [(each.judge, each.usage.calls, each.cost_usd) for each in totals.judged] == [
        ("a-1", 2, 0.5),
        ("b-1", 2, 0.25),
    ]
    assert totals_of([*rows, replace(ROW, given_verdicts=(given("a-1", None),))]).judging_cost_usd is None


def test_repeated_tasks_have_the_rate_and_interval_of_the_submission() -> None:
    listed = repeated(a="ssf", b="faa", c="fff", d="sss")
    totals = totals_of(listed)
    official = counts_of([{"task_id": each.task_id, "epoch": each.epoch, "verdict": each.outcome} for each in listed])
    rate = totals.all
    assert [round(value or 0, 1) for value in (rate.rate, rate.rate_of_all)] == [
        official["success_rate"],
        official["success_rate_of_all"],
    ]
    assert [round(rate.low, 1), round(rate.high, 1)] == official["confidence_interval_95"]
    assert (rate.total, rate.scored, rate.is_complete) == (12, 10, False)
    assert totals.repeats is not None
    assert totals_of(rows("sf")).repeats is None


def test_scores_of_checks_are_not_relevance() -> None:
    scored = replace(ROW, scores=(1, 5), decided_by="checks")
    assert totals_of([scored]).scores == {}
    assert totals_of([replace(scored, decided_by="judge")]).scores["5"] == 1
