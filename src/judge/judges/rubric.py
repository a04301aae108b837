"""The rubric method: criteria are written before the attempt is seen, then every screenshot is compared with each.

Process and outcome are scored separately, and blockers are distinguished from mistakes. The outcome is a success if the
outcome stage says so and no outcome criterion is marked as not met: requiring both makes false positives rare. The
process is one from `rubric_threshold` of the points; a criterion whose condition does not hold has none. Which of the
two is demanded is `rubric_success`. The last stage runs `judge_votes` times, with each of `judge_vote_models` if there
are any, and more than half of the votes must agree. A task that the criteria stage calls invalid is unscored; no
participant can bring that about, because that stage sees no attempt.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judge.config import RubricSuccess, RunConfig
from judge.judges.base import Workload
from judge.judges.engine import ModelJudge, Question, Session
from judge.judges.evidence import MAX_LINE_CHARS, Shot, block, read_shots, task_block
from judge.judges.withholding import AttemptView
from judge.parsing import Status
from judge.parsing.key_points import last_json_object
from judge.records.key_points import WeightedPoint
from judge.records.tasks import Task
from judge.records.verdicts import INVALID_TASK, Verdict, VerdictOutcome
from judge.trajectory.record import Trajectory
from shared.concurrency import together
from shared.errors import ModelMalformed
from shared.models import Record, omit_default
from shared.text import bounded_line, clip, counted

FINAL_SHOTS = 3
VOTE_TEMPERATURE = 1.0
MAX_CRITERIA = 12
BLOCKERS = frozenset({"captcha", "login_wall", "out_of_stock", "site_down", "other"})
NOT_APPLICABLE = "inapplicable"
_MAX_INTENT_CHARS = 500


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

    `weight` is its points. It counts only where its `condition` holds.
    """

    id: str
    requirement: str
    kind: RubricKind = "outcome"
    weight: float = omit_default(1.0, gt=0)
    condition: str | None = omit_default(None)


class _RubricReply(BaseModel):
    """A model's answer: unknown keys are ignored, the requested ones are validated."""

    model_config = ConfigDict(frozen=True, extra="ignore")


A = TypeVar("A", bound=_RubricReply)


class _NewCriterion(_RubricReply):
    requirement: str = Field(min_length=1)
    kind: Annotated[RubricKind, BeforeValidator(_spelled)] = "outcome"
    condition: Remark = ""


Codes = Annotated[tuple[Annotated[str, BeforeValidator(_spelled)], ...], BeforeValidator(lambda value: value or ())]


class TaskValidity(_RubricReply):
    """What is wrong with a task itself, by codes: more than one reading, or none that anybody could carry out."""

    ambiguous: Codes = ()
    invalid: Codes = ()
    why: Remark = ""


class _NewCriteria(_RubricReply):
    criteria: list[_NewCriterion] = Field(min_length=1)
    intent: Remark = ""
    task: TaskValidity | None = None


class Rubric(NamedTuple):
    """What is known before an attempt is seen: criteria, the task's main intent, and what is wrong with the task."""

    criteria: tuple[Criterion, ...]
    intent: str = ""
    validity: TaskValidity = TaskValidity()


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
    verdict: Annotated[Literal["met", "not met", "blocked", "inapplicable"], BeforeValidator(_spelled)]
    reason: Remark = ""
    points: float | None = omit_default(None, ge=0)

    def earned(self, most: float) -> float:
        """Its points, of `most`."""
        return self.points if self.points is not None else most if self.verdict == "met" else 0.0


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

    def share(self, criteria: Sequence[Criterion]) -> float | None:
        """The share of the points of the criteria that apply, from 0 to 1; `None` if none does."""
        most = {criterion.id: criterion.weight for criterion in criteria}
        applying = [mark for mark in self.criteria if mark.verdict != NOT_APPLICABLE]
        total = math.fsum(most[mark.criterion] for mark in applying)
        return math.fsum(mark.earned(most[mark.criterion]) for mark in applying) / total if applying else None


def parse_rubric(text: str) -> Rubric | None:
    """The rubric in a reply, its criteria numbered from c1; `None` if there are none."""
    answer = _parse(_NewCriteria, text)
    if answer is None:
        return None
    # A repeated criterion counts once. Reversed, so that it keeps the kind given first.
    items = {" ".join(item.requirement.split()): item for item in reversed(answer.criteria)}
    texts = dict.fromkeys(" ".join(item.requirement.split()) for item in answer.criteria)
    criteria = tuple(
        Criterion(id=f"c{n}", requirement=text, kind=items[text].kind, condition=items[text].condition.strip() or None)
        for n, text in enumerate([*texts][:MAX_CRITERIA], 1)
    )
    return Rubric(criteria, clip(answer.intent, _MAX_INTENT_CHARS), answer.task or TaskValidity())


def parse_reading(text: str, criteria: Sequence[Criterion]) -> ShotReading | None:
    """A screenshot's reading; `None` unless it covers every criterion exactly once."""
    reading = _parse(ShotReading, text)
    return reading if reading and _covers(reading.relations, criteria) else None


