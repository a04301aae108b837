"""A judge takes a trajectory and returns a verdict.

Live judging and re-scoring are one function. Judging during an episode is the same method on a single-flight cache:
`prefetch_*` sends the very requests that `judge` will make, so `judge` finds them answered.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence

from judge.trajectory.record import Trajectory
from shared.models import JudgeInfo, Step, Task, Verdict


class Judge(ABC):
    """One judge method, bound to its model, prompt set and settings."""

    @property
    @abstractmethod
    def id(self) -> str:
        """`<method>-<digest>`: the name of the verdict file. The digest covers method, model, prompt set and settings.

        The judging code is not in it; a verdict names that in its own `judge` block.
        """

    @property
    @abstractmethod
    def info(self) -> JudgeInfo:
        """The `judge` block of every verdict, including those that needed no judge."""

    def judges_of(self, task: Task) -> tuple["Judge", ...]:
        """The judges of a task: first the one whose verdict counts, then those whose verdicts are kept beside it."""
        return (self,)

    async def prefetch_task(self, task: Task) -> None:
        """Send the requests that depend on the task alone (key points). Never raises."""
        return

    async def prefetch_step(self, task: Task, step: Step, trajectory_dir: str) -> None:
        """Send the requests that depend on one step's screenshot (its score). Never raises."""
        return

    @abstractmethod
    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict. Faults of the model make it `unscored` and are named in its reason; they are not raised."""

    async def aclose(self) -> None:
        """Release what the judge holds."""
        return


def digest(settings: Sequence[object]) -> str:
    """A short digest of what identifies a judge."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
