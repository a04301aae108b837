"""Partial credit: how much of an attempt's task is done. It describes, and never replaces the verdict. Pure."""

import math
from collections.abc import Iterable
from typing import Any

from judge.evaluators.base import assertions_in
from judge.records.verdicts import Verdict
from judge.trajectory.record import Attempt
from shared.fields import as_mapping, as_mappings

# What judges say of a point that is met (`webjudge_keypoints`, `rubric`).
_MET = ("success", "met")


def progress_of(verdict: Verdict | None) -> float | None:
    """The share of the checks that passed, or of the key points that are met, between 0 and 1.

    Rounded to four places. `None` for a verdict that was not reached point by point, or not reached at all.
    """
    if verdict is None or verdict.outcome == "unscored":
        return None
    if checks := assertions_in(verdict):
        return round(sum(each.passed is True for each in checks) / len(checks), 4)
    rubric = as_mapping(verdict.evidence.get("rubric"))
    marks: list[Any] = [each.get("verdict") for each in as_mappings(rubric.get("marks"))]
    marks = marks or [each.get("status") for each in as_mappings(verdict.evidence.get("key_points"))]
    # A point without a mark is not met.
    total = max(len(marks), len(verdict.key_points))
    return round(sum(mark in _MET for mark in marks) / total, 4) if marks else None


def with_verdict(attempt: Attempt, verdict: Verdict) -> Attempt:
    """The attempt with its verdict, and with what the verdict's evidence says of its progress."""
    return attempt.model_copy(update={"verdict": verdict, "progress": progress_of(verdict)})


def progress_in(value: object) -> float | None:
    """What an entry of a submission, from any file, says of it."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def mean_progress(values: Iterable[float | None]) -> tuple[float, int] | None:
    """The mean in percent and the number of attempts that have one; `None` without any."""
    known = [value for value in values if value is not None]
    return (100 * math.fsum(known) / len(known), len(known)) if known else None
