"""WebJudge: key points, a relevance score for every screenshot, then a decision on the evidence that matters.

The three stages of Xue et al., "An Illusion of Progress? Assessing the Current State of Web Agents" (arXiv:2504.01382):
screenshots are scored against the key points, and the reasons for their scores are passed on to the decision.
Participants' statements are not shown by default.

With imported prompts (`judge.judges.published`) the requests equal the evaluator's source.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from judge.judges.base import Workload
from judge.judges.engine import JudgeParts, ModelJudge, Question, Session
from judge.judges.evidence import MAX_LINE_CHARS, block, key_points_block, read_shots, reasons_block, task_block
from judge.judges.prompt_set import WEBJUDGE_PROMPTS
from judge.judges.published import numbered, published_status
from judge.judges.withholding import AttemptView
from judge.parsing import Status, parse_key_points, parse_reason, parse_score, parse_status
from judge.records.tasks import Task
from judge.records.verdicts import ImageScore, Verdict, VerdictOutcome
from judge.trajectory.paths import inside
from judge.trajectory.record import Trajectory
from shared.concurrency import together
from shared.errors import ModelMalformed
from shared.models import Record
from shared.text import bounded_line, counted

_USUAL_POINTS = 4
_KEY_POINTS_ORDER, _IMAGE_ORDER, _DECISION_ORDER = range(3)


class KeyPoints(Record):
    """The key points, and their text in imported prompts."""

    points: tuple[str, ...]
    text: str = ""


class ScreenshotRating(Record):
    """A screenshot with its score (`None` if the model gave none), the model's reply, and the reason in it."""

    path: Path
    score: int | None
    reply: str
    reason: str


class WebJudge(ModelJudge):
    """The default method. Decides on the first `max_images` screenshots with at least `score_threshold`."""

    method = "webjudge"
    prompts: ClassVar[tuple[str, ...]] = WEBJUDGE_PROMPTS
    reminders: ClassVar[tuple[str, ...]] = ("list", "score", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "judge_sees_thoughts", "max_images", "fidelity")

    def __init__(self, parts: JudgeParts) -> None:
        super().__init__(parts)
        self._published = published = parts.prompts.published
        self._max_images = min(self.config.max_images, published.max_images if published else self.config.max_images)
        self._takes_replies_as_published = published is not None and self.config.fidelity == "published"

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Key points need only the task; a screenshot's score needs the key points and the screenshot."""
        points = await self._ask_key_points(session, task)
        if screenshot is not None:
            await self._ask_score(session, task, points, screenshot)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Key points, then all screenshots concurrently, then the decision."""
        task, shots = trajectory.task, read_shots(trajectory)
        inputs = self._inputs(trajectory)
        points = await self._ask_key_points(session, task, inputs)
        rated = await together(self._ask_score(session, task, points, shot.path, shot.place, inputs) for shot in shots)
        # Repeated screenshots share one score, so that it is paid for only once.
        every = [one for shot, one in zip(shots, rated, strict=True) for _ in range(shot.times)]
        # Includes screenshots without a score: evidence must not disappear because the model failed to rate it.
        threshold = self.config.score_threshold
        relevant = [one for one in every if one.score is None or one.score >= threshold]
        records = tuple(ImageScore(Response=one.reply, Score=one.score) for one in every)
        return await self.conclude(session, trajectory, points, relevant, image_judge_record=records)

    def workload(self, trajectory: Trajectory) -> Workload:
        """Key points, every distinct screenshot, and the decisions, each with up to `max_images` screenshots."""
        if not trajectory.screenshots:
            return Workload()
        points, shots = trajectory.task.point_texts, len(read_shots(trajectory))
        asks_points = not points or self._published is not None
        decisions = self.decisions(points)
        images = shots + decisions * min(shots, self._max_images)
        return Workload(calls=asks_points + shots + decisions, images=images)

    def decisions(self, points: Sequence[str]) -> int:
        """How many questions decide, as far as the key points are known."""
        return 1

    async def conclude(
        self,
        session: Session,
        trajectory: Trajectory,
        points: KeyPoints,
        relevant: Sequence[ScreenshotRating],
        **fields: Any,
    ) -> Verdict:
        """One question about the outcome, with the first of the relevant screenshots."""
        published, inputs = self._published, self._inputs(trajectory)

        def question(view: AttemptView) -> Question:
            # The first ones, as in the evaluator's source.
            ratings = relevant[: self._max_images]
            blocks = {"key_points_block": key_points_block(points.points), "reasons_block": _reasons(ratings, view)}
            if published is not None:
                # The first reasons available, because the first images may have none.
                reasoned = [one for one in relevant if one.reason][: self._max_images]
                blocks = {
                    "task": trajectory.task.task,
                    "key_points": points.text,
                    "last_actions": published.actions(view.trajectory, with_thoughts=self.config.judge_sees_thoughts),
                    "thoughts": numbered(_notes(reasoned, view)),
                }
            return self.question(
                "outcome", view, _paths(ratings), blocks, order=(_DECISION_ORDER,), input_images=inputs
            )

        as_published = self._takes_replies_as_published
        status, text = await session.ask_status(question, published_status if as_published else parse_status)
        return session.decision(status, text, key_points=points.points, **fields)

    def _inputs(self, trajectory: Trajectory) -> tuple[Path, ...]:
        """The task's images, if the prompts show them. Raises `TrajectoryError` for a missing file."""
        if self._published is None or self._published.outcome.inputs is None:
            return ()
        return tuple(inside(trajectory.folder, name) for name in trajectory.input_images)

    async def _ask_key_points(self, session: Session, task: Task, inputs: tuple[Path, ...] = ()) -> KeyPoints:
        """The task's key points: the scenario's, or the judge model's. Raises `ModelError` if it gives none.

        Imported prompts always ask the model, because their source does not support declared key points.
        """
        published = self._published
        if task.key_points and published is None:
            return KeyPoints(points=task.point_texts)

        def parse(reply: str) -> KeyPoints | None:
            points = parse_key_points(reply)
            if not points and not (self._takes_replies_as_published and reply):
                return None
            return KeyPoints(points=points, text=published.clean_key_points(reply) if published else "")

        question = Question(
            order=(_KEY_POINTS_ORDER,),
            prompt="key_points",
            values={"task": task.task, "task_block": task_block(task)},
            reminder="list",
            input_images=inputs,
        )
        key_points, _ = await session.ask(question, parse)
        if key_points is None:
            raise ModelMalformed("the judge model's replies contained no key points")
        return key_points

    async def _ask_score(
        self, session: Session, task: Task, points: KeyPoints, path: Path, place: int = 0, inputs: tuple[Path, ...] = ()
    ) -> ScreenshotRating:
        """A screenshot's relevance to the task and its key points. If the provider refuses to look at it, it has no
        score, and stays in the evidence.
        """
        published = self._published
        question = Question(
            order=(_IMAGE_ORDER, place),
            prompt="image",
            values={
                "task": task.task,
                "key_points": points.text,
                "task_block": task_block(task),
                "key_points_block": key_points_block(points.points),
            },
            reminder="score",
            images=(path,),
            input_images=inputs,
        )
        parse = published.score if published and self._takes_replies_as_published else parse_score
        score, reply = await session.ask_shot(question, parse)
        # A reply without a score has no reason for one.
        reason = (published.reason if published else parse_reason)(reply) if score is not None else ""
        return ScreenshotRating(path=path, score=score, reply=reply, reason=reason)


