"""Rewards that pages give, for which rows and submissions have columns.

A task has a reward if one of its checks reads a value in the page, keeps the first one and ends the attempt with it.
"""

from collections.abc import Iterable
from typing import Literal

from judge.evaluators.kinds.probe import ProbeCheck, expressions_of, expressions_read
from judge.records.checks import Check
from judge.trajectory.record import Attempt

# `exact`: a reward of 1 is a success. `positive`: any above 0.
SuccessRule = Literal["exact", "positive"]
# What counts as above 0, because a check's `min` counts as reached.
LEAST = 1e-9


def reward_of(attempt: Attempt) -> float | None:
    """The first reward that the judge read in the page; `None` if the episode never ended."""
    check = _check_of(attempt.task.checks)
    if check is None:
        return None
    at, count = expressions_of(attempt.task.checks).index(check.expression), len(expressions_read(attempt.task))
    values = (step.probes[at].value for step in attempt.observations if len(step.probes) == count)
    numbers = (float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return next(numbers, None)


def success_rule(checks: Iterable[Check]) -> SuccessRule | None:
    """The rule by which a task's checks decide on its reward; `None` for a task without one."""
    check = _check_of(checks)
    if check is None:
        return None
    return "exact" if check.min is None else "positive"


def _check_of(checks: Iterable[Check]) -> ProbeCheck | None:
    """The check of the reward; its condition is one of the two rules."""
    probes = (each for each in checks if isinstance(each, ProbeCheck) and each.keep == "first" and each.ends)
    return next((each for each in probes if (each.expected, each.min, each.max) in _CONDITIONS), None)


_CONDITIONS = ((1, None, None), (None, LEAST, None))
