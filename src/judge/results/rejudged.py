"""Later verdicts of a run's own judge update the run's results, so that a verdict's file and the results agree.

Verdicts of other judges lie beside them under `verdicts/` and change nothing.
"""

from judge.judges.rescoring import verdict_on_file
from judge.results.run_record import judge_id_of, judge_of, outcomes_of
from judge.results.submission import TaskSummary, build_submission
from judge.store import OLDER_RUN_SCHEMAS, RunStore, TaskStore
from judge.trajectory.files import load_trajectory
from shared.errors import ConfigError, TrajectoryError, WabeError
from shared.files import read_json


def take_over(store: RunStore) -> tuple[str, ...]:
    """Update `result.json`, `results.json` and `run.json` with the verdicts of the run's own judge.

    Returns the ids of the tasks whose entry changed. A run without a submission is not finished and stays as it is:
    `--resume` reads the verdicts. A run of an older version is never rewritten.
    Raises `ConfigError` when something cannot be read or written.
    """
    record = store.read_run() or {}
    path = store.folder / "results.json"
    listed, is_older = record.get("task_ids"), record.get("schema_version") in OLDER_RUN_SCHEMAS
    if is_older or not isinstance(record.get("judge_id"), str) or not isinstance(listed, list) or not path.is_file():
        return ()
    try:
        before = read_json(path)
        result = before["results"][0]
        published = {entry["task_id"]: entry["verdict"] for entry in result["detail"]["tasks"]}
        summaries = [_judged(store.task(str(name)), judge_id_of(record, str(name))) for name in listed]
        # Compared with the submission, which is written last: the next call completes what a kill interrupted.
        changed = tuple(one.task.task_id for one in summaries if published.get(one.task.task_id) != one.outcome)
        if changed:
            judge, provenance = judge_of(summaries), result["detail"]["provenance"]
            if judge:
                provenance |= {"judge_code_checksum": judge.code_checksum, "prompt_checksum": judge.prompt_checksum}
            made = build_submission(
                role=result["winner"],
                participant_ids=before["participants"],
                results=summaries,
                judge=judge,
                provenance=provenance,
            )
            info = judge.model_dump(mode="json") if judge else None
            store.write_run({**record, "outcomes": outcomes_of(summaries), "judge": info})
            store.write_submission(made)
    except (OSError, ValueError, KeyError, IndexError, TypeError, WabeError) as error:
        raise ConfigError(
            f"{path}: the verdicts are kept, but the results could not be updated: {error}",
            remedy="`wabe verify` reports what does not match",
        ) from None
    return changed


def _judged(task: TaskStore, judge_id: str) -> TaskSummary:
    """A task's summary with the current verdict of its own judge, which is on disk before this returns."""
    # Compares digests first: files that were changed since must not be written again with a digest that fits.
    trajectory = load_trajectory(task.folder)
    attempt = trajectory.attempt
    if attempt is None or trajectory.is_foreign:
        raise TrajectoryError(f"{task.folder / 'result.json'}: not a result of a wabe run")
    verdict = None if attempt.is_aborted else verdict_on_file(task, judge_id, trajectory)
    if verdict is not None and verdict.outcome != attempt.outcome:
        attempt = attempt.model_copy(update={"verdict": verdict})
        task.write_result(attempt.to_json())
    return TaskSummary.of(attempt)
