"""The rubric method: criteria are written before the attempt is seen, then every screenshot is compared with each.

Process and outcome are scored separately, and blockers are distinguished from mistakes. Success requires both: the
outcome stage says success, and no outcome criterion is marked as not met. Requiring both makes false positives rare.
The process score (share of criteria met) and the first point of failure are reported with the verdict. With
`judge_votes` > 1 the last stage runs that often and more than half of the votes must agree.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judge.judges.base import Workload
from judge.judges.engine import ModelJudge, Question, Session
from judge.judges.evidence import MAX_LINE_CHARS, Shot, block, read_shots, task_block
from judge.judges.withholding import AttemptView
from judge.parsing import Status
from judge.parsing.key_points import last_json_object
from judge.records.tasks import Task
from judge.records.verdicts import Verdict, VerdictOutcome
from judge.trajectory.record import Trajectory
from shared.concurrency import together
from shared.errors import ModelMalformed
from shared.models import Record, omit_default
from shared.text import bounded_line, counted

FINAL_SHOTS = 3
VOTE_TEMPERATURE = 1.0
MAX_CRITERIA = 12
BLOCKERS = frozenset({"captcha", "login_wall", "out_of_stock", "site_down", "other"})


def _spelled(value: Any) -> Any:
    """A word in the requested spelling: "Not_Met" becomes "not met"."""
    return value.strip().lower().replace("_", " ").replace("-", " ") if isinstance(value, str) else value


def _blocker(value: str | None) -> str | None:
    """One of `BLOCKERS` in the requested spelling: "Login wall" becomes "login_wall"; `None` if there is none."""
    kind_name = _spelled(value or "").replace(" ", "_")
    return None if kind_name in ("", "null", "none") else kind_name if kind_name in BLOCKERS else "other"


RubricKind = Literal["outcome", "process"]
CriterionId = Annotated[str, BeforeValidator(_spelled)]
Remark = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class Criterion(Record):
    """One requirement of the task. A `process` criterion is about the steps, an `outcome` criterion the result.

    `weight` counts in the score only.
    """

    id: str
    requirement: str
    kind: RubricKind = "outcome"
    weight: float = omit_default(1.0, gt=0)


class _RubricReply(BaseModel):
    """A model's answer: unknown keys are ignored, the requested ones are validated."""

    model_config = ConfigDict(frozen=True, extra="ignore")


A = TypeVar("A", bound=_RubricReply)


class _NewCriterion(_RubricReply):
    requirement: str = Field(min_length=1)
    kind: Annotated[RubricKind, BeforeValidator(_spelled)] = "outcome"


class _NewCriteria(_RubricReply):
    criteria: list[_NewCriterion] = Field(min_length=1)


class ShotRelation(_RubricReply):
    """How one screenshot relates to one criterion."""

    criterion: CriterionId
    relation: Annotated[Literal["supports", "contradicts", "unrelated"], BeforeValidator(_spelled)]
    seen: Remark = ""


class ShotReading(_RubricReply):
    """How one screenshot relates to every criterion, and the blocker that it shows, if any."""

    relations: list[ShotRelation]
    blocker: Annotated[str | None, AfterValidator(_blocker)] = None

    @property
    def is_related(self) -> bool:
        """Whether the screenshot is relevant to a criterion or shows a blocker."""
        return self.blocker is not None or any(item.relation != "unrelated" for item in self.relations)


class CriterionMark(_RubricReply):
    """The verdict on one criterion."""

    criterion: CriterionId
    verdict: Annotated[Literal["met", "not met", "blocked"], BeforeValidator(_spelled)]
    reason: Remark = ""


class FirstFailure(_RubricReply):
    """Where the attempt irreversibly went wrong: the number of the action, from 1."""

    action: int | None = None
    criterion: str | None = None
    why: Remark = ""


class Blocker(_RubricReply):
    """An obstacle; `avoidable` if the participant could have got around it, `None` if unknown."""

    kind: Annotated[str, AfterValidator(lambda value: _blocker(value) or "other")]
    avoidable: bool | None = None
    seen: Remark = ""


class ProcessMarks(_RubricReply):
    """The marks of an attempt, criterion by criterion."""

    criteria: list[CriterionMark]
    first_failure: FirstFailure | None = None
    blockers: Annotated[list[Blocker], BeforeValidator(lambda value: value or [])] = Field(default_factory=list)

    @property
    def score(self) -> float:
        """The share of criteria met, from 0 to 1."""
        return sum(mark.verdict == "met" for mark in self.criteria) / len(self.criteria)


