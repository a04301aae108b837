"""WebJudge with every key point decided on its own; the attempt succeeds only when all of them are met."""

from pathlib import Path
from typing import ClassVar

from judge.judges.engine import ModelJudge, Question, Session, as_records, together
from judge.judges.evidence import MAX_LINE_CHARS, Shot, actions_block, block, task_block
from judge.judges.stages import DECISION_ORDER, ask_key_points, ask_points_and_scores, ask_score, ask_status, relevant
from judge.parsing import Status
from judge.trajectory.record import Trajectory
from shared.models import Task, Verdict, VerdictOutcome
from shared.text import bounded_line


class WebJudgeKeyPoints(ModelJudge):
    """One question per key point. A key point without a decision leaves the verdict unscored, unless another failed."""

    method = "webjudge_keypoints"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "key_point")
    reminders: ClassVar[tuple[str, ...]] = ("list", "score", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images")

    async def ahead_of_task(self, session: Session, task: Task) -> None:
        """Key points need the task only."""
        await ask_key_points(session, task)

    async def ahead_of_shot(self, session: Session, task: Task, path: Path) -> None:
        """A screenshot's score needs the task and the screenshot."""
        await ask_score(session, task, path)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Key points and scores at once, then all key points at once."""
        points, shots, scores = await ask_points_and_scores(session, trajectory)
        shown = relevant(shots, scores, threshold=self.config.score_threshold, max_images=self.config.max_images)
        replies = await together(
            self._check(session, trajectory, shown, point, place) for place, point in enumerate(points)
        )
        outcome, reason = _all_met(points, [status for status, _ in replies])
        checked = [
            {"key_point": point, "status": status, "reason": text}
            for point, (status, text) in zip(points, replies, strict=True)
        ]
        return session.verdict(
            outcome,
            reason,
            key_points=points,
            image_judge_record=as_records(scores),
            evidence={"key_points": checked},
        )

    async def _check(
        self, session: Session, trajectory: Trajectory, shown: tuple[Shot, ...], point: str, place: int
    ) -> tuple[Status | None, str]:
        question = Question(
            order=(DECISION_ORDER, place),
            prompt="key_point",
            values={
                "task_block": task_block(trajectory.task),
                "key_point_block": block("key point to check", [bounded_line(point, MAX_LINE_CHARS)]),
                "actions_block": actions_block(trajectory),
                "answer_block": self.answer(trajectory),
                "image_count": len(shown),
            },
            reminder="status",
            images=tuple(shot.path for shot in shown),
        )
        return await ask_status(session, question)


def _all_met(points: tuple[str, ...], statuses: list[Status | None]) -> tuple[VerdictOutcome, str]:
    missed = [point for point, status in zip(points, statuses, strict=True) if status == "failure"]
    if missed:
        return "failure", f"{len(missed)} of {len(points)} key points are not met: {'; '.join(missed)}"
    open_points = [point for point, status in zip(points, statuses, strict=True) if status is None]
    if open_points:
        return "unscored", f"the judge model's replies held no status for: {'; '.join(open_points)}"
    return "success", f"all {len(points)} key points are met"
