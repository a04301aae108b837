"""Where verdicts on one attempt differ from ground truth.

Ground truth is a verdict reached without a model: by a task's checks, or by another method that is code alone.
"""

from collections.abc import Iterator, Mapping

from judge.records.assertions import Assertion, assertions_in
from judge.records.verdicts import CHECKS, Verdict, VerdictOutcome, method_of
from shared.models import Record
from shared.text import clip

_MAX_FAILED = 5
_MAX_TEXT_CHARS = 2_000


class JudgeDisagreement(Record):
    """An attempt on which a judge method differs from ground truth, with the reason of each."""

    task_id: str
    truth_id: str
    truth: VerdictOutcome
    truth_reason: str
    failed: tuple[Assertion, ...]
    judge_id: str
    judge: VerdictOutcome
    reason: str


def differences_of(task_id: str, verdicts: Mapping[str, Verdict]) -> tuple[JudgeDisagreement, ...]:
    """The differences between the most trusted ground truth on an attempt and its other verdicts."""
    without_model = [judge_id for judge_id, verdict in verdicts.items() if is_ground_truth(judge_id, verdict)]
    truth_id = newest(verdicts, CHECKS) or next(reversed(without_model), None)
    if truth_id is None:
        return ()
    others = ((judge_id, each) for judge_id, each in verdicts.items() if method_of(judge_id) != method_of(truth_id))
    disagreements = (difference(task_id, truth_id, verdicts[truth_id], judge_id, each) for judge_id, each in others)
    return tuple(filter(None, disagreements))


def difference(task_id: str, truth_id: str, truth: Verdict, judge_id: str, judge: Verdict) -> JudgeDisagreement | None:
    """The difference between two verdicts on one attempt; `None` if they agree or one of them is unscored."""
    is_same_attempt = truth.trajectory_sha256 == judge.trajectory_sha256
    if not is_same_attempt or "unscored" in (truth.outcome, judge.outcome) or truth.outcome == judge.outcome:
        return None
    return JudgeDisagreement(
        task_id=task_id,
        truth_id=truth_id,
        truth=truth.outcome,
        truth_reason=clip(truth.reason, _MAX_TEXT_CHARS),
        failed=tuple(_failed(truth))[:_MAX_FAILED],
        judge_id=judge_id,
        judge=judge.outcome,
        reason=clip(judge.reason, _MAX_TEXT_CHARS),
    )


def newest(verdicts: Mapping[str, Verdict], method: str) -> str | None:
    """The id of the last verdict of a method; `verdicts` are in the order in which they were written."""
    return next((judge_id for judge_id in reversed(list(verdicts)) if method_of(judge_id) == method), None)


def is_ground_truth(judge_id: str, verdict: Verdict) -> bool:
    """Whether it was reached without a model."""
    return method_of(judge_id) == CHECKS or (verdict.judge is not None and verdict.judge.is_ground_truth)


def _failed(verdict: Verdict) -> Iterator[Assertion]:
    for each in assertions_in(verdict):
        if each.passed is False:
            texts = {key: clip(getattr(each, key), _MAX_TEXT_CHARS) for key in ("description", "expected", "found")}
            yield each.model_copy(update=texts)
