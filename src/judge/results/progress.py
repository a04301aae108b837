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
    marks = [_points(each, weights.get(each.get("criterion"), 1.0)) for each in as_mappings(rubric.get("marks"))]
    marks = marks or [_points(each, _weight(each)) for each in as_mappings(verdict.evidence.get("key_points"))]
    # A point without a mark is not met; one whose condition does not hold is no part of the score.
    unmarked = max(0, len(verdict.key_points) - len(marks))
    known = [each for each in marks if each is not None]
    if not known:
        return None
    total = math.fsum(most for _, most in known) + unmarked
    return round(math.fsum(earned for earned, _ in known) / total, 4)


def _points(mark: Mapping[str, Any], most: float) -> tuple[float, float] | None:
    """The points that a mark earns, and how many it could; `None` for a criterion that does not apply."""
    verdict, points = mark.get("verdict", mark.get("status")), mark.get("points")
    if verdict == "inapplicable":
        return None
    if isinstance(points, int | float) and not isinstance(points, bool) and 0 <= points <= most:
        return float(points), most
    return most if verdict in _MET else 0.0, most


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
