"""What is decided of an attempt beside its checks: its policies, and the attack that it was played under. Pure."""

from collections.abc import Mapping
from typing import Any

from judge.evaluators.attacks import evaluate_attack
from judge.evaluators.policies import evaluate_policies
from judge.trajectory.record import ATTACK, POLICIES, Trajectory


def evaluate_watched(trajectory: Trajectory) -> Mapping[str, Any]:
    """What became of the policies and of the attack, by field of `Attempt`."""
    return {POLICIES: evaluate_policies(trajectory), ATTACK: evaluate_attack(trajectory)}
