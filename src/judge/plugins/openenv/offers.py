"""The tasks that a server offers, and OpenEnv's task API: ids and instructions only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn

from judge.environment.host import TaskOffer
from judge.plugins.openenv.frames import Reset
from shared.errors import ConfigError
from shared.files import sha256_json
from shared.text import excerpt

# The one split. A scenario is one set of tasks: what is held out is another scenario.
SPLIT = "train"


class UnknownSplit(ConfigError):
    """The split is unknown."""


class NoSuchTask(ConfigError):
    """The task is unknown."""


@dataclass
class Offers:
    """The tasks of one environment in the scenario's order, at least one. `name` is the environment's."""

    name: str
    tasks: Sequence[TaskOffer]
    _turn: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self._known = {task.task_id for task in self.tasks}

    def splits(self) -> list[dict[str, str]]:
        """The splits; the digest covers ids and instructions, so that two lists can be compared."""
        digest = sha256_json([task.model_dump() for task in self.tasks])
        return [{"name": SPLIT, "type": SPLIT, "digest": digest}]

    def of_split(self, split: str) -> Sequence[TaskOffer]:
        """The tasks of a split. Raises `UnknownSplit`."""
        if split != SPLIT:
            raise UnknownSplit(f"unknown split {excerpt(split)}", remedy=f"the only one is {SPLIT}")
        return self.tasks

    def at(self, split: str, index: int) -> TaskOffer:
        """The task at an index of a split. Raises `UnknownSplit` and `NoSuchTask`."""
        tasks = self.of_split(split)
        if not 0 <= index < len(tasks):
            raise NoSuchTask(f"no task has the index {index}", remedy=f"there are {len(tasks)}, from 0")
        return tasks[index]

    def chosen(self, reset: Reset) -> str | None:
        """The id of the task that a `reset` asks for, or of the next one; `None` if its seed decides.

        Raises `UnknownSplit` and `NoSuchTask`.
        """
        if reset.index is not None:
            return self.at(SPLIT if reset.split is None else reset.split, reset.index).task_id
        if reset.task_id is not None:
            return reset.task_id if reset.task_id in self._known else _unknown(reset.task_id)
        if reset.seed is not None:
            return None
        return self.tasks[next(self._turn) % len(self.tasks)].task_id

    def range(self, split: str, start: int | None, stop: int | None) -> list[dict[str, Any]]:
        """The tasks of a part of a split."""
        return [task.model_dump() for task in self.of_split(split)[start:stop]]


def _unknown(task_id: str) -> NoReturn:
    raise NoSuchTask(f"unknown task {excerpt(task_id)}", remedy="the task list has the ids")
