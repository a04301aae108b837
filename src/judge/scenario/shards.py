"""Divides the tasks of a run among shards that take about as long."""

import heapq
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from shared.models import Level, Task

# Of Online-Mind2Web, where easy tasks take people up to 5 steps, medium ones up to 10, and hard ones more.
_STEPS: Mapping[Level | None, int] = MappingProxyType({"easy": 4, "medium": 8, "hard": 13, None: 8})


def expected_steps(task: Task, max_steps: int) -> int:
    """About how many steps the task takes: those of the human reference, else what is usual for its level."""
    return min(task.reference_length or _STEPS[task.level], max_steps)


def balanced_shards(tasks: Sequence[Task], count: int, *, max_steps: int) -> list[tuple[Task, ...]]:
    """The tasks in `count` shards with about as many expected steps each, in their given order within a shard.

    Which task lands where depends on the set of tasks, not on their order. With more shards than tasks, the last ones
    are empty.
    """
    # The longest first, each into the shard that has least.
    longest = sorted(tasks, key=lambda task: (-expected_steps(task, max_steps), task.task_id))
    loads = [(0, index) for index in range(count)]
    places: dict[str, int] = {}
    for task in longest:
        load, index = heapq.heappop(loads)
        places[task.task_id] = index
        heapq.heappush(loads, (load + expected_steps(task, max_steps), index))
    shards: list[list[Task]] = [[] for _ in range(count)]
    for task in tasks:
        shards[places[task.task_id]].append(task)
    return [tuple(shard) for shard in shards]