def parse_marks(text: str, criteria: Sequence[Criterion]) -> ProcessMarks | None:
    """The marks of an attempt; `None` unless they cover every criterion exactly once.

    A criterion has at most its points, and only one with a condition can be left out of the score.
    """
    marks = _parse(ProcessMarks, text)
    if marks is None or not _covers(marks.criteria, criteria):
        return None
    known = {criterion.id: criterion for criterion in criteria}
    are_possible = all(
        (mark.points or 0) <= known[mark.criterion].weight
        and (mark.verdict != NOT_APPLICABLE or known[mark.criterion].condition)
        for mark in marks.criteria
    )
    return marks if are_possible else None


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
    options: ClassVar[tuple[str, ...]] = (
        "judge_sees_answer",
        "max_images",
        "max_images_per_criterion",
        "judge_votes",
        "judge_vote_models",
        "rubric_success",
        "rubric_threshold",
    )

    def note(self, config: RunConfig) -> str:
        """The models that vote."""
        return f"votes of {', '.join(config.judge_vote_models)}" if config.judge_vote_models else ""

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Criteria need only the task; a screenshot's reading needs the criteria and the screenshot."""
        rubric = await _ask_criteria(session, task)
        if screenshot is not None:
            await _ask_reading(session, task, rubric.criteria, screenshot, place=0)

    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """Criteria, then all screenshots concurrently, then all votes concurrently."""
        task, shots = trajectory.task, read_shots(trajectory)
        of_task = await _ask_criteria(session, task)
        criteria, validity = of_task.criteria, of_task.validity
        readings = await together(_ask_reading(session, task, criteria, shot.path, shot.place) for shot in shots)
        shot_readings: list[ReadShot] = list(zip(shots, readings, strict=True))
        votes = await together(
            self._vote(session, trajectory, criteria, shot_readings, place, voter)
            for place, voter in enumerate(self._voters)
        )
        counts = Counter(vote.outcome for vote in votes)
        winner = next((outcome for outcome, count in counts.items() if count * 2 > len(votes)), None)
        deciding_vote = next((vote for vote in votes if vote.outcome == (winner or "unscored")), votes[0])
        rubric = {
            "criteria": [criterion.model_dump() for criterion in criteria],
            "readings": {str(shot.place): reading.model_dump() for shot, reading in shot_readings if reading},
            "votes": [vote.evidence for vote in votes],
            **deciding_vote.evidence,
            "success": self.config.rubric_success,
            "threshold": self.config.rubric_threshold,
            "max_images_per_criterion": self.config.max_images_per_criterion,
            "score_threshold": self.config.score_threshold,
            "primary_intent": of_task.intent or clip(task.task, _MAX_INTENT_CHARS),
            **({"task": validity.model_dump(mode="json")} if validity != TaskValidity() else {}),
        }
        known: dict[str, Any] = {
            "key_points": tuple(criterion.requirement for criterion in criteria),
            "evidence": {"rubric": rubric},
        }
        if validity.invalid:
            reason = f"the task is invalid ({', '.join(validity.invalid)}): {validity.why}"
            return session.verdict("unscored", reason, reason_code=INVALID_TASK, **known)
        return session.verdict(
            winner or "unscored",
            deciding_vote.reason if winner else f"no majority in {counted(len(votes), 'vote')}: {dict(counts)}",
            **known,
        )

    @property
    def _voters(self) -> list[str | None]:
        """Who gives each vote: `None` is the judge model."""
        return [voter for voter in self.config.judge_vote_models or (None,) for _ in range(self.config.judge_votes)]

    def workload(self, trajectory: Trajectory) -> Workload:
        """Criteria, every distinct screenshot, and two questions for each vote."""
        if not trajectory.screenshots:
            return Workload()
        shots, questions = len(read_shots(trajectory)), 2 * len(self._voters)
        images = shots + questions * min(shots, self.config.max_images)
        return Workload(calls=1 + shots + questions, images=images)

    async def _vote(
        self,
        session: Session,
        trajectory: Trajectory,
        criteria: tuple[Criterion, ...],
        readings: list[ReadShot],
        run: int,
        voter: str | None,
    ) -> Vote:
        most = self.config.max_images
        # Includes screenshots that the provider refused to read: they must not disappear from the evidence.
        related = [shot for shot, reading in readings if reading is None or reading.is_related]
        marked_by = _of_criteria(readings, criteria, self.config.max_images_per_criterion)
        # Votes must differ, and each must be cached separately, so each has another seed.
        sampling: dict[str, Any] = {"voter": voter}
        if self.config.judge_votes > 1:
            sampling |= {"temperature": VOTE_TEMPERATURE, "seed": run + 1}
        blocks = {"criteria_block": _criteria_block(criteria)}
        at_end = with_the_end(related, [shot for shot, _ in readings], most)

        # Either both stages see the answer or neither: without it, the marks would veto every task that asks for one.
        def process(view: AttemptView) -> Question:
            images = (shot.path for shot in marked_by[-most:])
            known = {**blocks, "notes_block": _notes_block(readings, view)}
            return self.question("rubric_process", view, images, known, order=(2, run, 0), reminder="json", **sampling)

        def outcome(view: AttemptView) -> Question:
            images = (shot.path for shot in at_end)
            return self.question("rubric_outcome", view, images, blocks, order=(2, run, 1), **sampling)

        replies: list[Any] = await together(
            [session.ask_about(process, lambda text: parse_marks(text, criteria)), session.ask_status(outcome)]
        )
        (marks, _), (status, text) = replies
        outcome_decided, process_decided = (
            _decide(criteria, marks, status, text),
            _decide_process(criteria, marks, self.config),
        )
        decided, reason = _demanded(self.config.rubric_success, outcome_decided, process_decided)
        evidence = {
            **({"model": voter} if voter else {}),
            "outcome": decided,
            "outcome_status": status,
            "outcome_success": _as_flag(outcome_decided[0]),
            "process_success": _as_flag(process_decided[0]),
            "process_score": marks.share(criteria) if marks else None,
            "marks": [mark.model_dump() for mark in marks.criteria] if marks else [],
            "first_failure": marks.first_failure.model_dump() if marks and marks.first_failure else None,
            "blockers": [blocker.model_dump() for blocker in marks.blockers] if marks else [],
        }
        return Vote(decided, reason, evidence)


