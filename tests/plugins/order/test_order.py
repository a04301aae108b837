"""The test of order finds a participant that remembers, and leaves one alone that does not."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.order.order import order_section, order_test
from judge.results.rows import AttemptRow
from shared.plugins import ReportSection

_EMPTY = AttemptRow.without_attempt(task_id="t")


def _rows(outcomes: list[list[bool | None]]) -> list[AttemptRow]:
    """All first attempts, then all second ones: `outcomes[task][attempt]`."""
    return [
        replace(
            _EMPTY,
            task_id=f"t{task}",
            epoch=epoch + 1,
            success=success,
            verdict={True: "success", False: "failure", None: "unscored"}[success],
            started_at=f"2026-01-01T{epoch:02}:{task:02}:00+00:00",
        )
        for task, row in enumerate(outcomes)
        for epoch, success in enumerate(row)
    ]


def _section(outcomes: list[list[bool | None]]) -> ReportSection:
    section = order_section(_rows(outcomes))
    assert section is not None
    return section


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), max_size=4))
def test_the_probabilities_are_shares_of_all_orders(tasks: list[list[bool]]) -> None:
    def places(orders: tuple[tuple[bool, ...], ...]) -> int:
        return sum(place for order in orders for place, success in enumerate(order) if success)

    observed = places(tuple(map(tuple, tasks)))
    sums = [places(each) for each in itertools.product(*(itertools.permutations(task) for task in tasks))]
    better, worse = order_test(tasks)
    assert better == pytest.approx(sum(each >= observed for each in sums) / len(sums))
    assert worse == pytest.approx(sum(each <= observed for each in sums) / len(sums))


def _memoryless(seed: int) -> list[list[bool | None]]:
    """20 tasks of different difficulty, played three times."""
    draw = random.Random(seed)
    rates = [draw.random() for _ in range(20)]
    return [[draw.random() < rate for _ in range(3)] for rate in rates]


def _is_found(outcomes: list[list[bool | None]]) -> bool:
    return "succeed more often" in _section(outcomes).lines[-1]


def test_a_participant_that_answers_from_memory_is_found() -> None:
    assert _is_found([[task < 6, True, True] for task in range(20)])


@pytest.mark.slow
def test_a_participant_without_memory_is_accused_in_at_most_5_of_100_runs() -> None:
    assert sum(_is_found(_memoryless(seed)) for seed in range(100)) <= 5


def test_a_site_that_wears_out_is_named_as_well() -> None:
    assert "succeed less often" in _section([[True, False, False]] * 10).lines[-1]


def test_rates_stand_by_attempt_and_by_position() -> None:
    by_attempt, by_position, finding = _section([[False, True], [False, True], [True, True]]).lines
    assert by_attempt.startswith("By attempt at a task: 1: 33.3 % (")
    assert "; 2: 100.0 % (" in by_attempt
    assert by_position.startswith("By position in the run: first third: 0.0 % (")
    assert "p = 0.5" in finding


def test_many_attempts_are_shortened() -> None:
    line = _section([[True, False] * 20]).lines[0]
    assert [part.split(":")[0] for part in line.removeprefix("By attempt at a task: ").split("; ")] == [*"12345", "40"]


@pytest.mark.parametrize("outcomes", [[], [[True], [False]], [[True, None], [False, None]]])
def test_tasks_that_were_scored_once_have_no_order(outcomes: list[list[bool | None]]) -> None:
    assert order_section(_rows(outcomes)) is None


def test_tasks_under_attack_do_not_count() -> None:
    rows = [replace(row, attack="banner", clean_task=row.task_id) for row in _rows([[False, True]] * 10)]
    assert order_section(rows) is None
