"""How `--shards` divides the tasks of a run."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.tasks import Level, Task
from judge.runner.shards import balanced_shards, expected_steps


def a_task(number: int, level: Level | None = None, reference_length: int | None = None) -> Task:
    return Task(
        task_id=f"t{number}", website="https://shop.test/", task="Look.", level=level, reference_length=reference_length
    )


TASKS = st.lists(
    st.tuples(st.sampled_from(["easy", "medium", "hard", None]), st.none() | st.integers(1, 30)), max_size=40
).map(lambda found: [a_task(number, level, length) for number, (level, length) in enumerate(found)])  # type: ignore[arg-type]


@given(TASKS, st.integers(1, 50))
def test_every_task_is_in_one_shard_in_its_given_order(tasks: list[Task], count: int) -> None:
    shards = balanced_shards(tasks, count, max_steps=15)
    assert len(shards) == count
    places = [tasks.index(task) for shard in shards for task in shard]
    assert sorted(places) == list(range(len(tasks)))
    assert all([tasks.index(task) for task in shard] == sorted(map(tasks.index, shard)) for shard in shards)


@given(TASKS, st.integers(1, 10))
def test_no_two_shards_differ_by_more_than_one_task(tasks: list[Task], count: int) -> None:
    loads = [sum(expected_steps(task, 15) for task in shard) for shard in balanced_shards(tasks, count, max_steps=15)]
    assert max(loads) - min(loads) <= max((expected_steps(task, 15) for task in tasks), default=0)


@given(TASKS, st.integers(1, 10), st.randoms(use_true_random=False))
def test_the_order_of_the_tasks_moves_none_of_them(tasks: list[Task], count: int, order: random.Random) -> None:
    shuffled = order.sample(tasks, len(tasks))
    before, after = balanced_shards(tasks, count, max_steps=15), balanced_shards(shuffled, count, max_steps=15)
    assert [set(shard) for shard in before] == [set(shard) for shard in after]


def test_the_shards_of_a_task_set_are_those_of_earlier_versions() -> None:
    # A shard that is restarted after an upgrade must find its own tasks.
    tasks = [a_task(0, "easy"), a_task(1, "hard"), a_task(2, "medium"), a_task(3), a_task(4, "easy", 20), a_task(5)]
    shards = balanced_shards(tasks, 3, max_steps=15)
    assert [[task.task_id for task in shard] for shard in shards] == [["t0", "t4"], ["t1", "t5"], ["t2", "t3"]]


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        (a_task(0, "hard", 3), 3),
        (a_task(0, "easy"), 4),
        (a_task(0, "medium"), 8),
        (a_task(0, "hard"), 13),
        (a_task(0), 8),
        (a_task(0, "easy", 40), 15),
    ],
    ids=["the reference goes before the level", "easy", "medium", "hard", "neither", "never more than allowed"],
)
def test_expected_steps_come_from_the_reference_or_the_level(task: Task, steps: int) -> None:
    assert expected_steps(task, 15) == steps
