"""Evaluates the checks that a task declares on its recorded evidence, each by its kind (`judge.evaluators.kinds`).

A kind reads the actual value, normalises it, compares it with the expected one, and reports what was found instead.
"""

from collections.abc import Iterator
from typing import Any

from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.looks import UNSURE
from judge.records.assertions import MAX_FOUND_CHARS, Assertion
from judge.records.checks import CHECKS, AnyOf, Check, KindCheck
from judge.records.findings import in_words
from judge.records.ledger import EVERYTHING, Coverage
from judge.records.sites import NONE_SHARED, RunSites
from judge.trajectory.record import Trajectory
from shared.text import clip, plain

_COMMON_KEYS = ("at", "on", "within", "in_view", "editable", "count")


def evaluate(
    trajectory: Trajectory, sites: RunSites = NONE_SHARED, accepts: frozenset[Coverage] = EVERYTHING
) -> tuple[Assertion, ...]:
    """One assertion for each check of the task, in order; undecided if evidence is missing.

    On frozen sites, what rests on answers of a kind not in `accepts` does not count as evidence.
    """
    return tuple(assertions(TrajectoryEvidence(trajectory, sites, accepts=accepts)))


def assertions(recording: TrajectoryEvidence, first: int = 0) -> Iterator[Assertion]:
    """One assertion for each check of the recording's task, in order, from the `first`."""
    checks = list(zip(recording.trajectory.task.checks, recording.checks, strict=True))
    yield from (_assertion(number, *each, recording) for number, each in enumerate(checks[first:], first + 1))


def _assertion(number: int, declared: Check, check: Check, recording: TrajectoryEvidence) -> Assertion:
    expected = describe(declared.model_copy(update={"description": ""}))
    about = {"check": f"check {number}", "description": describe(declared), "expected": expected}
    try:
        decision = _decide(check, recording, check.inverted)
    except MissingEvidence as missing:
        return Assertion(**about, passed=None, found=str(missing))
    comparison = decision.result
    normalised = None if comparison.normalised is None else clip(comparison.normalised, MAX_FOUND_CHARS)
    result = {
        "passed": decision.passed,
        "found": clip(comparison.text, MAX_FOUND_CHARS),
        "normalised": normalised,
        "facts": comparison.facts,
    }
    if decision.passed:
        return Assertion(**about, **result, step=decision.step)
    near = decision.near_step
    if near is None and decision.last_step is None:
        near = _near_step(check, recording)
    return Assertion(**about, **result, step=decision.step, last_step=decision.last_step, near_step=near)


def describe(check: Check) -> str:
    """The check in words: its description, otherwise its keys and values."""
    if check.description:
        return plain(check.description)
    if isinstance(check, AnyOf):
        words = (" and " if check.inverted else " or ").join(describe(each) for each in check.any_of)
        return f"none of: {words}" if check.inverted else words
    keys = check.model_dump(exclude_defaults=True, exclude={"kind", "inverted", "description"})
    # The keys of this kind come first, then those that every kind has.
    words = ", ".join(f"{key} {_in_words(keys[key])}" for key in sorted(keys, key=lambda key: key in _COMMON_KEYS))
    words = words if check.kind in keys else f"{check.kind} {words}"
    return f"not: {words}" if check.inverted else words


def _in_words(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return " then ".join(f"{each:g}" if isinstance(each, float) else in_words(each) for each in values)


def check_kind(check: KindCheck) -> CheckKind:
    """How checks of this kind are decided."""
    kind: CheckKind = CHECKS.load(check.kind).form(check)  # type: ignore[assignment]
    return kind


def _decide(check: Check, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    if not isinstance(check, AnyOf):
        kind = check_kind(check)
        # A kind that does not say that it weighs answers cannot forget to.
        if not kind.weighs_answers and recording.is_unsure(None):
            return Decision(False, UNSURE, None)
        return kind.decide(check, recording, inverted)
    # "None of them" is "not the first, and not the second, …", so that each keeps its own rule for missing pages.
    inner = [_decide(each, recording, each.inverted != inverted) for each in check.any_of]
    passed = (all if inverted else any)(one.passed for one in inner)
    steps = [one.step for one in inner if one.step is not None]
    telling = [one.result for one in inner if one.passed == passed][: 1 if passed else None]
    text = "; ".join(comparison.text for comparison in telling)
    facts = tuple(fact for comparison in telling for fact in comparison.facts)
    last = max((one.last_step for one in inner if one.last_step is not None), default=None)
    near = max((one.near_step for one in inner if one.near_step is not None), default=None)
    return Decision(passed, ComparisonResult(passed, text, facts=facts), min(steps, default=None), last, near)


def _near_step(check: Check, recording: TrajectoryEvidence) -> int | None:
    """The index of the last step whose action was nearly the expected one; `None` if there is no such action.

    For reports only: no verdict depends on it.
    """
    if check.inverted:
        return None
    if isinstance(check, AnyOf):
        steps = [_near_step(each, recording) for each in check.any_of]
        return max((step for step in steps if step is not None), default=None)
    try:
        return check_kind(check).near(check, recording)
    except MissingEvidence:
        return None
