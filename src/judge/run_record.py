"""`run.json`: how a run was set up and how it ended."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from judge.config import RunConfig
from judge.provenance import config_checksum, package_versions, task_set_checksum
from judge.results import TaskSummary
from judge.schemas import RUN_SCHEMA
from judge.store import RunStore
from shared.errors import ConfigError
from shared.models import JudgeInfo, Task


def begin_run(
    store: RunStore,
    *,
    config: RunConfig,
    tasks: Sequence[Task],
    role: str,
    url: str,
    judge_id: str,
    judge_ids: Mapping[str, str] | None = None,
) -> None:
    """Write what is known before the first task; a resumed run keeps when it was first begun.

    `judge_ids` names the judge of each task that another one decides than the run's, as checks do beside a judge model.
    Raises `ConfigError` when it cannot be written.
    """
    before = store.read_run() or {}
    now = time.time()
    record = {
        "schema_version": RUN_SCHEMA,
        "run_id": store.run_id,
        "state": "running",
        "started_at": before.get("started_at", now),
        "resumed_at": now if before else None,
        "ended_at": None,
        "participants": {role: url},
        "config": config.model_dump(mode="json"),
        "config_checksum": config_checksum(config),
        "task_ids": [task.task_id for task in tasks],
        "task_set_checksum": task_set_checksum(tasks),
        "judge_model": config.judge_model,
        "judge_id": judge_id,
        "judge_ids": dict(judge_ids or {}),
        "packages": package_versions(),
    }
    try:
        store.write_run(record)
    except OSError as error:
        raise ConfigError(
            f"cannot write {store.folder}: {error.strerror or error}", remedy="free some space or choose another folder"
        ) from None


def judge_id_of(record: Mapping[str, Any], task_id: str) -> str:
    """The id of the judge whose verdict on that task counts in the run of this `run.json`."""
    own = record.get("judge_ids")
    return str(own[task_id] if isinstance(own, Mapping) and task_id in own else record.get("judge_id"))


def end_run(store: RunStore, state: str, results: Sequence[TaskSummary] = (), judge: JudgeInfo | None = None) -> None:
    """Write how it ended: `completed`, `cancelled` or `failed`."""
    record: dict[str, Any] = store.read_run() or {"run_id": store.run_id}
    record |= {
        "state": state,
        # Not before it began, whatever happened to the machine's clock in between.
        "ended_at": max(time.time(), record.get("resumed_at") or record.get("started_at") or 0.0),
        "outcomes": outcomes_of(results),
        "environment": environment_of(results),
        "judge": judge.model_dump(mode="json") if judge else None,
    }
    store.write_run(record)


def outcomes_of(results: Sequence[TaskSummary]) -> dict[str, int]:
    """How many tasks count as what."""
    outcomes = [result.outcome for result in results]
    return {name: outcomes.count(name) for name in ("success", "failure", "unscored", "aborted")}


def environment_of(results: Sequence[TaskSummary]) -> dict[str, str]:
    """The browser and server versions that the episodes report."""
    return next((dict(result.versions) for result in results if result.versions), {})


def judge_of(results: Sequence[TaskSummary]) -> JudgeInfo | None:
    """Who judged, as the verdicts tell it; where checks decided some tasks and a model others, the model's judge."""
    judges = [result.judge for result in results if result.judge]
    return next((judge for judge in judges if judge.method != "checks"), judges[0] if judges else None)
