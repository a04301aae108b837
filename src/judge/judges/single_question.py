"""Judge methods with a single question about the attempt.

`webvoyager`: the final screenshots and the answer, after He et al. (arXiv:2401.13919). `autonomous`: the last
screenshot and the actions, after Pan et al. (arXiv:2404.06474). `agenttrek`: the last screenshot, the actions and the
participant's thoughts, after Xu et al. (arXiv:2412.09605).
"""

from pathlib import Path
from typing import ClassVar

from judge.config import RunConfig
from judge.judges.base import Workload
from judge.judges.engine import ModelJudge, Session
from judge.judges.evidence import answer_block, read_shots, thoughts_block
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory

LAST_SHOTS = 15


class AutonomousJudge(ModelJudge):
    """Shows the last screenshot and the actions; the other methods differ only in the evidence that they show."""

    method = "autonomous"
    prompts: ClassVar[tuple[str, ...]] = ("autonomous",)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """One question."""
        images = self.images(trajectory)
        status, text = await session.ask_status(
            lambda view: self.question(self.method, view, images, self.blocks(view.trajectory))
        )
        return session.decision(status, text)

    def workload(self, trajectory: Trajectory) -> Workload:
        """One question."""
        return Workload(calls=1, images=len(self.images(trajectory))) if trajectory.screenshots else Workload()

    def images(self, trajectory: Trajectory) -> tuple[Path, ...]:
        """The screenshots to show."""
        return trajectory.screenshots[-1:]

    def blocks(self, trajectory: Trajectory) -> dict[str, str]:
        """The method's blocks of evidence."""
        return {}


class AgentTrekJudge(AutonomousJudge):
    """The thoughts are part of this method's evidence, marked as claims."""

    method = "agenttrek"
    prompts: ClassVar[tuple[str, ...]] = ("agenttrek",)

    def sees_claims(self, config: RunConfig) -> bool:
        """Always: the thoughts."""
        return True

    def blocks(self, trajectory: Trajectory) -> dict[str, str]:
        """The thoughts."""
        return {"thoughts_block": thoughts_block(trajectory)}


class WebVoyagerJudge(AutonomousJudge):
    """The answer is part of this method's evidence, whatever `judge_sees_answer` says; it is marked as a claim."""

    method = "webvoyager"
    prompts: ClassVar[tuple[str, ...]] = ("webvoyager",)
    options: ClassVar[tuple[str, ...]] = ("max_images",)

    def sees_claims(self, config: RunConfig) -> bool:
        """Always: the answer."""
        return True

    def images(self, trajectory: Trajectory) -> tuple[Path, ...]:
        """The last distinct screenshots, at most 15 or `max_images`."""
        shots = read_shots(trajectory)[-min(LAST_SHOTS, self.config.max_images) :]
        return tuple(shot.path for shot in shots)

    def blocks(self, trajectory: Trajectory) -> dict[str, str]:
        """The answer."""
        return {"answer_block": answer_block(trajectory)}
