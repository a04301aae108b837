"""Compares judge methods with ground truth: verdicts on the same attempts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.judges.rescoring import WHY_ZERO
from judge.plugins.labels.agreement import facts_of, pair_of
from judge.records.verdicts import CHECKS, Verdict, method_of
from judge.results.agreement import LabelledVerdict, required_verdicts
from judge.results.ground_truth import JudgeDisagreement, difference, is_ground_truth, newest
from judge.scenario.importers import IMPORTERS
from judge.trajectory.files import read_result
from shared.errors import ConfigError, TrajectoryError
from shared.fields import as_mappings
from shared.models import Record

_SCORING = "--model offline"


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
        if truth_id is None or (kind and kind not in kinds) or not is_ground_truth(truth_id, verdicts[truth_id]):
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


def _tasks(results: Path) -> Iterator[tuple[Path, Mapping[str, Any], dict[str, Verdict]]]:
    """Each task's folder, its result, and its verdicts on that very attempt, oldest first."""
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        try:
            result = read_result(folder)
        except TrajectoryError:
            continue
        verdicts, current = required_verdicts(folder), result.get("trajectory_sha256")
        yield folder, result, {name: each for name, each in verdicts.items() if each.trajectory_sha256 == current}
