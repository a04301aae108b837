"""MiniWoB++'s raw reward of an attempt."""

from judge.records.checks import expressions_of
from judge.scenario.miniwob.rewards import REWARD
from judge.trajectory.record import Attempt


def reward_of(attempt: Attempt) -> float | None:
    """The first raw reward that the judge read in the page; `None` if the episode never ended."""
    expressions = expressions_of(attempt.task.checks)
    if REWARD not in expressions:
        return None
    at = expressions.index(REWARD)
    read = (step.probes[at].value for step in attempt.observations if len(step.probes) == len(expressions))
    numbers = (float(value) for value in read if isinstance(value, int | float) and not isinstance(value, bool))
    return next(numbers, None)
