"""MiniWoB++'s raw reward of an attempt, and the rule by which it is a success, for rows of results."""

from typing import Any

from judge.records.checks import expressions_of
from judge.scenario.miniwob.rewards import REWARD, success_rule
from judge.trajectory.record import Attempt

# Entries of earlier versions do not have them.
REWARD_KEYS = frozenset({"reward", "success_rule"})


def reward_of(attempt: Attempt) -> float | None:
    """The first raw reward that the judge read in the page; `None` if the episode never ended."""
    expressions = expressions_of(attempt.task.checks)
    if REWARD not in expressions:
        return None
    at = expressions.index(REWARD)
    read = (step.probes[at].value for step in attempt.observations if len(step.probes) == len(expressions))
    numbers = (float(value) for value in read if isinstance(value, int | float) and not isinstance(value, bool))
    return next(numbers, None)


def reward_keys(attempt: Attempt) -> dict[str, Any]:
    """The keys of a submission's entry; none for a task that is not one of MiniWoB++."""
    rule = success_rule(attempt.task.checks)
    return {} if rule is None else {"reward": reward_of(attempt), "success_rule": rule}
