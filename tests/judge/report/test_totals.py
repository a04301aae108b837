"""What a run's rows add up to, and how two runs compare."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.data import RunView, TaskRow
from judge.report.pages import ComparedRun, Renderer
from judge.report.totals import compare, differences, matrix_of, task_counts, totals_of
from judge.results.entries import counts_of
from judge.results.judgings import Judging
from judge.results.rates import OUTCOMES, CountedAttempt, Rate, RowOutcome
from judge.results.statistics import mcnemar_exact
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
    attack: dict[str, Any] = {"attack": "a", "attack_kind": "insert", "attack_of": ROW.task_id, "attack_shown": True}
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
    first = (Judging(judge_id="a-1", name="a", outcome="success"), Judging(judge_id="b-1", name="b", outcome="failure"))
    totals = totals_of([replace(ROW, judgings=first), replace(ROW, judgings=first[:1])])
    rates = {str(name): (rate.rate, rate.total) for name, rate in totals.by_judge.items()}
    assert rates == {"a": (100, 2), "b": (0, 1)}


def test_judges_of_one_name_have_rates_of_their_own_and_one_that_was_asked_again_has_one() -> None:
    ids = ("w-0123456789ab", "w-0123456789ab.r2", "w-fedcba987654")
    judgings = tuple(Judging(judge_id=judge_id, name="w · m", outcome="success") for judge_id in ids)
    totals = totals_of([replace(ROW, judgings=judgings)])
    rates = {str(name): rate.total for name, rate in totals.by_judge.items()}
    assert rates == {"w · m (012345)": 2, "w · m (fedcba)": 1}


def test_all_judgings_are_added_up_and_each_judge_is_shown() -> None:
    def judging(judge_id: str, cost_usd: float | None) -> Judging:
        usage = TokenUsage(calls=2, input=10)
        return Judging(judge_id=judge_id, name=judge_id, outcome="success", usage=usage, cost_usd=cost_usd)

    rows = [replace(ROW, judgings=(judging("a-1", 0.5), judging("b-1", 0.25))), replace(ROW, judgings=())]
    totals = totals_of(rows)
    assert totals.judging_cost_usd == 0.75
    assert [(each.judge, each.usage.calls, each.cost_usd) for each in totals.judged] == [
        ("a-1", 2, 0.5),
        ("b-1", 2, 0.25),
    ]
    assert totals_of([*rows, replace(ROW, judgings=(judging("a-1", None),))]).judging_cost_usd is None


def row(task_id: str, outcome: RowOutcome, **changes: str) -> TaskRow:
    values: dict[str, Any] = {
        "task": "Find it.",
        "website": "https://example.org/",
        "level": "easy",
    } | changes
    return TaskRow.without_attempt(task_id=task_id, verdict=outcome, **values)


def rows(outcomes: str) -> list[TaskRow]:
    names: dict[str, RowOutcome] = {name[0]: name for name in ("success", "failure", "aborted")}
    return [row(f"t{number}", names[letter]) for number, letter in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    # Binomial tails worked out by hand.
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (6, 0, 2 / 64), (8, 2, 2 * 56 / 1024), (3, 3, 1.0)],
)
def test_mcnemar_gives_the_binomial_probability_of_so_lopsided_a_split(gained: int, lost: int, p: float) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(p, rel=1e-12)


@pytest.mark.slow
def test_mcnemar_stays_exact_for_thousands_of_tasks() -> None:
    assert mcnemar_exact(3000, 3000) == 1.0
    assert 0 < mcnemar_exact(3200, 2800) < 1e-6


@given(st.integers(0, 80), st.integers(0, 80))
def test_mcnemar_is_a_symmetric_probability_that_agrees_with_the_tail_sum(gained: int, lost: int) -> None:
    p = mcnemar_exact(gained, lost)
    n = gained + lost
    heads = range(n + 1)
    as_extreme = sum(math.comb(n, k) for k in heads if min(k, n - k) <= min(gained, lost)) / 2**n
    assert p == mcnemar_exact(lost, gained)
    assert p == pytest.approx(as_extreme)


def test_gained_and_lost_tasks_are_listed_separately() -> None:
    found = compare(rows("ssff"), rows("sfsf"))
    assert (found.gained, found.lost) == (("t2",), ("t1",))
    assert (found.both, found.neither, found.paired) == (1, 1, 4)


def test_a_task_that_one_run_did_not_score_is_not_evidence() -> None:
    found = compare(rows("sfa"), rows("afa"))
    assert (found.shared, found.paired, found.gained, found.lost) == (3, 1, (), ())


def test_a_task_with_another_text_is_left_out_and_named() -> None:
    found = compare([row("t0", "failure")], [row("t0", "success", task="Find something else.")])
    assert found.changed_tasks == ("t0",)
    assert found.gained == ()


def test_tasks_of_one_run_only_are_counted_apart() -> None:
    found = compare(rows("ss"), rows("s"))
    assert (found.shared, found.only_first, found.only_later) == (1, 1, 0)


def test_six_flips_in_one_direction_are_significant_and_five_are_not() -> None:
    assert compare(rows("f" * 6), rows("s" * 6)).is_significant
    assert not compare(rows("f" * 5), rows("s" * 5)).is_significant


def test_without_a_paired_task_there_is_no_difference() -> None:
    assert compare(rows("a"), rows("s")).difference is None


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.sampled_from(OUTCOMES)), max_size=30))
def test_every_task_that_both_runs_scored_is_in_exactly_one_place(pairs: list[tuple[RowOutcome, RowOutcome]]) -> None:
    first = [row(f"t{n}", before) for n, (before, _) in enumerate(pairs)]
    later = [row(f"t{n}", after) for n, (_, after) in enumerate(pairs)]
    found = compare(first, later)
    assert found.shared == len(pairs)
    assert found.paired == sum({a, b} <= {"success", "failure"} for a, b in pairs)
    assert found.paired == found.both + found.neither + len(found.gained) + len(found.lost)


def repeated(**outcomes: str) -> list[TaskRow]:
    names: dict[str, RowOutcome] = {name[0]: name for name in ("success", "failure", "aborted")}
    return [
        replace(row(task, names[letter]), epoch=epoch)
        for task, letters in outcomes.items()
        for epoch, letter in enumerate(letters, 1)
    ]


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


def test_repeated_runs_are_compared_task_by_task() -> None:
    found = compare(repeated(a="sf", b="ff", c="ss", d="aa"), repeated(a="ss", b="sf", c="sf", d="sf"))
    assert (found.gained, found.lost) == (("a", "b"), ("c",))
    assert (found.paired, found.p, found.is_significant) == (3, mcnemar_exact(2, 1), False)
    assert found.difference == pytest.approx(100 * (0.5 + 0.5 - 0.5) / 3)
    assert found.interval is not None
    assert found.interval[0] < 100 / 6 < found.interval[1]


def test_a_comparison_says_where_most_tasks_and_the_average_point_to_different_sides() -> None:
    first = repeated(**{f"t{n}": "f" * 10 for n in range(9)}, drop="s" * 10)
    later = repeated(**{f"t{n}": "s" + "f" * 9 for n in range(9)}, drop="f" * 10)
    found = compare(first, later)
    assert found.is_significant
    assert found.difference == pytest.approx(-1)
    runs = [ComparedRun(letter, RunView("r", {}, ""), totals_of(first), found) for letter in "AB"]
    html = Renderer().comparison(runs, [])
    assert "Run B is better at most tasks that differ, but not on average" in html


def test_the_interval_of_a_difference_is_that_of_the_paired_tasks() -> None:
    """Tasks that succeed or fail in both runs leave no doubt; two independent samples would."""
    found = compare(rows("s" * 50 + "f" * 50), rows("s" * 50 + "f" * 40 + "s" * 10))
    assert found.interval is not None
    assert 3 < found.interval[0] < 10 < found.interval[1] < 17
    assert compare(rows("sf"), rows("sf")).interval is None


def test_settings_that_differ_are_named_and_equal_ones_are_not() -> None:
    records = [{"judge_model": "offline", "judge_id": "a"}, {"judge_model": "gemini:x", "judge_id": "a"}]
    assert differences(records) == (("judge", ("checks", "gemini:x")),)
    judges = [{"judge_model": "m", "judge_id": f"w-{digest}"} for digest in ("0123456789ab", "fedcba987654")]
    assert differences(judges) == (("judge", ("w · m (012345)", "w · m (fedcba)")),)


def test_a_matrix_begins_with_what_differs_and_ends_with_what_every_run_can_do() -> None:
    outcomes: dict[str, tuple[RowOutcome, ...]] = {
        "both": ("success", "success"),
        "none": ("failure", "failure"),
        "one": ("success", "failure"),
    }
    runs = [[replace(ROW, task_id=name, verdict=pair[run]) for name, pair in outcomes.items()] for run in (0, 1)]
    matrix = matrix_of([*runs, []])
    assert [each.task_id for each in matrix] == ["one", "none", "both"]
    assert [group.outcome if group else None for group in matrix[0].groups] == ["success", "failure", None]


def test_a_matrix_begins_with_tasks_that_some_runs_solved_and_others_did_not() -> None:
    first: dict[str, RowOutcome] = {"lost": "aborted", "absent": "failure", "mixed": "failure", "same": "failure"}
    later: dict[str, RowOutcome] = {"lost": "success", "mixed": "success", "same": "failure"}
    runs = [[replace(ROW, task_id=name, verdict=end) for name, end in ends.items()] for ends in (first, later)]
    matrix = matrix_of(runs)
    assert [each.task_id for each in matrix] == ["mixed", "lost", "absent", "same"]
    assert task_counts(matrix, 2) == (4, 3)


def test_the_epochs_of_a_task_are_one_row() -> None:
    second = replace(ROW, epoch=2, verdict="failure", steps=2)
    twice = [second, replace(ROW, steps=1)]
    (each,) = matrix_of([twice, [ROW]])
    assert each.pages == ("t", "t.2")
    assert each.is_mixed
    group = each.groups[0]
    assert group is not None
    assert (group.outcome, group.successes, group.steps, group.first.epoch) == ("mixed", 1, 1.5, 2)
    assert [row.epoch for row in group.attempts] == [1, 2]


def test_scores_of_checks_are_not_relevance() -> None:
    scored = replace(ROW, scores=(1, 5), decided_by="checks")
    assert totals_of([scored]).scores == {}
    assert totals_of([replace(scored, decided_by="judge")]).scores["5"] == 1


def test_differing_settings_are_named_instead_of_their_checksum() -> None:
    records: list[dict[str, Any]] = [
        {"config": {"max_steps": 12, "settle": "auto"}, "config_checksum": "a"},
        {"config": {"settle": "auto"}},
    ]
    assert differences(records) == (("max steps", ("12", "not set")),)


def test_a_matrix_takes_the_text_of_a_task_from_a_run_that_has_it() -> None:
    unfinished = replace(ROW, task="t", level="unknown", verdict="unfinished")
    (each,) = matrix_of([[unfinished], [ROW]])
    assert (each.task, each.level, each.is_mixed) == ("Find it.", "easy", True)