def parse_criteria(text: str) -> tuple[Criterion, ...] | None:
    """The criteria in a rubric reply, numbered from c1; `None` if there are none."""
    answer = _parse(_NewCriteria, text)
    if answer is None:
        return None
    # A repeated criterion counts once. Reversed, so that it keeps the kind that was given first.
    kinds = {" ".join(item.requirement.split()): item.kind for item in reversed(answer.criteria)}
    texts = dict.fromkeys(" ".join(item.requirement.split()) for item in answer.criteria)
    return tuple(
        Criterion(id=f"c{number}", requirement=text, kind=kinds[text])
        for number, text in enumerate([*texts][:MAX_CRITERIA], 1)
    )


def parse_reading(text: str, criteria: Sequence[Criterion]) -> ShotReading | None:
    """A screenshot's reading; `None` unless it covers every criterion exactly once."""
    reading = _parse(ShotReading, text)
    return reading if reading and _covers(reading.relations, criteria) else None


def parse_marks(text: str, criteria: Sequence[Criterion]) -> ProcessMarks | None:
    """The marks of an attempt; `None` unless they cover every criterion exactly once."""
    marks = _parse(ProcessMarks, text)
    return marks if marks and _covers(marks.criteria, criteria) else None


def _parse(kind: type[A], text: str) -> A | None:
    try:
        return kind.model_validate(last_json_object(text))
    except ValidationError:
        return None


def _covers(items: Sequence[ShotRelation | CriterionMark], criteria: Sequence[Criterion]) -> bool:
    return sorted(item.criterion for item in items) == sorted(criterion.id for criterion in criteria)


# A screenshot and what it shows, `None` if the provider refused to look at it.
ReadShot = tuple[Shot, ShotReading | None]


class Vote(NamedTuple):
    """One run of the last stage: its outcome and reason, and the record of both judgements."""

    outcome: VerdictOutcome
    reason: str
    evidence: dict[str, object]


class RubricJudge(ModelJudge):
    """Takes the criteria from the scenario's key points if it has any, else asks the judge model once per task."""

    method = "rubric"
    prompts: ClassVar[tuple[str, ...]] = ("rubric_criteria", "rubric_image", "rubric_process", "rubric_outcome")
    reminders: ClassVar[tuple[str, ...]] = ("json", "status")
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer", "max_images", "judge_votes")

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Criteria need only the task; a screenshot's reading needs the criteria and the screenshot."""
        criteria = await _ask_criteria(session, task)
        if screenshot is not None:
            await _ask_reading(session, task, criteria, screenshot, place=0)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Criteria, then all screenshots concurrently, then all votes concurrently."""
        task, shots = trajectory.task, read_shots(trajectory)
        criteria = await _ask_criteria(session, task)
        readings = await together(_ask_reading(session, task, criteria, shot.path, shot.place) for shot in shots)
        shot_readings: list[ReadShot] = list(zip(shots, readings, strict=True))
        votes = await together(
            self._vote(session, trajectory, criteria, shot_readings, run) for run in range(self.config.judge_votes)
        )
        counts = Counter(vote.outcome for vote in votes)
        winner = next((outcome for outcome, count in counts.items() if count * 2 > len(votes)), None)
        deciding_vote = next((vote for vote in votes if vote.outcome == (winner or "unscored")), votes[0])
        rubric = {
            "criteria": [criterion.model_dump() for criterion in criteria],
            "readings": {str(shot.place): reading.model_dump() for shot, reading in shot_readings if reading},
            "votes": [vote.evidence for vote in votes],
            **deciding_vote.evidence,
        }
        return session.verdict(
            winner or "unscored",
            deciding_vote.reason if winner else f"no majority in {counted(len(votes), 'vote')}: {dict(counts)}",
            key_points=tuple(criterion.requirement for criterion in criteria),
            evidence={"rubric": rubric},
        )

    def workload(self, trajectory: Trajectory) -> Workload:
        """Criteria, every distinct screenshot, and two questions for each vote."""
        if not trajectory.screenshots:
            return Workload()
        shots, questions = len(read_shots(trajectory)), 2 * self.config.judge_votes
        images = shots + questions * min(shots, self.config.max_images)
        return Workload(calls=1 + shots + questions, images=images)

    async def _vote(
        self,
        session: Session,
        trajectory: Trajectory,
        criteria: tuple[Criterion, ...],
        readings: list[ReadShot],
        run: int,
    ) -> Vote:
        most = self.config.max_images
        # Includes screenshots that the provider refused to read: they must not disappear from the evidence.
        related = [shot for shot, reading in readings if reading is None or reading.is_related]
        # Votes must differ, and each must be cached separately, so each has its own seed.
        sampling = {"temperature": VOTE_TEMPERATURE, "seed": run + 1} if self.config.judge_votes > 1 else {}
        blocks = {"criteria_block": _criteria_block(criteria)}
        at_end = with_the_end(related, [shot for shot, _ in readings], most)

        # Either both stages see the answer or neither: without it, the marks would veto every task that asks for one.
        def process(view: AttemptView) -> Question:
            images = (shot.path for shot in related[-most:])
            known = {**blocks, "notes_block": _notes_block(readings, view)}
            return self.question("rubric_process", view, images, known, order=(2, run, 0), reminder="json", **sampling)

        def outcome(view: AttemptView) -> Question:
            images = (shot.path for shot in at_end)
            return self.question("rubric_outcome", view, images, blocks, order=(2, run, 1), **sampling)

        replies: list[Any] = await together(
            [session.ask_about(process, lambda text: parse_marks(text, criteria)), session.ask_status(outcome)]
        )
        (marks, _), (status, text) = replies
        decided, reason = _decide(criteria, marks, status, text)
        evidence = {
            "outcome": decided,
            "outcome_status": status,
            "process_score": marks.score if marks else None,
            "marks": [mark.model_dump() for mark in marks.criteria] if marks else [],
            "first_failure": marks.first_failure.model_dump() if marks and marks.first_failure else None,
            "blockers": [blocker.model_dump() for blocker in marks.blockers] if marks else [],
        }
        return Vote(decided, reason, evidence)


async def _ask_criteria(session: Session, task: Task) -> tuple[Criterion, ...]:
    if task.key_points:
        weighted = zip(task.point_texts, task.point_weights, strict=True)
        return tuple(
            Criterion(id=f"c{number}", requirement=text, weight=weight)
            for number, (text, weight) in enumerate(weighted, 1)
        )
    question = Question(prompt="rubric_criteria", values={"task_block": task_block(task)}, reminder="json")
    criteria, _ = await session.ask(question, parse_criteria)
    if criteria is None:
        raise ModelMalformed("the judge model's replies contained no rubric")
    return criteria


async def _ask_reading(
    session: Session, task: Task, criteria: tuple[Criterion, ...], path: Path, place: int
) -> ShotReading | None:
    """A screenshot's relation to the criteria; `None` if the provider refuses to look at it."""
    question = Question(
        order=(1, place),
        prompt="rubric_image",
        values={"task_block": task_block(task), "criteria_block": _criteria_block(criteria)},
        reminder="json",
        images=(path,),
    )
    reading, _ = await session.ask_shot(question, lambda text: parse_reading(text, criteria))
    if reading is None and not session.is_refused(path):
        raise ModelMalformed(f"the judge model's replies did not relate screenshot {place} to every criterion")
    return reading


