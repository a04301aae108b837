"""What a run's own judge says later goes into the run's results: a verdict's file and the results must not differ.

Other judges' verdicts lie beside it under `verdicts/` and change nothing.
"""

from collections.abc import Mapping
from typing import Any

from judge.files import read_json
from judge.judges.rescoring import verdict_on_file
from judge.results.run_record import judge_id_of, judge_of, outcomes_of
from judge.results.submission import TaskSummary, build_submission
from judge.store import RunStore, TaskStore
from judge.trajectory.result import TaskResult
from judge.trajectory.schemas import OLDER_RUN_SCHEMAS
from shared.errors import ConfigError, WabeError


def take_over(store: RunStore) -> tuple[str, ...]:
    """Bring `result.json`, `results.json` and `run.json` up to the verdicts of the run's own judge.

    Returns the ids of the tasks whose entry changed. A run without a submission is not finished and is left as it is:
    `--resume` reads the verdicts. A run of an older version is never rewritten.
    Raises `ConfigError` when something cannot be read or written.
    """
    record = store.read_run() or {}
    path = store.folder / "results.json"
    judge_id, listed = record.get("judge_id"), record.get("task_ids")
    is_older = record.get("schema_version") in OLDER_RUN_SCHEMAS
    if is_older or not isinstance(judge_id, str) or not isinstance(listed, list) or not path.is_file():
        return ()
    try:
        submission = read_json(path)
        told = {entry["task_id"]: entry["verdict"] for entry in submission["results"][0]["detail"]["tasks"]}
        summaries = [_judged(store.task(str(name)), judge_id_of(record, str(name))) for name in listed]
        # Told by the submission, which is written last: a kill in between is made good by the next call.
        changed = tuple(one.task.task_id for one in summaries if told.get(one.task.task_id) != one.outcome)
        if changed:
            _write(store, record, submission, summaries)
    except (OSError, ValueError, KeyError, IndexError, TypeError, WabeError) as error:
        raise ConfigError(
            f"{path}: the verdicts are kept, the results could not be brought up to them: {error}",
            remedy="`wabe verify` says what does not match",
        ) from None
    return changed


def _judged(task: TaskStore, judge_id: str) -> TaskSummary:
    """A task's result with what its own judge says now, on disk before it is returned."""
    path = task.folder / "result.json"
    # First of all: what was changed since it was recorded must not be written again with a digest that fits.
    trajectory = task.trajectory()
    result = TaskResult.from_json(read_json(path), source=str(path))
    verdict = None if result.is_aborted else verdict_on_file(task, judge_id, trajectory)
    if verdict is not None and verdict.outcome != result.outcome:
        result = result.model_copy(update={"verdict": verdict})
        task.write_result(result.to_json())
    return TaskSummary.of(result)


def _write(
    store: RunStore, record: Mapping[str, Any], submission: Mapping[str, Any], summaries: list[TaskSummary]
) -> None:
    judge, before = judge_of(summaries), submission["results"][0]
    checksums = {"judge_code_checksum": judge.code_checksum, "prompt_checksum": judge.prompt_checksum} if judge else {}
    made = build_submission(
        role=before["winner"],
        participant_ids=submission["participants"],
        results=summaries,
        judge=judge,
        provenance={**before["detail"]["provenance"], **checksums},
    )
    said = judge.model_dump(mode="json") if judge else None
    store.write_run({**record, "outcomes": outcomes_of(summaries), "judge": said})
    store.write_submission(made)
