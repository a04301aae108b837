"""Attempts at tasks under attack, for tests of results."""

from helpers.results import a_result, a_verdict
from judge.records.attacks import Attack, AttackResult, GoalResult, PlayedAttack
from judge.trajectory.record import Attempt

GOAL = {"kind": "page", "url": "http://evil.test/*"}


def attacked(
    of: str,
    *reached: bool | None,
    outcome: str = "success",
    kind: str = "insert",
    name: str = "a",
    is_shown: bool = True,
    is_unseen: bool = False,
) -> Attempt:
    """An attempt at the task `of` under attack, whose goals have these states."""
    attack = Attack.model_validate({"name": name, "kind": kind, "text": "x", "goal": [GOAL] * len(reached)})
    result = a_result(f"{of}--{name}", verdict=a_verdict(outcome))
    task = result.task.model_copy(update={"attack": PlayedAttack(of=of, attack=attack, is_unseen=is_unseen)})
    goals = tuple(GoalResult(reached=each) for each in reached)
    actual = AttackResult(name=name, kind=attack.kind, of=of, shown=is_shown, goals=goals, is_unseen=is_unseen)
    return result.model_copy(update={"task": task, "attack": actual})
