"""WebJudge: key points, a relevance score for every screenshot, then one decision on the evidence that matters.

After Xue et al., "An Illusion of Progress? Assessing the Current State of Web Agents" (arXiv:2504.01382). Ours
differs in two ways: screenshots are scored from the task alone, so they can be scored as they come; and participants'
words are left out.
"""

from pathlib import Path
from typing import ClassVar

from judge.judges.engine import ModelJudge, Question, Session, as_records, decided
from judge.judges.evidence import actions_block, key_points_block, task_block
from judge.judges.stages import DECISION_ORDER, ask_key_points, ask_points_and_scores, ask_score, ask_status, relevant
from judge.trajectory.record import Trajectory
from shared.models import Task, Verdict


class WebJudge(ModelJudge):
    """The default method. At most `max_images` screenshots at or above `score_threshold` are decided on."""

    method = "webjudge"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "outcome")
    reminders: ClassVar[tuple[str, ...]] = ("list", "score", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images")

    async def ahead_of_task(self, session: Session, task: Task) -> None:
        """Key points need the task only."""
        await ask_key_points(session, task)

    async def ahead_of_shot(self, session: Session, task: Task, path: Path) -> None:
        """A screenshot's score needs the task and the screenshot."""
        await ask_score(session, task, path)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Key points and scores at once, then the outcome."""
        points, shots, scores = await ask_points_and_scores(session, trajectory)
        shown = relevant(shots, scores, threshold=self.config.score_threshold, max_images=self.config.max_images)
        question = Question(
            order=(DECISION_ORDER,),
            prompt="outcome",
            values={
                "task_block": task_block(trajectory.task),
                "key_points_block": key_points_block(points),
                "actions_block": actions_block(trajectory),
                "answer_block": self.answer(trajectory),
                "image_count": len(shown),
            },
            reminder="status",
            images=tuple(shot.path for shot in shown),
        )
        status, text = await ask_status(session, question)
        return decided(session, status, text, key_points=points, image_judge_record=as_records(scores))
