"""The rubric's records, and how they are read from a judge model's JSON. Pure."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from judge.parsing.points import last_json_object
from shared.models import Record


def _spelled(value: Any) -> Any:
    """A word as it is asked for: "Not_Met" is "not met"."""
    return value.strip().lower().replace("_", " ").replace("-", " ") if isinstance(value, str) else value


Relation = Annotated[Literal["supports", "contradicts", "unrelated"], BeforeValidator(_spelled)]
Mark = Annotated[Literal["met", "not met", "blocked"], BeforeValidator(_spelled)]
Kind = Annotated[Literal["outcome", "process"], BeforeValidator(_spelled)]
CriterionId = Annotated[str, BeforeValidator(_spelled)]
Remark = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
BLOCKERS = frozenset({"captcha", "login_wall", "out_of_stock", "site_down", "other"})
MAX_CRITERIA = 12


class Criterion(Record):
    """One requirement of the task. A `process` criterion is about the way, an `outcome` criterion about the end."""

    id: str
    requirement: str
    kind: Literal["outcome", "process"] = "outcome"


class _Said(BaseModel):
    """What a model wrote: more keys than asked for are ignored, the asked ones are checked."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _NewCriterion(_Said):
    requirement: str = Field(min_length=1)
    kind: Kind = "outcome"


class _Criteria(_Said):
    criteria: list[_NewCriterion] = Field(min_length=1)


def blocker_kind(value: str | None) -> str | None:
    """One of `BLOCKERS`, as it is asked for: "Login wall" is "login_wall"; `None` when none is named."""
    named = (value or "").strip().lower().replace(" ", "_").replace("-", "_")
    return None if named in ("", "null", "none") else named if named in BLOCKERS else "other"


class ShotRelation(_Said):
    """What one screenshot says about one criterion."""

    criterion: CriterionId
    relation: Relation
    seen: Remark = ""


class ShotReading(_Said):
    """What one screenshot says about every criterion, and the blocker that it shows."""

    relations: list[ShotRelation]
    blocker: str | None = None

    @field_validator("blocker")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return blocker_kind(value)

    @property
    def related(self) -> bool:
        """Whether the screenshot has to do with any criterion or shows a blocker."""
        return self.blocker is not None or any(item.relation != "unrelated" for item in self.relations)


class CriterionMark(_Said):
    """The verdict on one criterion."""

    criterion: CriterionId
    verdict: Mark
    reason: Remark = ""


class FirstFailure(_Said):
    """Where the attempt went wrong for good: the number of the action, from 1."""

    action: int | None = None
    criterion: str | None = None
    why: Remark = ""


class Blocker(_Said):
    """Something in the way; `avoidable` when the one acting could have got around it, `None` when that is not said."""

    kind: str
    avoidable: bool | None = None
    seen: Remark = ""

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        return blocker_kind(value) or "other"


class ProcessMarks(_Said):
    """The marks of an attempt, criterion by criterion."""

    criteria: list[CriterionMark]
    first_failure: FirstFailure | None = None
    blockers: Annotated[list[Blocker], BeforeValidator(lambda value: value or [])] = Field(default_factory=list)

    @property
    def score(self) -> float:
        """The share of criteria met, from 0 to 1."""
        return sum(mark.verdict == "met" for mark in self.criteria) / len(self.criteria)


def parse_criteria(text: str) -> tuple[Criterion, ...] | None:
    """The criteria of a rubric reply, numbered by us; `None` when it holds none."""
    try:
        said = _Criteria.model_validate(last_json_object(text))
    except ValidationError:
        return None
    # One mistake must not count twice: what is said word for word again is the same criterion.
    kinds = {" ".join(item.requirement.split()): item.kind for item in reversed(said.criteria)}
    texts = dict.fromkeys(" ".join(item.requirement.split()) for item in said.criteria)
    return tuple(
        Criterion(id=f"c{number}", requirement=text, kind=kinds[text])
        for number, text in enumerate([*texts][:MAX_CRITERIA], 1)
    )


def parse_reading(text: str, criteria: Sequence[Criterion]) -> ShotReading | None:
    """A screenshot's reading; `None` unless every criterion is attended to exactly once."""
    try:
        reading = ShotReading.model_validate(last_json_object(text))
    except ValidationError:
        return None
    return reading if _each_once([item.criterion for item in reading.relations], criteria) else None


def parse_marks(text: str, criteria: Sequence[Criterion]) -> ProcessMarks | None:
    """The marks of an attempt; `None` unless every criterion has exactly one."""
    try:
        marks = ProcessMarks.model_validate(last_json_object(text))
    except ValidationError:
        return None
    return marks if _each_once([item.criterion for item in marks.criteria], criteria) else None


def _each_once(named: list[str], criteria: Sequence[Criterion]) -> bool:
    return sorted(named) == sorted(criterion.id for criterion in criteria)