async def _ask_criteria(session: Session, task: Task) -> Rubric:
    if task.key_points:
        return Rubric(tuple(_declared(f"c{number}", point) for number, point in enumerate(task.key_points, 1)))
    question = Question(prompt="rubric_criteria", values={"task_block": task_block(task)}, reminder="json")
    rubric, _ = await session.ask(question, parse_rubric)
    if rubric is None:
        raise ModelMalformed("the judge model's replies contained no rubric")
    return rubric


def _declared(name: str, point: str | WeightedPoint) -> Criterion:
    if isinstance(point, str):
        return Criterion(id=name, requirement=point)
    return Criterion(id=name, requirement=point.text, weight=point.weight, condition=point.condition)


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


def _of_criteria(readings: Sequence[ReadShot], criteria: Sequence[Criterion], most: int) -> list[Shot]:
    """Of each criterion the latest screenshots that have to do with it, and those with a blocker or not read."""
    places = {shot.place for shot, reading in readings if reading is None or reading.blocker is not None}
    for criterion in criteria:
        about = [
            shot.place
            for shot, reading in readings
            if reading and any(r.criterion == criterion.id and r.relation != "unrelated" for r in reading.relations)
        ]
        places.update(about[-most:])
    return [shot for shot, _ in readings if shot.place in places]


Decided = tuple[VerdictOutcome, str]


def _demanded(success: RubricSuccess, outcome: Decided, process: Decided) -> Decided:
    """What is demanded of the two; of both, a failure of either decides."""
    if success != "both":
        return outcome if success == "outcome" else process
    return next((each for bad in ("failure", "unscored") for each in (outcome, process) if each[0] == bad), outcome)


def _decide_process(criteria: tuple[Criterion, ...], marks: ProcessMarks | None, config: RunConfig) -> Decided:
    share = marks.share(criteria) if marks else None
    if share is None:
        return "unscored", "the judge model's replies contained no usable marks, or no criterion applies"
    # Points such as 0.1 + 0.2 must not fail by a rounding error.
    is_success = share >= config.rubric_threshold - 1e-9
    reason = f"{share:.1%} of the points, of which {config.rubric_threshold:.1%} are demanded"
    return "success" if is_success else "failure", reason


def _as_flag(outcome: VerdictOutcome) -> bool | None:
    return None if outcome == "unscored" else outcome == "success"


def _decide(criteria: tuple[Criterion, ...], marks: ProcessMarks | None, status: Status | None, text: str) -> Decided:
    """Failure needs one of the two judgements, success needs both; otherwise the verdict is unscored."""
    if status == "failure":
        return "failure", text
    ends = {criterion.id: criterion.requirement for criterion in criteria if criterion.kind == "outcome"}
    met = ("met", NOT_APPLICABLE)
    missed = [mark for mark in marks.criteria if mark.criterion in ends and mark.verdict not in met] if marks else []
    if missed:
        reasons = "; ".join(f"{ends[mark.criterion]}: {mark.verdict} ({mark.reason})" for mark in missed)
        return "failure", f"outcome criteria not met: {reasons}"
    if status is None or marks is None:
        return "unscored", "the judge model's replies contained no usable marks or no status"
    return "success", text


def _criteria_block(criteria: tuple[Criterion, ...]) -> str:
    return block("criteria", [_criterion_line(item) for item in criteria])


def _criterion_line(item: Criterion) -> str:
    worth = "" if item.weight == 1 else f", {item.weight:g} points"
    only_if = f" (only if: {bounded_line(item.condition, MAX_LINE_CHARS)})" if item.condition else ""
    return f"{item.id} ({item.kind}{worth}): {bounded_line(item.requirement, MAX_LINE_CHARS)}{only_if}"


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
