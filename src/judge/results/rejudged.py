"""Updates a run's results with later verdicts that count, so that verdict files and results agree.

Those are the verdicts of the run's judge, and another method's without a model if `truth` prefers them.
Verdicts of other judges are stored under `verdicts/` and do not affect the results.
"""

from collections.abc import Mapping
from typing import Any

from judge.config import RunConfig
from judge.evaluators.watched import evaluate_watched
from judge.judges.rescoring import verdict_on_file
from judge.records.verdicts import CHECKS, JUDGE, Verdict
from judge.results.entries import read_entries
from judge.results.part import with_totals
from judge.results.progress import progress_of
from judge.results.recomputed import Recomputation, deciding_config, is_of_checks
from judge.results.run_record import excluded_by_scenario, judge_id_of, made_with, provenance, tasks_of, totals_of
from judge.results.submission import TaskSummary, build_submission
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, read_attempt
from judge.trajectory.record import ATTACK, POLICIES, SELF_RECORDED
from shared.errors import ConfigError, TrajectoryError, WabeError
from shared.fields import as_mapping
from shared.files import read_json


def take_over(store: RunStore) -> tuple[str, ...]:
    """Update `result.json`, `results.json` and `run.json` with the verdicts that count.

    Returns the ids of the tasks whose entry changed. A run without a submission is unfinished and is not changed,
    because `--resume` reads the verdicts. A self-recorded run gets its submission here.
    Raises `ConfigError` if something cannot be read or written.
    """
    record = store.read_run() or {}
    path = store.folder / "results.json"
    if not isinstance(record.get("judge_id"), str):
        return ()
    if not path.is_file() and not record.get(SELF_RECORDED):
        return ()
    try:
        before = read_json(path) if path.is_file() else _unjudged(record)
        result = before["results"][0]
        published = {each.key: each.value for each in read_entries(result["detail"]["tasks"])}
        tasks = tasks_of(store, record)
        deciding = {task.key: _deciding(task, record) for task in tasks}
        # A later epoch's judge is recorded only if it differs from the first epoch's.
        usual = {task.key: record["judge_id"] if task.epoch == 1 else deciding[task.name] for task in tasks}
        record = {
            **record,
            "judge_ids": {key: deciding_id for key, deciding_id in deciding.items() if deciding_id != usual[key]},
        }
        recomputation = Recomputation(deciding_config(record))
        summaries = [_judged(task, deciding[task.key], recomputation) for task in tasks]
        # Compare with the submission, which is written last, so that the next call completes an interrupted one.
        entries = {each.key: each.value for each in read_entries(one.entry for one in summaries)}
        changed = tuple(key for key, entry in entries.items() if _differs(published.get(key), entry))
        if changed:
            submission = build_submission(
                role=result["winner"],
                participant_ids=before["participants"],
                results=summaries,
                provenance={**result["detail"]["provenance"], **made_with(summaries)},
                excluded=excluded_by_scenario(record),
            )
            store.write_run({**record, **totals_of(summaries)})
            store.write_submission(with_totals(submission, store))
    except (OSError, ValueError, KeyError, IndexError, TypeError, WabeError) as error:
        raise ConfigError(
            f"{path}: the verdicts are kept, but the results could not be updated: {error}",
            remedy="`wabe verify` reports what does not match",
        ) from None
    return changed


def _unjudged(record: Mapping[str, Any]) -> dict[str, Any]:
    """A substitute for the submission of a self-recorded run that has none yet."""
    role = next(iter(record["participants"]))
    known = provenance(config=RunConfig(), results=(), run_id=record["run_id"])
    detail = {"tasks": [], "provenance": known | {"config_checksum": record["config_checksum"]}}
    return {"participants": {}, "results": [{"winner": role, "detail": detail}]}


def _differs(published: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> bool:
    """Whether a task's outcome or deciding verdict has changed; older submissions do not name the verdict."""
    keys = ("verdict", "decided_by", "reason", *(key for key in (POLICIES, ATTACK) if key in entry))
    return published is None or any(published.get(key, entry[key]) != entry[key] for key in keys)


def _deciding(task: TaskStore, record: Mapping[str, Any]) -> str:
    """The id of the judge whose verdict counts: the newest of another method without a model if `truth` prefers it."""
    own = judge_id_of(record, task.name, task.epoch)
    truth = as_mapping(record.get("config")).get("truth", CHECKS)
    has_checks = is_of_checks(own) and bool(read_attempt(task.folder).task.checks)
    if truth == JUDGE or (truth == CHECKS and has_checks):
        return own
    stored = sorted(task.folder.glob("verdicts/*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    others = (path.stem for path in stored if not is_of_checks(path.stem))
    return next((name for name in others if _is_truth(task.read_verdict(name), truth)), own)


def _is_truth(verdict: Verdict | None, truth: str) -> bool:
    judge = verdict.judge if verdict else None
    return judge is not None and judge.is_ground_truth and truth in (CHECKS, judge.method)


def _judged(task: TaskStore, judge_id: str, recomputation: Recomputation) -> TaskSummary:
    """A task's summary with the current verdict of its judge, written to disk before this returns.

    A verdict that the recording contradicts is replaced; policies and goals of attacks are decided again.
    """
    # Compares digests first: files that were modified must not be rewritten with a matching digest.
    trajectory = load_trajectory(task.folder)
    attempt = trajectory.attempt
    if trajectory.is_foreign:
        raise TrajectoryError("not a result of a wabe run", location=str(task.folder / "result.json"))
    verdict = None if attempt.is_aborted else verdict_on_file(task, judge_id, trajectory)
    if verdict is not None:
        before, verdict = verdict, recomputation.corrected(judge_id, verdict, trajectory)
        if verdict is not before:
            task.write_verdict(judge_id, verdict)
    counted = attempt.verdict
    changes: dict[str, Any] = {}
    if verdict is not None and (counted is None or _repeated_part(verdict) != _repeated_part(counted)):
        changes |= {"verdict": verdict, "progress": progress_of(verdict)}
    changes |= {key: each for key, each in evaluate_watched(trajectory).items() if each != getattr(attempt, key)}
    if changes:
        attempt = attempt.model_copy(update=changes)
        task.write_result(attempt.to_json())
    return TaskSummary.of(attempt, judge_id)


def _repeated_part(verdict: Verdict) -> tuple[object, ...]:
    """The part of a verdict that `result.json` repeats and `wabe verify` compares."""
    method = verdict.judge.method if verdict.judge else ""
    return verdict.outcome, method, verdict.reason, verdict.key_points, verdict.image_judge_record
