"""The rubric method: criteria written before the attempt is seen, every screenshot related to every criterion, process
and outcome scored apart, and what stood in the way told from what went wrong.

Success needs both: the outcome decided as success, and no outcome criterion marked as missed. Two judgements that must
agree make false positives rare. The process score (share of criteria met) and the first point of failure are reported
beside the verdict. With `judge_votes` > 1 the last stage runs that often and more than half must agree.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from judge.judges.engine import ModelJudge, Question, Session, both, together
from judge.judges.evidence import MAX_LINE_CHARS, Shot, actions_block, block, distinct, read_shots, task_block
from judge.judges.rubric_records import (
    Criterion,
    ProcessMarks,
    ShotReading,
    parse_criteria,
    parse_marks,
    parse_reading,
)
from judge.judges.stages import ask_status
from judge.parsing import Status
from judge.trajectory.record import Trajectory
from shared.errors import ModelMalformed
from shared.models import Record, Task, Verdict, VerdictOutcome
from shared.text import bounded_line

FINAL_SHOTS = 3
VOTE_TEMPERATURE = 1.0


class Vote(Record):
    """One run of the last stage."""

    outcome: VerdictOutcome
    status: Status | None
    reason: str
    marks: ProcessMarks | None


class RubricJudge(ModelJudge):
    """Criteria from the scenario's key points when it has them, else from the judge model, once per task."""

    method = "rubric"
    prompts: ClassVar[tuple[str, ...]] = ("rubric_criteria", "rubric_image", "rubric_process", "rubric_outcome")
    reminders: ClassVar[tuple[str, ...]] = ("json", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images", "judge_votes")

    async def ahead_of_task(self, session: Session, task: Task) -> None:
        """Criteria need the task only."""
        await self._criteria(session, task)

    async def ahead_of_shot(self, session: Session, task: Task, path: Path) -> None:
        """A screenshot's reading needs the criteria and the screenshot."""
        await self._read(session, task, await self._criteria(session, task), path, place=0)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Criteria, then all screenshots at once, then process and outcome at once, as often as there are votes."""
        criteria = await self._criteria(session, trajectory.task)
        shots = distinct(read_shots(trajectory))
        readings = await together(
            self._read(session, trajectory.task, criteria, shot.path, shot.place) for shot in shots
        )
        votes = await together(
            self._vote(session, trajectory, criteria, shots, readings, run) for run in range(self.config.judge_votes)
        )
        return _verdict(session, criteria, dict(zip((shot.place for shot in shots), readings, strict=True)), votes)

    async def _criteria(self, session: Session, task: Task) -> tuple[Criterion, ...]:
        if task.key_points:
            return tuple(
                Criterion(id=f"c{number}", requirement=point) for number, point in enumerate(task.key_points, 1)
            )
        question = Question(
            order=(0,), prompt="rubric_criteria", values={"task_block": task_block(task)}, reminder="json"
        )
        criteria, _ = await session.ask(question, parse_criteria)
        if criteria is None:
            raise ModelMalformed("the judge model's replies held no rubric")
        return criteria

    async def _read(
        self, session: Session, task: Task, criteria: tuple[Criterion, ...], path: Path, place: int
    ) -> ShotReading:
        question = Question(
            order=(1, place),
            prompt="rubric_image",
            values={"task_block": task_block(task), "criteria_block": _criteria_block(criteria)},
            reminder="json",
            images=(path,),
        )
        reading, _ = await session.ask(question, lambda text: parse_reading(text, criteria))
        if reading is None:
            raise ModelMalformed(f"the judge model's replies did not relate screenshot {place} to every criterion")
        return reading

    async def _vote(
        self,
        session: Session,
        trajectory: Trajectory,
        criteria: tuple[Criterion, ...],
        shots: tuple[Shot, ...],
        readings: list[ShotReading],
        run: int,
    ) -> Vote:
        related = [shot for shot, reading in zip(shots, readings, strict=True) if reading.related]
        shown = related[-self.config.max_images :]
        at_end = with_the_end(related, shots, self.config.max_images)
        values = {
            "task_block": task_block(trajectory.task),
            "criteria_block": _criteria_block(criteria),
            "actions_block": actions_block(trajectory),
            # Both stages see it or neither: marks that miss an answer would veto every task that asks for one.
            "answer_block": self.answer(trajectory),
        }
        several = self.config.judge_votes > 1
        sampling = {"temperature": VOTE_TEMPERATURE if several else 0.0, "seed": run + 1 if several else None}
        process = Question(
            order=(2, run, 0),
            prompt="rubric_process",
            values={**values, "notes_block": _notes_block(shots, readings), "image_count": len(shown)},
            reminder="json",
            images=tuple(shot.path for shot in shown),
            **sampling,
        )
        outcome = Question(
            order=(2, run, 1),
            prompt="rubric_outcome",
            values={**values, "image_count": len(at_end)},
            reminder="status",
            images=tuple(shot.path for shot in at_end),
            **sampling,
        )
        (marks, _), (status, text) = await both(
            session.ask(process, lambda said: parse_marks(said, criteria)), ask_status(session, outcome)
        )
        decided, reason = _decide(criteria, marks, status, text)
        return Vote(outcome=decided, status=status, reason=reason, marks=marks)


def with_the_end(related: Sequence[Shot], shots: Sequence[Shot], most: int) -> tuple[Shot, ...]:
    """The last few screenshots and, before them, the latest that have to do with a criterion; at most `most`."""
    end = shots[-min(FINAL_SHOTS, most) :]
    before = [shot for shot in related if shot.place < end[0].place]
    return (*before[max(len(before) - (most - len(end)), 0) :], *end)


def _decide(
    criteria: tuple[Criterion, ...], marks: ProcessMarks | None, status: Status | None, text: str
) -> tuple[VerdictOutcome, str]:
    """Failure needs one of the two judgements, success both; without enough of them there is no verdict."""
    if status == "failure":
        return "failure", text
    ends = {criterion.id: criterion.requirement for criterion in criteria if criterion.kind == "outcome"}
    missed = [mark for mark in marks.criteria if mark.criterion in ends and mark.verdict != "met"] if marks else []
    if missed:
        said = "; ".join(f"{ends[mark.criterion]}: {mark.verdict} ({mark.reason})" for mark in missed)
        return "failure", f"outcome criteria not met: {said}"
    if status is None or marks is None:
        return "unscored", "the judge model's replies held no usable marks or no status"
    return "success", text


def _verdict(
    session: Session, criteria: tuple[Criterion, ...], readings: dict[int, ShotReading], votes: list[Vote]
) -> Verdict:
    counts = Counter(vote.outcome for vote in votes)
    winner = next((outcome for outcome, count in counts.items() if count * 2 > len(votes)), None)
    outcome: VerdictOutcome = winner or "unscored"
    shown = next((vote for vote in votes if vote.outcome == outcome), votes[0])
    reason = shown.reason if winner else f"no majority in {len(votes)} votes: {dict(counts)}"
    rubric = {
        "criteria": [criterion.model_dump() for criterion in criteria],
        "readings": {str(place): reading.model_dump() for place, reading in readings.items()},
        "votes": [_vote_record(vote) for vote in votes],
    }
    return session.verdict(
        outcome,
        reason,
        key_points=tuple(criterion.requirement for criterion in criteria),
        evidence={"rubric": {**rubric, **_vote_record(shown)}},
    )


def _vote_record(vote: Vote) -> dict[str, object]:
    marks = vote.marks
    return {
        "outcome": vote.outcome,
        "outcome_status": vote.status,
        "process_score": marks.score if marks else None,
        "marks": [mark.model_dump() for mark in marks.criteria] if marks else [],
        "first_failure": marks.first_failure.model_dump() if marks and marks.first_failure else None,
        "blockers": [blocker.model_dump() for blocker in marks.blockers] if marks else [],
    }


def _criteria_block(criteria: tuple[Criterion, ...]) -> str:
    return block(
        "criteria", [f"{item.id} ({item.kind}): {bounded_line(item.requirement, MAX_LINE_CHARS)}" for item in criteria]
    )


def _notes_block(shots: tuple[Shot, ...], readings: list[ShotReading]) -> str:
    """What the screenshots showed, criterion by criterion; the judge model's own notes, yet still only data."""
    notes = [
        (item.criterion, f"{item.criterion}, screenshot {shot.place} {item.relation}: {bounded_line(item.seen, 300)}")
        for shot, reading in zip(shots, readings, strict=True)
        for item in reading.relations
        if item.relation != "unrelated"
    ]
    # By criterion, c2 before c10, and within it in the screenshots' order, which sorting leaves as it is.
    lines = [line for _, line in sorted(notes, key=lambda note: (len(note[0]), note[0]))]
    lines += [
        f"screenshot {shot.place} shows a blocker: {reading.blocker}"
        for shot, reading in zip(shots, readings, strict=True)
        if reading.blocker
    ]
    return block("notes on the screenshots", lines or ["(no screenshot has to do with a criterion)"])
