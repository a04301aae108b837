"""Questions that several methods ask: key points, a screenshot's relevance; and which screenshots to show."""

from collections.abc import Sequence
from pathlib import Path

from judge.judges.engine import Question, Session, both, together
from judge.judges.evidence import Shot, distinct, key_points_block, read_shots, task_block
from judge.parsing import Status, parse_key_points, parse_score, parse_status
from judge.trajectory.record import Trajectory
from shared.errors import ModelMalformed
from shared.models import Task

KEY_POINTS_ORDER = 0
IMAGE_ORDER = 1
DECISION_ORDER = 2

# A screenshot's score and the reply that gave it.
Score = tuple[int | None, str]


async def ask_key_points(session: Session, task: Task) -> tuple[str, ...]:
    """The task's key points: the scenario's own, or the judge model's. Raises `ModelError` when it gives none."""
    if task.key_points:
        return task.key_points
    question = Question(
        order=(KEY_POINTS_ORDER,), prompt="key_points", values={"task_block": task_block(task)}, reminder="list"
    )
    points, _ = await session.ask(question, lambda text: parse_key_points(text) or None)
    if points is None:
        raise ModelMalformed("the judge model's replies held no key points")
    return points


async def ask_score(session: Session, task: Task, path: Path, place: int = 0) -> Score:
    """A screenshot's relevance to the task.

    The question names the scenario's key points when there are any, but not those of the model: so screenshots can be
    scored as they come, and judging takes two rounds of calls instead of three.
    """
    values = {"task_block": task_block(task), "key_points_block": key_points_block(task.key_points)}
    question = Question(order=(IMAGE_ORDER, place), prompt="image", values=values, reminder="score", images=(path,))
    return await session.ask(question, parse_score)


async def ask_points_and_scores(
    session: Session, trajectory: Trajectory
) -> tuple[tuple[str, ...], tuple[Shot, ...], tuple[Score, ...]]:
    """Key points, screenshots and their scores, asked for at once. A repeat takes the first's score."""
    shots = read_shots(trajectory)
    images = distinct(shots)
    points, replies = await both(
        ask_key_points(session, trajectory.task),
        together(ask_score(session, trajectory.task, shot.path, shot.place) for shot in images),
    )
    of_place = {shot.place: reply for shot, reply in zip(images, replies, strict=True)}
    return points, shots, tuple(of_place[shot.same_as or shot.place] for shot in shots)


async def ask_status(session: Session, question: Question) -> tuple[Status | None, str]:
    """The decision that a reply states, and the reply."""
    reply: tuple[Status | None, str] = await session.ask(question, parse_status)
    return reply


def relevant(shots: Sequence[Shot], scores: Sequence[Score], *, threshold: int, max_images: int) -> tuple[Shot, ...]:
    """The screenshots to decide on: distinct, at or above the threshold, in order.

    One that got no score is shown: what the model failed to rate must not vanish from the evidence. Of too many, the
    best rated stay, of equals the later ones.
    """
    chosen = [
        (threshold if score is None else score, shot)
        for shot, (score, _) in zip(shots, scores, strict=True)
        if shot.same_as is None and (score is None or score >= threshold)
    ]
    best = sorted(chosen, key=lambda item: (item[0], item[1].place), reverse=True)[:max_images]
    return tuple(shot for _, shot in sorted(best, key=lambda item: item[1].place))
