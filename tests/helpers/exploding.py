"""A judge with a mistake in it."""

from helpers.results import JUDGE
from judge.judges.base import Judge
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory


class Exploding(Judge):
    """Says success, but has a mistake in it that one task brings to light."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.id, self.info = "exploding-1", JUDGE
        self._error = error
        self.calls = 0

    async def judge(self, trajectory: Trajectory) -> Verdict:
        self.calls += 1
        if self._error is not None and trajectory.task.task_id == "t1":
            raise self._error
        return Verdict(outcome="success", reason="clicked", judge=self.info)
