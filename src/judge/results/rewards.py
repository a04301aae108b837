"""MiniWoB++'s raw rewards, for which rows and submissions have columns.

In the core, although the plug-in makes these tasks: the columns do not depend on what is installed, and a run that was
recorded with the plug-in has the same rows without it.
"""

from collections.abc import Iterable
from typing import Literal

from judge.evaluators.kinds.probe import ProbeCheck, expressions_of, expressions_read
from judge.records.checks import Check
from judge.trajectory.record import Attempt

# `exact`: a raw reward of 1. `positive`: any above 0, which BrowserGym counts.
SuccessRule = Literal["exact", "positive"]
# The raw reward once the episode is over; `null` before.
REWARD = "window.WOB_DONE_GLOBAL ? window.WOB_RAW_REWARD_GLOBAL : null"


def reward_of(attempt: Attempt) -> float | None:
    """The first raw reward that the judge read in the page; `None` if the episode never ended."""
    expressions = expressions_of(attempt.task.checks)
    if REWARD not in expressions:
        return None
    at, count = expressions.index(REWARD), len(expressions_read(attempt.task))
    read = (step.probes[at].value for step in attempt.observations if len(step.probes) == count)
    numbers = (float(value) for value in read if isinstance(value, int | float) and not isinstance(value, bool))
    return next(numbers, None)


def success_rule(checks: Iterable[Check]) -> SuccessRule | None:
    """The rule by which a task's checks decide on the reward; `None` for other tasks than MiniWoB++'s."""
    for check in checks:
        if isinstance(check, ProbeCheck) and check.expression == REWARD:
            return "positive" if check.expected is None else "exact"
    return None
