"""Compares judge methods with ground truth: verdicts on the same attempts, and where they differ.

Ground truth is a verdict reached without a model: by a task's checks, or by another method that is code alone.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.judges.rescoring import WHY_ZERO
from judge.records.assertions import Assertion, assertions_in
from judge.records.verdicts import CHECKS, Verdict, VerdictOutcome, method_of
from judge.results.agreement import LabelledVerdict, facts_of, pair_of, required_verdicts
from judge.scenario.importers import IMPORTERS
from judge.trajectory.files import read_result
from shared.errors import ConfigError, TrajectoryError
from shared.fields import as_mappings
from shared.models import Record
from shared.text import clip

_MAX_FAILED = 5
_MAX_TEXT_CHARS = 2_000
_SCORING = "--model offline"


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


class JudgeComparison(Record):
    """A judge method's verdicts as pairs with ground truth, and the attempts on which the two differ."""

    pairs: tuple[LabelledVerdict, ...]
    differences: tuple[JudgeDisagreement, ...]


def measure(results: Path, truth: str, *, run: str, method: str | None = None) -> dict[str, JudgeComparison]:
    """By judge id, each judge's verdicts against ground truth. Raises `ConfigError` if no attempt has both.

    `truth` is `checks`, a source of tasks (the checks of its tasks), or another method without a model.

    Attempts whose stop reason settled the score, such as those over budget, were not judged and are left out.
    """
    pairs: dict[str, list[LabelledVerdict]] = {}
    differences: dict[str, list[JudgeDisagreement]] = {}
    has_truth = False
    importer = IMPORTERS.find(truth)
    kind = importer.check_kind if importer else None
    own = CHECKS if kind else truth
    for folder, result, verdicts in _tasks(results):
        truth_id = newest(verdicts, own)
        kinds = {check.get("kind") for check in as_mappings(result.get("checks"))}
        if truth_id is None or (kind and kind not in kinds) or not _is_ground_truth(truth_id, verdicts[truth_id]):
            continue
        has_truth = True
        known, settled = verdicts[truth_id], result.get("stop_reason") in WHY_ZERO
        for judge_id, verdict in verdicts.items():
            if method_of(judge_id) == own or method not in (None, judge_id, method_of(judge_id)):
                continue
            # Undecided truth counts as a missing label: there is nothing to compare with.
            label = "" if known.outcome == "unscored" else known.outcome
            pair = pair_of(label, verdict.outcome, facts_of(folder), str(folder))
            changes = {"task_id": folder.name, **({"excluded": "settled"} if settled else {})}
            pairs.setdefault(judge_id, []).append(pair.model_copy(update=changes))
            disagreement = None if settled else difference(folder.name, truth_id, known, judge_id, verdict)
            differences.setdefault(judge_id, []).extend([disagreement] if disagreement else [])
    if not any(pair.excluded is None for judge_pairs in pairs.values() for pair in judge_pairs):
        what = f"no attempt has ground truth of {truth}" if not has_truth else "no attempt with ground truth was judged"
        scoring = f"--method {method or 'webjudge'}" if has_truth else _SCORING if own == CHECKS else f"--method {own}"
        raise ConfigError(f"{run}: {what}, so there is nothing to compare", remedy=f"run wabe score {run} {scoring}")
    return {
        judge_id: JudgeComparison(pairs=tuple(pairs[judge_id]), differences=tuple(differences[judge_id]))
        for judge_id in sorted(pairs)
    }


def differences_of(task_id: str, verdicts: Mapping[str, Verdict]) -> tuple[JudgeDisagreement, ...]:
    """The differences between the most trusted ground truth on an attempt and its other verdicts."""
    without_model = [judge_id for judge_id, verdict in verdicts.items() if _is_ground_truth(judge_id, verdict)]
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


def _is_ground_truth(judge_id: str, verdict: Verdict) -> bool:
    return method_of(judge_id) == CHECKS or (verdict.judge is not None and verdict.judge.is_ground_truth)


def _failed(verdict: Verdict) -> Iterator[Assertion]:
    for each in assertions_in(verdict):
        if each.passed is False:
            texts = {key: clip(getattr(each, key), _MAX_TEXT_CHARS) for key in ("description", "expected", "found")}
            yield each.model_copy(update=texts)


def _tasks(results: Path) -> Iterator[tuple[Path, Mapping[str, Any], dict[str, Verdict]]]:
    """Each task's folder, its result, and its verdicts on that very attempt, oldest first."""
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        try:
            result = read_result(folder)
        except TrajectoryError:
            continue
        verdicts, current = required_verdicts(folder), result.get("trajectory_sha256")
        yield folder, result, {name: each for name, each in verdicts.items() if each.trajectory_sha256 == current}
