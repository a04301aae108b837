"""What became of one check, as verdicts record it."""

from typing import Annotated

from pydantic import TypeAdapter, ValidationError

from judge.records.findings import Fact, FromList
from judge.records.verdicts import Verdict
from shared.models import Record, omit_default

MAX_FOUND_CHARS = 500


class Assertion(Record):
    """One expectation and its result.

    `passed` is `None` if the necessary recording is missing or damaged; `found` then names what is missing.
    `normalised` is the compared form, if it differs from `found`. `step` is the index of the step at which the
    expectation was first met. For a failed one, as far as the record shows: `last_step` is the index of the last step
    at which it was met, `near_step` the step of an action that was nearly the expected one. `facts` is the content of
    `found` as data, as far as programs use it.
    """

    check: str
    description: str
    passed: bool | None
    expected: str
    found: str
    normalised: str | None = None
    step: int | None = None
    last_step: int | None = omit_default(None)
    near_step: int | None = omit_default(None)
    facts: Annotated[tuple[Fact, ...] | None, FromList] = omit_default(None)


_ASSERTIONS = TypeAdapter(list[Assertion])


def assertions_in(verdict: Verdict | None) -> list[Assertion]:
    """The check results in a verdict's evidence; empty if its evidence is of another kind."""
    try:
        return _ASSERTIONS.validate_python(verdict.evidence.get("checks") if verdict else None, strict=True)
    except ValidationError:
        return []
