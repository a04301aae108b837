"""What every evaluator gives: assertions. Actual, normalised, expected, compared, and what was found instead."""

from typing import Protocol

from judge.trajectory.record import Trajectory
from shared.models import Record

MAX_FOUND_CHARS = 500


class Assertion(Record):
    """One expectation with what became of it.

    `passed` is `None` where the recording needed to tell is missing or damaged; `found` then says what is missing.
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


class Evaluator(Protocol):
    """Decides on the evidence of one trajectory. Raises nothing: what cannot be told is an assertion that says so."""

    def evaluate(self, trajectory: Trajectory) -> tuple[Assertion, ...]: ...
