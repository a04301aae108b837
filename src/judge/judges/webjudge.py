"""WebJudge: key points, a relevance score for every screenshot, then a decision on the evidence that matters.

The three stages of Xue et al., "An Illusion of Progress? Assessing the Current State of Web Agents" (arXiv:2504.01382):
screenshots are scored with the key points, and the reasons for their scores are passed on to the decision. What
participants say is left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from judge.judges.engine import ModelJudge, Question, Session, together
from judge.judges.evidence import (
    MAX_LINE_CHARS,
    block,
    distinct,
    key_points_block,
    read_shots,
    reasons_block,
    task_block,
)
from judge.parsing import Status, parse_key_points, parse_reason, parse_score
from judge.trajectory.record import Trajectory
from shared.errors import ModelMalformed
from shared.models import ImageScore, Record, Task, Verdict, VerdictOutcome
from shared.text import bounded_line

_KEY_POINTS_ORDER, _IMAGE_ORDER, _DECISION_ORDER = range(3)


class Rated(Record):
    """A screenshot with its score, `None` when the model gave none, and the reply that gave it."""

    path: Path
    score: int | None
    reply: str


class WebJudge(ModelJudge):
    """The default method. The first `max_images` screenshots at or above `score_threshold` are decided on."""

    method = "webjudge"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "outcome")
    reminders: ClassVar[tuple[str, ...]] = ("list", "score", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images")

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Key points need the task only, a screenshot's score needs the key points and the screenshot."""
        points = await _ask_key_points(session, task)
        if screenshot is not None:
            await _ask_score(session, task, points, screenshot)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Key points, then all screenshots concurrently, then the decision."""
        shots = read_shots(trajectory)
        images = distinct(shots)
        points = await _ask_key_points(session, trajectory.task)
        rated = await together(_ask_score(session, trajectory.task, points, shot.path, shot.place) for shot in images)
        # Repeated screenshots share the first one's score, which is paid for once.
        by_place = dict(zip((shot.place for shot in images), rated, strict=True))
        every = [by_place[shot.same_as or shot.place] for shot in shots]
        shown = relevant(every, threshold=self.config.score_threshold, max_images=self.config.max_images)
        records = tuple(ImageScore(Response=one.reply, Score=one.score) for one in every)
        return await self.conclude(session, trajectory, points, shown, image_judge_record=records)

    async def conclude(
        self, session: Session, trajectory: Trajectory, points: tuple[str, ...], shown: Sequence[Rated], **fields: Any
    ) -> Verdict:
        """One question about the outcome."""
        blocks = {"key_points_block": key_points_block(points), "reasons_block": _reasons(shown)}
        question = self.question("outcome", trajectory, _paths(shown), blocks, order=(_DECISION_ORDER,))
        status, text = await session.ask_status(question)
        return session.decision(status, text, key_points=points, **fields)


class WebJudgeKeyPoints(WebJudge):
    """WebJudge with one question per key point; success needs all of them.

    A key point without a decision leaves the verdict unscored, unless another one failed.
    """

    method = "webjudge_keypoints"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "key_point")

    async def conclude(
        self, session: Session, trajectory: Trajectory, points: tuple[str, ...], shown: Sequence[Rated], **fields: Any
    ) -> Verdict:
        """All key points concurrently."""
        questions = [
            self.question(
                "key_point",
                trajectory,
                _paths(shown),
                {
                    "key_point_block": block("key point to check", [bounded_line(point, MAX_LINE_CHARS)]),
                    "reasons_block": _reasons(shown),
                },
                order=(_DECISION_ORDER, place),
            )
            for place, point in enumerate(points)
        ]
        replies = await together(session.ask_status(question) for question in questions)
        outcome, reason = _all_met(points, [status for status, _ in replies])
        checked = [
            {"key_point": point, "status": status, "reason": text}
            for point, (status, text) in zip(points, replies, strict=True)
        ]
        return session.verdict(outcome, reason, key_points=points, evidence={"key_points": checked}, **fields)


async def _ask_key_points(session: Session, task: Task) -> tuple[str, ...]:
    """The task's key points: the scenario's own, or the judge model's. Raises `ModelError` when it gives none."""
    if task.key_points:
        return task.key_points
    question = Question(
        order=(_KEY_POINTS_ORDER,), prompt="key_points", values={"task_block": task_block(task)}, reminder="list"
    )
    points, _ = await session.ask(question, lambda text: parse_key_points(text) or None)
    if points is None:
        raise ModelMalformed("the judge model's replies contained no key points")
    return points


async def _ask_score(session: Session, task: Task, points: tuple[str, ...], path: Path, place: int = 0) -> Rated:
    """A screenshot's relevance to the task and its key points."""
    values = {"task_block": task_block(task), "key_points_block": key_points_block(points)}
    question = Question(order=(_IMAGE_ORDER, place), prompt="image", values=values, reminder="score", images=(path,))
    score, reply = await session.ask(question, parse_score)
    return Rated(path=path, score=score, reply=reply)


def relevant(rated: Sequence[Rated], *, threshold: int, max_images: int) -> tuple[Rated, ...]:
    """The first screenshots at or above the threshold.

    A screenshot without a score is among them: what the model failed to rate must not vanish from the evidence.
    """
    return tuple(one for one in rated if one.score is None or one.score >= threshold)[:max_images]


def _paths(shown: Sequence[Rated]) -> tuple[Path, ...]:
    return tuple(one.path for one in shown)


def _reasons(shown: Sequence[Rated]) -> str:
    return reasons_block([parse_reason(one.reply) if one.score is not None else "" for one in shown])


def _all_met(points: tuple[str, ...], statuses: list[Status | None]) -> tuple[VerdictOutcome, str]:
    missed = [point for point, status in zip(points, statuses, strict=True) if status == "failure"]
    if missed:
        return "failure", f"{len(missed)} of {len(points)} key points are not met: {'; '.join(missed)}"
    open_points = [point for point, status in zip(points, statuses, strict=True) if status is None]
    if open_points:
        return "unscored", f"the judge model's replies contained no status for: {'; '.join(open_points)}"
    return "success", f"all {len(points)} key points are met"
