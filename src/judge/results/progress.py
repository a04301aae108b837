"""Partial credit: how much of an attempt's task is done. It describes, and never replaces the verdict. Pure.

Progress is the share of the checks that passed, or of the key points met, by weight. The score is the same for
verdicts on key points only.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from judge.records.assertions import assertions_in
from judge.records.verdicts import Verdict
from judge.results.statistics import bootstrap, wilson
from judge.trajectory.record import Attempt
from shared.fields import as_mapping, as_mappings

# What judges say of a point that is met (`webjudge_keypoints`, `rubric`).
_MET = ("success", "met")


def progress_of(verdict: Verdict | None) -> float | None:
    """The share of the checks that passed, or of the key points met, by weight, between 0 and 1.

    Rounded to four places. `None` for a verdict not reached point by point, or not reached at all.
    """
    if verdict is None or verdict.outcome == "unscored":
        return None
    if checks := assertions_in(verdict):
        return round(sum(each.passed is True for each in checks) / len(checks), 4)
    return score_of(verdict)


def score_of(verdict: Verdict | None) -> float | None:
    """The share of the key points met, by weight, between 0 and 1; `None` for all other verdicts."""
    if verdict is None or verdict.outcome == "unscored":
        return None
    rubric = as_mapping(verdict.evidence.get("rubric"))
    share = rubric.get("share")
    if isinstance(share, float):
        # Another tool's verifier gives parts of a criterion's points.
        return round(share, 4)
    weights = {each.get("id"): _weight(each) for each in as_mappings(rubric.get("criteria"))}
    marks: list[tuple[Any, float]] = [
        (each.get("verdict"), weights.get(each.get("criterion"), 1.0)) for each in as_mappings(rubric.get("marks"))
    ]
    marks = marks or [(each.get("status"), _weight(each)) for each in as_mappings(verdict.evidence.get("key_points"))]
    if not marks:
        return None
    # A point without a mark is not met.
    unmarked = max(0, len(verdict.key_points) - len(marks))
    total = math.fsum(weight for _, weight in marks) + unmarked
    return round(math.fsum(weight for mark, weight in marks if mark in _MET) / total, 4)


def _weight(point: Mapping[str, Any]) -> float:
    value = point.get("weight", 1.0)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value > 0 else 1.0


def with_verdict(attempt: Attempt, verdict: Verdict) -> Attempt:
    """The attempt with its verdict, and with what the verdict's evidence says of its progress."""
    return attempt.model_copy(update={"verdict": verdict, "progress": progress_of(verdict)})


def mean_score(scores: Iterable[tuple[str, float | None]]) -> dict[str, Any]:
    """The mean score of tasks with its 95 % interval, as in a submission, from the task and score of every attempt.

    A task counts once: its score is the mean over its attempts. Empty without any.
    """
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for task, score in scores:
        if score is not None:
            by_task[task].append(score)
    means = [math.fsum(values) / len(values) for values in by_task.values()]
    if not means:
        return {}
    # A score varies at most as much as a success, so Wilson's interval covers the mean of equal scores.
    low, high = bootstrap(means) or wilson(math.fsum(means), len(means))
    return {
        "score": round(math.fsum(means) / len(means), 4),
        "score_interval_95": [round(low, 4), round(high, 4)],
        "score_tasks": len(means),
    }


def mean_progress(values: Iterable[float | None]) -> tuple[float, int] | None:
    """The mean in percent and the number of attempts that have one; `None` without any."""
    known = [value for value in values if value is not None]
    return (100 * math.fsum(known) / len(known), len(known)) if known else None
