"""The WebVoyager way of judging: the final screenshots and the answer. After He et al. (arXiv:2401.13919)."""

from typing import ClassVar

from judge.judges.engine import ModelJudge, Question, Session, decided
from judge.judges.evidence import answer_block, distinct, read_shots, task_block
from judge.judges.stages import ask_status
from judge.trajectory.record import Trajectory
from shared.models import Verdict

LAST_SHOTS = 15


class WebVoyagerJudge(ModelJudge):
    """The answer is part of this method's evidence, whatever `judge_sees_answer` says; it is marked as a claim."""

    method = "webvoyager"
    prompts: ClassVar[tuple[str, ...]] = ("webvoyager",)
    options: ClassVar[tuple[str, ...]] = ("max_images",)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """One question on the last distinct screenshots (at most 15, or `max_images`) and the answer."""
        shown = distinct(read_shots(trajectory))[-min(LAST_SHOTS, self.config.max_images) :]
        question = Question(
            order=(0,),
            prompt="webvoyager",
            values={
                "task_block": task_block(trajectory.task),
                "answer_block": answer_block(trajectory),
                "image_count": len(shown),
            },
            reminder="status",
            images=tuple(shot.path for shot in shown),
        )
        status, text = await ask_status(session, question)
        return decided(session, status, text)
