"""What every evaluator returns: assertions with what was expected, what was found, and how it was compared."""

from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from shared.models import Record, Verdict

MAX_FOUND_CHARS = 500


class Assertion(Record):
    """One expectation and its result.

    `passed` is `None` where the necessary recording is missing or damaged; `found` then names what is missing.
    `normalised` is the form that was compared, where it differs from what was found. `step` is the index of the step at
    which the expectation was met first.
    """

    check: str
    description: str
    passed: bool | None
    expected: str
    found: str
    normalised: str | None = None
    step: int | None = None


_ASSERTIONS = TypeAdapter(list[Assertion])


def assertions_in(verdict: Verdict | None) -> list[Assertion]:
    """The results of the checks that a verdict's evidence holds; none where it holds anything else."""
    try:
        return _ASSERTIONS.validate_python(verdict.evidence.get("checks") if verdict else None, strict=True)
    except ValidationError:
        return []


class Found(NamedTuple):
    """The result of a comparison. `counts` is false where there was nothing to compare: no page, no answer."""

    passed: bool
    text: str
    normalised: str | None = None
    counts: bool = True


class Decision(NamedTuple):
    """Whether a check passed, the finding that decided it, and the index of the step at which it passed first."""

    passed: bool
    found: Found
    step: int | None
