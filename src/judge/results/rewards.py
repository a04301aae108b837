"""Rewards that pages give, for which rows and submissions have columns.

A task has a reward if one of its checks reads a value in the page, keeps the first one and ends the attempt with it.
"""

from collections.abc import Iterable

from judge.records.checks import Check, KindCheck, SuccessRule, expressions_of
from judge.records.tasks import expressions_read
from judge.trajectory.record import Attempt


def reward_of(attempt: Attempt) -> float | None:
    """The first reward that the judge read in the page; `None` if the episode never ended."""
    check = _check_of(attempt.task.checks)
    if check is None or check.read_in_page is None:
        return None
    at, count = expressions_of(attempt.task.checks).index(check.read_in_page), len(expressions_read(attempt.task))
    values = (step.probes[at].value for step in attempt.observations if len(step.probes) == count)
    numbers = (float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return next(numbers, None)


def success_rule(checks: Iterable[Check]) -> SuccessRule | None:
    """The rule by which a task's checks decide on its reward; `None` for a task without one."""
    check = _check_of(checks)
    return None if check is None else check.success_rule


def _check_of(checks: Iterable[Check]) -> KindCheck | None:
    """The check of the reward."""
    return next((each for each in checks if isinstance(each, KindCheck) and each.success_rule is not None), None)
