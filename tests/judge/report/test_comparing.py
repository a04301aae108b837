"""How runs over the same tasks compare: each two of them, all of them together, and task by task."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.report_rows import repeated, row, rows
from judge.report.comparing import better_at, conclusion_of, differing_settings, matrix_of, pairs_of, task_counts
from judge.report.data import RunView, TaskRow
from judge.report.pages import ComparedRun, Renderer
from judge.report.totals import totals_of
from judge.results.comparison import compare
from judge.results.given_verdicts import GivenVerdict
from judge.results.rates import OUTCOMES, RowOutcome
from judge.results.significance import LEVEL, holm
from judge.results.statistics import mcnemar_exact

ROW = TaskRow.without_attempt(
    task_id="t", epoch=1, task="Find it.", website="https://a.example/", level="easy", verdict="success"
)


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
    comparison = compare(rows("ssff"), rows("sfsf"))
    assert (comparison.gained, comparison.lost) == (("t2",), ("t1",))
    assert (comparison.both, comparison.neither, comparison.paired) == (1, 1, 4)


def test_a_task_that_one_run_did_not_score_is_not_evidence() -> None:
    comparison = compare(rows("sfa"), rows("afa"))
    assert (comparison.shared, comparison.paired, comparison.gained, comparison.lost) == (3, 1, (), ())


def test_a_task_with_another_text_is_left_out_and_named() -> None:
    comparison = compare([row("t0", "failure")], [row("t0", "success", task="Find something else.")])
    assert comparison.changed_tasks == ("t0",)
    assert comparison.gained == ()


def test_tasks_of_one_run_only_are_counted_apart() -> None:
    comparison = compare(rows("ss"), rows("s"))
    assert (comparison.shared, comparison.only_first, comparison.only_later) == (1, 1, 0)


def test_six_flips_in_one_direction_are_significant_and_five_are_not() -> None:
    (six,), (five,) = (pairs_of({"A": rows("f" * count), "B": rows("s" * count)}) for count in (6, 5))
    assert (six.better, five.better) == ("B", None)


def test_without_a_paired_task_there_is_no_difference() -> None:
    assert compare(rows("a"), rows("s")).difference is None


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.sampled_from(OUTCOMES)), max_size=30))
def test_every_task_that_both_runs_scored_is_in_exactly_one_place(pairs: list[tuple[RowOutcome, RowOutcome]]) -> None:
    first = [row(f"t{n}", before) for n, (before, _) in enumerate(pairs)]
    later = [row(f"t{n}", after) for n, (_, after) in enumerate(pairs)]
    comparison = compare(first, later)
    assert comparison.shared == len(pairs)
    assert comparison.paired == sum({a, b} <= {"success", "failure"} for a, b in pairs)
    assert comparison.paired == comparison.both + comparison.neither + len(comparison.gained) + len(comparison.lost)


def test_repeated_runs_are_compared_task_by_task() -> None:
    comparison = compare(repeated(a="sf", b="ff", c="ss", d="aa"), repeated(a="ss", b="sf", c="sf", d="sf"))
    assert (comparison.gained, comparison.lost) == (("a", "b"), ("c",))
    assert (comparison.paired, comparison.p) == (3, mcnemar_exact(2, 1))
    assert comparison.difference == pytest.approx(100 * (0.5 + 0.5 - 0.5) / 3)
    assert comparison.interval is not None
    assert comparison.interval[0] < 100 / 6 < comparison.interval[1]


def test_a_comparison_says_where_most_tasks_and_the_average_point_to_different_sides() -> None:
    first = repeated(**{f"t{n}": "f" * 10 for n in range(9)}, drop="s" * 10)
    later = repeated(**{f"t{n}": "s" + "f" * 9 for n in range(9)}, drop="f" * 10)
    pairs = pairs_of({"A": first, "B": later})
    assert (pairs[0].better, pairs[0].is_mean_opposed) == ("B", True)
    assert pairs[0].comparison.difference == pytest.approx(-1)
    html = Renderer().comparison(
        [ComparedRun(name, RunView("r", {}, ""), totals_of(first)) for name in "AB"], [], pairs
    )
    assert "<b>is better than run A</b> at most tasks that differ, but not on average." in html


def test_the_interval_of_a_difference_is_that_of_the_paired_tasks() -> None:
    """Tasks that succeed or fail in both runs leave no doubt; two independent samples would."""
    comparison = compare(rows("s" * 50 + "f" * 50), rows("s" * 50 + "f" * 40 + "s" * 10))
    assert comparison.interval is not None
    assert 3 < comparison.interval[0] < 10 < comparison.interval[1] < 17
    assert compare(rows("sf"), rows("sf")).interval is None


def test_settings_that_differ_are_named_and_equal_ones_are_not() -> None:
    records = [{"judge_model": "offline", "judge_id": "a"}, {"judge_model": "gemini:x", "judge_id": "a"}]
    assert differing_settings(records) == (("judge", ("checks", "gemini:x")),)
    judges = [{"judge_model": "m", "judge_id": f"w-{digest}"} for digest in ("0123456789ab", "fedcba987654")]
    assert differing_settings(judges) == (("judge", ("w · m (012345)", "w · m (fedcba)")),)


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


def test_differing_settings_are_named_instead_of_their_checksum() -> None:
    records: list[dict[str, Any]] = [
        {"config": {"max_steps": 12, "settle": "auto"}, "config_checksum": "a"},
        {"config": {"settle": "auto"}},
    ]
    assert differing_settings(records) == (("max steps", ("12", "not set")),)


def test_a_matrix_takes_the_text_of_a_task_from_a_run_that_has_it() -> None:
    unfinished = replace(ROW, task="t", level="unknown", verdict="unfinished")
    (each,) = matrix_of([[unfinished], [ROW]])
    assert (each.task, each.level, each.is_mixed) == ("Find it.", "easy", True)


@given(st.lists(st.text("sfa", min_size=8, max_size=8), min_size=2, max_size=5))
def test_every_two_runs_are_compared_and_only_a_corrected_p_value_calls_one_better(runs: list[str]) -> None:
    named = {"ABCDE"[place]: rows(outcomes) for place, outcomes in enumerate(runs)}
    pairs = pairs_of(named)
    assert [(pair.first, pair.later) for pair in pairs] == [
        (one, other) for place, one in enumerate(named) for other in list(named)[place + 1 :]
    ]
    tested = [pair for pair in pairs if pair.comparison.paired]
    assert [pair.p for pair in tested] == list(holm([pair.comparison.p for pair in tested]))
    for pair in pairs:
        gained, lost = len(pair.comparison.gained), len(pair.comparison.lost)
        wins = {pair.later: gained, pair.first: lost}
        assert pair.better == (max(wins, key=lambda name: wins[name]) if pair.p < LEVEL else None)


def test_what_would_be_significant_alone_is_not_among_many_pairs() -> None:
    one_better = {"A": rows("f" * 6), "B": rows("s" * 6)}
    assert pairs_of(one_better)[0].better == "B"
    (pair, *_) = pairs_of({**one_better, "C": rows("sfsfsf")})
    assert (pair.comparison.p, pair.p, pair.better) == (2 / 64, 6 / 64, None)


def test_the_conclusion_names_the_run_that_beats_most_and_the_pairs_that_stay_open() -> None:
    pairs = pairs_of({"A": rows("f" * 20), "B": rows("f" * 20), "C": rows("s" * 20), "D": rows("a" * 20)})
    result = conclusion_of(pairs)
    assert result.better == {"C": ("A", "B")}
    assert [(pair.first, pair.later) for pair in result.open] == [("A", "B")]
    # A pair without a common task is not a test, and corrects nothing.
    assert pairs[1].p == 3 * mcnemar_exact(20, 0)


def test_the_comparison_opens_with_its_conclusion() -> None:
    def page(**runs: list[TaskRow]) -> str:
        sides = [ComparedRun(name, RunView(name, {}, f"agent {name}"), totals_of(each)) for name, each in runs.items()]
        html = Renderer().comparison(sides, matrix_of(list(runs.values())), pairs_of(runs))
        assert html.index("Which is better?") < html.index('id="rates"')
        return " ".join(html.partition('id="conclusion"')[2].partition("</section>")[0].split())

    two = page(A=rows("f" * 8 + "ss"), B=rows("s" * 8 + "sf"))
    assert "<b>Run B</b> <span" in two
    assert "a split of 8 to 1 among the tasks that flipped" in two
    assert "finds a true difference of" in two
    none = page(A=rows("sf"), B=rows("fs"))
    assert "No significant difference." in none
    assert "That does not prove that they are equally good" in none
    three = page(A=rows("f" * 20), B=rows("f" * 20), C=rows("s" * 20))
    assert "is better than runs A and B" in three
    assert "No difference is shown between A and B" in three
    assert "Nothing to compare: no task was scored in both runs." in page(A=rows("a"), B=rows("s"))
    assert "<b>Incomplete:</b> A (1 of 1 not scored)." in page(A=rows("a"), B=rows("s"))


def test_tasks_can_be_filtered_by_which_run_did_better_at_them() -> None:
    pairs = pairs_of({"A": rows("ssf"), "B": rows("fss"), "C": rows("sss")})
    assert better_at(pairs) == {"t0": ("A-B", "C-B"), "t2": ("B-A", "C-A")}


def test_tasks_under_attack_are_not_compared() -> None:
    attacked = [
        replace(each, task_id=f"{each.task_id}--x", attack="x", clean_task=each.task_id) for each in rows("f" * 8)
    ]
    comparison = compare(
        [*rows("sf"), *attacked], [*rows("sf"), *(replace(each, verdict="success") for each in attacked)]
    )
    assert (comparison.shared, comparison.gained) == (2, ())


def test_a_task_on_which_judges_disagree_says_so_and_one_verdict_is_not_agreement() -> None:
    def judged(*outcomes: str) -> TaskRow:
        given_verdicts = [
            GivenVerdict(judge_id=f"j-{place}", name="j", outcome=each) for place, each in enumerate(outcomes)
        ]
        return replace(ROW, given_verdicts=tuple(given_verdicts))

    assert [judged(*outcomes).judges for outcomes in (("success",), ("success", "unscored"))] == ["", ""]
    (each,) = matrix_of([[judged("success", "success")], [judged("success", "failure")]])
    assert each.judges == "disagree"
    assert [group.judges for group in each.groups if group] == ["agree", "disagree"]