class WebJudgeKeyPoints(WebJudge):
    """WebJudge with one question per key point; success needs all of them.

    If a key point has no decision, the verdict is unscored, unless another key point failed.
    """

    method = "webjudge_keypoints"
    prompts: ClassVar[tuple[str, ...]] = ("key_points", "image", "key_point")

    def decisions(self, points: Sequence[str]) -> int:
        """One for each key point; without any, the model gives a few."""
        return len(points) or _USUAL_POINTS

    async def conclude(
        self,
        session: Session,
        trajectory: Trajectory,
        points: KeyPoints,
        relevant: Sequence[ScreenshotRating],
        **fields: Any,
    ) -> Verdict:
        """All key points concurrently."""
        ratings = relevant[: self._max_images]

        def question(view: AttemptView, place: int, point: str) -> Question:
            blocks = {
                "key_point_block": block("key point to check", [bounded_line(point, MAX_LINE_CHARS)]),
                "reasons_block": _reasons(ratings, view),
            }
            return self.question("key_point", view, _paths(ratings), blocks, order=(_DECISION_ORDER, place))

        replies = await together(
            session.ask_status(partial(question, place=place, point=point)) for place, point in enumerate(points.points)
        )
        outcome, reason = _all_met(points.points, [status for status, _ in replies])
        # Key points of the judge model have no weights. A weight of 1 is left out, as in earlier verdicts.
        task = trajectory.task
        weights = task.point_weights if task.point_texts == points.points else (1.0,) * len(replies)
        checked = [
            {"key_point": point, "status": status, "reason": text, **({} if weight == 1 else {"weight": weight})}
            for point, weight, (status, text) in zip(points.points, weights, replies, strict=True)
        ]
        return session.verdict(outcome, reason, key_points=points.points, evidence={"key_points": checked}, **fields)


def _paths(ratings: Sequence[ScreenshotRating]) -> tuple[Path, ...]:
    return tuple(one.path for one in ratings)


def _notes(rated: Sequence[ScreenshotRating], view: AttemptView) -> list[str]:
    """The reasons for the scores of the screenshots that a view shows."""
    return [view.note(one.path, one.reason) for one in rated if view.shows(one.path)]


def _reasons(ratings: Sequence[ScreenshotRating], view: AttemptView) -> str:
    return reasons_block(_notes(ratings, view))


def _all_met(points: tuple[str, ...], statuses: list[Status | None]) -> tuple[VerdictOutcome, str]:
    missed = [point for point, status in zip(points, statuses, strict=True) if status == "failure"]
    if missed:
        return "failure", f"{len(missed)} of {counted(len(points), 'key point')} not met: {'; '.join(missed)}"
    open_points = [point for point, status in zip(points, statuses, strict=True) if status is None]
    if open_points:
        return "unscored", f"the judge model's replies contained no status for: {'; '.join(open_points)}"
    return "success", f"all {len(points)} key points are met" if len(points) > 1 else "the key point is met"
