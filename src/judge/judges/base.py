"""The judge's protocol: a trajectory in, a verdict out.

Judging live and judging again are one function. A streaming judge is the same method on a model with a single-flight
cache: `prefetch` sends ahead the very requests that `judge` will make, so `judge` finds them answered.
"""

from typing import Protocol

from judge.trajectory.record import Trajectory
from shared.models import JudgeInfo, Step, Task, Verdict


class Judge(Protocol):
    """One judge method, bound to its model, prompt set and settings."""

    @property
    def id(self) -> str:
        """`<method>-<digest>`: the name of the verdict file; the digest covers method, model, prompt set and settings.

        The code that judged is told by the verdict's own `judge` block.
        """
        ...

    @property
    def info(self) -> JudgeInfo:
        """Who judges: the `judge` block of every result, also of one that needed no judge to say."""
        ...

    def judges_of(self, task: Task) -> tuple["Judge", ...]:
        """Who decides the task: first the one whose verdict counts, then those whose verdicts lie beside it."""
        ...

    async def prefetch_task(self, task: Task) -> None:
        """Ask ahead what depends on the task alone (key points). Never raises."""
        ...

    async def prefetch_step(self, task: Task, step: Step, trajectory_dir: str) -> None:
        """Ask ahead what depends on one step's evidence (its screenshot's score). Never raises."""
        ...

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """Decide. Model faults come back as an `unscored` verdict that names them; nothing is raised for them."""
        ...

    async def aclose(self) -> None: ...
