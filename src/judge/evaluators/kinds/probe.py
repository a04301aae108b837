"""`probe` checks: values that the judge reads in the page, and whether one ends the attempt."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Protocol, Self

from pydantic import BeforeValidator, Field, model_validator

from judge.evaluators.addresses import matches
from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence
from judge.evaluators.looks import UNSURE, looks_at, over_looks
from judge.records.checks import AsWritten, LookCheck, SuccessRule, Text, expressions_of, plain_checks
from judge.records.findings import in_words
from judge.records.sites import Site
from judge.records.steps import ProbeValue
from judge.records.tasks import Task, expressions_read
from shared.fields import Invalid, at_most
from shared.fields import printable as shown_in_errors
from shared.models import Page
from shared.text import excerpt, one_line, plain

# The least reward above 0, because a check's `min` counts as reached.
LEAST = 1e-9


def _is_value(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise Invalid(f"{shown_in_errors(value)} is neither a text, a number nor a boolean", "correct it")
    return value


class ProbeCheck(LookCheck):
    """A value that the judge reads in the page after every action equals `expected` or lies within `min` and `max`."""

    kind: Literal["probe"]
    expression: Annotated[Text, at_most(1_000), AsWritten()]
    expected: Annotated[bool | int | float | str | None, BeforeValidator(_is_value)] = None
    min: float | None = None
    max: float | None = None
    keep: Literal["first"] | None = None
    ends: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.expected is None) == (self.min is None and self.max is None):
            raise Invalid("needs either expected, or min or max", "write expected = 1")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Invalid(f"min {self.min:g} is larger than max {self.max:g}", "correct one of them", key="min")
        return self

    @property
    def read_in_page(self) -> str:
        """Its expression."""
        return self.expression

    @property
    def success_rule(self) -> SuccessRule | None:
        """The rule by which it decides on the page's reward, if it keeps the first one and ends the attempt with it."""
        if self.keep != "first" or not self.ends:
            return None
        if (self.expected, self.min, self.max) == (1, None, None):
            return "exact"
        return "positive" if (self.expected, self.min, self.max) == (None, LEAST, None) else None


def decide(check: ProbeCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the value is the expected one, or within the limits."""
    looks, expressions = looks_at(check, recording), expressions_read(recording.recorded_task)
    of_checks = len(expressions_of(recording.recorded_task.checks))
    own = range(of_checks, len(expressions)) if recording.counts_all else range(of_checks)
    at = next((at for at in own if expressions[at] == check.expression), None)
    if at is None:
        raise MissingEvidence("the value of this expression was not read when the attempt was played: play it again")
    return over_looks(check, looks, inverted, _probe_test(check, recording, looks, at, len(expressions)))


def _probe_test(
    check: ProbeCheck, recording: TrajectoryEvidence, looks: Sequence[Look], at: int, count: int
) -> Callable[[Look, bool], ComparisonResult]:
    """Tests the value read in the page, the one at this place of `count`; with `keep`, the first value read so far."""
    results_by_step: dict[int, ComparisonResult] = {}
    first_value: ComparisonResult | None = None
    for look in looks:
        if len(look.step.probes) != count:
            raise MissingEvidence(f"no value was read at step {look.step.index + 1}")
        probe_value = look.step.probes[at]
        value = recording.as_compared(probe_value.value)
        now = _compared(check, value) if value is not None else _without_value(look, probe_value.error)
        now = UNSURE if look.is_unsure else now
        if check.keep == "first" and first_value is None and probe_value.value is not None:
            first_value = now
        results_by_step[look.step.index] = first_value or now
    return lambda look, _explains: results_by_step[look.step.index]


def _without_value(look: Look, error: str | None) -> ComparisonResult:
    why = one_line(error, 300) if error else "null"
    where = "" if look.is_own else f": {excerpt(look.step.url, 200)}"
    return ComparisonResult(False, f"no value, {why}{where}", counts=False)


def _compared(check: ProbeCheck, value: bool | int | float | str) -> ComparisonResult:
    text = excerpt(value, 300) if isinstance(value, str) else in_words(value)
    if check.expected is not None:
        if isinstance(value, str) and isinstance(check.expected, str):
            return ComparisonResult(plain(value) == plain(check.expected), text)
        # In Python `True == 1`.
        return ComparisonResult(
            isinstance(value, bool) == isinstance(check.expected, bool) and value == check.expected, text
        )
    if isinstance(value, bool | str):
        return ComparisonResult(False, f"{text} is not a number", counts=False)
    return ComparisonResult(
        (check.min is None or value >= check.min) and (check.max is None or value <= check.max), text
    )


class ExpressionReader(Protocol):
    """Reads expressions in the last observed page: a `judge.browser.session.Browser`."""

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]: ...


def _unreadable(page: Page) -> str:
    """Why nothing can be read in a page; empty if it can."""
    if page.dialog is not None:
        return "a dialog is open"
    return "the page cannot be observed" if page.notice is not None and not page.snapshot else ""


class Probes:
    """The probes of a task in one attempt."""

    def __init__(self, task: Task) -> None:
        self._expressions = expressions_of(task.checks)
        # It does not matter in which page these are read.
        self._of_policies = expressions_read(task)[len(self._expressions) :]
        self._ending = [each for each in plain_checks(task.checks) if isinstance(each, ProbeCheck) and each.ends]

    async def read(self, browser: ExpressionReader, page: Page, site: Site) -> tuple[ProbeValue, ...]:
        """A value for each of `expressions_read`; errors for checks on a page outside the task's `site`."""
        if not self._expressions and not self._of_policies:
            return ()
        is_elsewhere, why = not site.holds(page.url), _unreadable(page)
        if not why and not is_elsewhere:
            return await browser.probe(page, (*self._expressions, *self._of_policies))
        own = tuple(ProbeValue(error="a page of another site" if is_elsewhere else why) for _ in self._expressions)
        if why or not self._of_policies:
            return (*own, *(ProbeValue(error=why) for _ in self._of_policies))
        return (*own, *await browser.probe(page, self._of_policies))

    def has_ended(self, page: Page, values: Sequence[ProbeValue], site: Site) -> bool:
        """Whether a probe with `ends` has a value; never on a page of another site."""
        values_by_expression = dict(zip(self._expressions, values, strict=False))
        return any(
            values_by_expression[probe.expression].value is not None
            and (probe.on is None or matches(page.url, probe.on, site, extra_query=True))
            for probe in self._ending
        )


KIND = CheckKind(ProbeCheck, decide, weighs_answers=True)
