"""Two methods that look at the last screenshot only.

`autonomous`: the final state and the actions, after Pan et al. (arXiv:2404.06474). `agenttrek`: the history, the
participant's thoughts and the final state, after Xu et al. (arXiv:2412.09605).
"""

from typing import ClassVar

from judge.judges.engine import ModelJudge, Question, Session, decided
from judge.judges.evidence import actions_block, task_block, thoughts_block
from judge.judges.stages import ask_status
from judge.trajectory.record import Trajectory
from shared.models import Verdict


class _LastShotJudge(ModelJudge):
    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """One question on the last screenshot."""
        question = Question(
            order=(0,),
            prompt=self.prompts[0],
            values={
                "task_block": task_block(trajectory.task),
                "actions_block": actions_block(trajectory),
                "answer_block": self.answer(trajectory),
                **self.more(trajectory),
            },
            reminder="status",
            images=trajectory.screenshots[-1:],
        )
        status, text = await ask_status(session, question)
        return decided(session, status, text)

    def more(self, trajectory: Trajectory) -> dict[str, str]:
        """What the method shows besides."""
        return {}


class AutonomousJudge(_LastShotJudge):
    """The last screenshot and the actions."""

    method = "autonomous"
    prompts: ClassVar[tuple[str, ...]] = ("autonomous",)


class AgentTrekJudge(_LastShotJudge):
    """The last screenshot, the actions and the thoughts, which are part of this method's evidence, marked as claims."""

    method = "agenttrek"
    prompts: ClassVar[tuple[str, ...]] = ("agenttrek",)

    def more(self, trajectory: Trajectory) -> dict[str, str]:
        """The thoughts."""
        return {"thoughts_block": thoughts_block(trajectory)}
