"""Ends of an episode that settle its score without asking any judge (contract, "Outcomes, told apart")."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from judge.sites import OFF_SITE
from shared.models import Step, StopReason, Verdict

WHY_ZERO: Mapping[StopReason, str] = MappingProxyType(
    {
        "max_steps": "over the step budget, no answer",
        "task_timeout": "over the time budget, no answer",
        "participant_error": "the participant failed",
        "unreadable_replies": "the participant kept sending replies that could not be read",
    }
)


def verdict_without_judge(
    stop_reason: StopReason | None, error: str | None, steps: Iterable[Step], off_site: str
) -> Verdict | None:
    """The failure that follows from how the episode ended, or `None` when a judge has to say."""
    why = WHY_ZERO.get(stop_reason) if stop_reason else None
    if why is not None:
        return Verdict(outcome="failure", reason=f"{why}: {error}" if error else why)
    if off_site == "fail" and any(OFF_SITE in step.flags for step in steps):
        return Verdict(outcome="failure", reason="off-site play: a page outside the task's website was visited")
    return None
