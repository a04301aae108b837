"""WebJudge: key points, a relevance score for every screenshot, then a decision on the evidence that matters.

After Xue et al., "An Illusion of Progress? Assessing the Current State of Web Agents" (arXiv:2504.01382), with two
differences: screenshots are scored from the task alone, so they can be scored as they come; and what participants say
is left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from judge.judges.engine import ModelJudge, Question, Session, together
from judge.judges.evidence import MAX_LINE_CHARS, Shot, block, distinct, key_points_block, read_shots, task_block
from judge.parsing import Status, parse_key_points, parse_score
from judge.trajectory.record import Trajectory
from shared.errors import ModelMalformed
from shared.models import ImageScore, Task, Verdict, VerdictOutcome
from shared.text import bounded_line

_KEY_POINTS_ORDER, _IMAGE_ORDER, _DECISION_ORDER = range(3)
# A screenshot's score and the reply that gave it.
Score = tuple[int | None, str]


class WebJudge(ModelJudge):
    """The default method. At most `max_images` screenshots at or above `score_threshold` are decided on."""

    method = "webjudge"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "outcome")
    reminders: ClassVar[tuple[str, ...]] = ("list", "score", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images")

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Key points need the task only, a screenshot's score needs the screenshot as well."""
        if screenshot is None:
            await _ask_key_points(session, task)
        else:
            await _ask_score(session, task, screenshot)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Key points and scores concurrently, then the decision. Repeated screenshots share the first one's score."""
        shots = read_shots(trajectory)
        images = distinct(shots)
        # One round of calls: neither needs the other's result.
        results: list[Any] = await together(
            [
                _ask_key_points(session, trajectory.task),
                together(_ask_score(session, trajectory.task, shot.path, shot.place) for shot in images),
            ]
        )
        points, scores = results[0], dict(zip((shot.place for shot in images), results[1], strict=True))
        rated = [(shot, scores[shot.same_as or shot.place]) for shot in shots]
        shown = relevant(rated, threshold=self.config.score_threshold, max_images=self.config.max_images)
        records = tuple(ImageScore(Response=text, Score=score) for _, (score, text) in rated)
        return await self.conclude(session, trajectory, points, shown, image_judge_record=records)

    async def conclude(
        self, session: Session, trajectory: Trajectory, points: tuple[str, ...], shown: Sequence[Path], **fields: Any
    ) -> Verdict:
        """One question about the outcome."""
        blocks = {"key_points_block": key_points_block(points)}
        question = self.question("outcome", trajectory, shown, blocks, order=(_DECISION_ORDER,))
        status, text = await session.ask_status(question)
        return session.decision(status, text, key_points=points, **fields)


class WebJudgeKeyPoints(WebJudge):
    """WebJudge with one question per key point; success needs all of them.

    A key point without a decision leaves the verdict unscored, unless another one failed.
    """

    method = "webjudge_keypoints"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "key_point")

    async def conclude(
        self, session: Session, trajectory: Trajectory, points: tuple[str, ...], shown: Sequence[Path], **fields: Any
    ) -> Verdict:
        """All key points concurrently."""
        questions = [
            self.question(
                "key_point",
                trajectory,
                shown,
                {"key_point_block": block("key point to check", [bounded_line(point, MAX_LINE_CHARS)])},
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


async def _ask_score(session: Session, task: Task, path: Path, place: int = 0) -> Score:
    """A screenshot's relevance to the task.

    The question shows the scenario's key points when there are any, but not those of the model: so screenshots can be
    scored as they come, and judging takes two rounds of calls instead of three.
    """
    values = {"task_block": task_block(task), "key_points_block": key_points_block(task.key_points)}
    question = Question(order=(_IMAGE_ORDER, place), prompt="image", values=values, reminder="score", images=(path,))
    return await session.ask(question, parse_score)


def relevant(rated: Sequence[tuple[Shot, Score]], *, threshold: int, max_images: int) -> tuple[Path, ...]:
    """The screenshots to decide on: distinct, at or above the threshold, in order.

    A screenshot without a score is shown: what the model failed to rate must not vanish from the evidence. Of too many,
    the best rated are kept, of equals the later ones.
    """
    chosen = [
        (threshold if score is None else score, shot.place, shot.path)
        for shot, (score, _) in rated
        if shot.same_as is None and (score is None or score >= threshold)
    ]
    best = sorted(chosen, reverse=True)[:max_images]
    return tuple(path for _, _, path in sorted(best, key=lambda item: item[1]))


def _all_met(points: tuple[str, ...], statuses: list[Status | None]) -> tuple[VerdictOutcome, str]:
    missed = [point for point, status in zip(points, statuses, strict=True) if status == "failure"]
    if missed:
        return "failure", f"{len(missed)} of {len(points)} key points are not met: {'; '.join(missed)}"
    open_points = [point for point, status in zip(points, statuses, strict=True) if status is None]
    if open_points:
        return "unscored", f"the judge model's replies contained no status for: {'; '.join(open_points)}"
    return "success", f"all {len(points)} key points are met"
