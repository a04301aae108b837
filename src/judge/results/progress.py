"""Partial credit: how much of an attempt's task is done. It describes, and never replaces the verdict. Pure."""

import math
from collections.abc import Iterable
from typing import Any

from judge.evaluators.base import assertions_in
from judge.records.verdicts import Verdict
from shared.fields import as_mapping, as_mappings

# What judges say of a point that is met (`webjudge_keypoints`, `rubric`).
_MET = ("success", "met")


def progress_of(verdict: Verdict | None) -> float | None:
    """The share of the checks that passed, or of the key points that are met, between 0 and 1.

    `None` for a verdict that was not reached point by point, or not reached at all.
    """
    if verdict is None or verdict.outcome == "unscored":
        return None
    if checks := assertions_in(verdict):
        return sum(each.passed is True for each in checks) / len(checks)
    rubric = as_mapping(verdict.evidence.get("rubric"))
    marks: list[Any] = [each.get("verdict") for each in as_mappings(rubric.get("marks"))]
    marks = marks or [each.get("status") for each in as_mappings(verdict.evidence.get("key_points"))]
    # A point without a mark is not met.
    total = max(len(marks), len(verdict.key_points))
    return sum(mark in _MET for mark in marks) / total if marks else None


def mean_progress(values: Iterable[float | None]) -> tuple[float, int] | None:
    """The mean in percent and the number of attempts that have one; `None` without any."""
    known = [value for value in values if value is not None]
    return (100 * math.fsum(known) / len(known), len(known)) if known else None