def with_the_end(related: Sequence[Shot], shots: Sequence[Shot], most: int) -> tuple[Shot, ...]:
    """The last few screenshots and, before them, the latest relevant ones; at most `most`."""
    end = shots[-min(FINAL_SHOTS, most) :]
    before = [shot for shot in related if shot.place < end[0].place]
    return (*before[max(len(before) - (most - len(end)), 0) :], *end)


def _decide(
    criteria: tuple[Criterion, ...], marks: ProcessMarks | None, status: Status | None, text: str
) -> tuple[VerdictOutcome, str]:
    """Failure needs one of the two judgements, success needs both; otherwise the verdict is unscored."""
    if status == "failure":
        return "failure", text
    ends = {criterion.id: criterion.requirement for criterion in criteria if criterion.kind == "outcome"}
    missed = [mark for mark in marks.criteria if mark.criterion in ends and mark.verdict != "met"] if marks else []
    if missed:
        reasons = "; ".join(f"{ends[mark.criterion]}: {mark.verdict} ({mark.reason})" for mark in missed)
        return "failure", f"outcome criteria not met: {reasons}"
    if status is None or marks is None:
        return "unscored", "the judge model's replies contained no usable marks or no status"
    return "success", text


def _criteria_block(criteria: tuple[Criterion, ...]) -> str:
    return block(
        "criteria", [f"{item.id} ({item.kind}): {bounded_line(item.requirement, MAX_LINE_CHARS)}" for item in criteria]
    )


def _notes_block(readings: list[ReadShot], view: AttemptView) -> str:
    """What the screenshots showed, by criterion: written by the judge model, but still treated as untrusted data."""
    pairs = [(shot, reading) for shot, reading in readings if reading is not None and view.shows(shot.path)]
    notes = [
        (item.criterion, f"{item.criterion}, screenshot {shot.place} {item.relation}: {bounded_line(seen, 300)}")
        for shot, reading in pairs
        for item in reading.relations
        for seen in [view.note(shot.path, item.seen)]
        if item.relation != "unrelated"
    ]
    # By criterion, c2 before c10; the sort is stable, so screenshots stay in order within a criterion.
    lines = [line for _, line in sorted(notes, key=lambda note: (len(note[0]), note[0]))]
    lines += [
        f"screenshot {shot.place} shows a blocker: {reading.blocker}" for shot, reading in pairs if reading.blocker
    ]
    return block("notes on the screenshots", lines or ["(no screenshot has to do with a criterion)"])
