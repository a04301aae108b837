"""`run.json`: how a run was set up and how it ended."""

import time
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from judge.config import RunConfig
from judge.provenance import config_checksum, package_versions, task_set_checksum
from judge.results import TaskSummary
from judge.store import RunStore
from shared.errors import ConfigError
from shared.model_limits import Spending
from shared.models import JudgeInfo, Task, TokenUsage


def begin_run(store: RunStore, *, config: RunConfig, tasks: Sequence[Task], role: str, url: str, judge_id: str) -> None:
    """Write what is known before the first task; a resumed run keeps when it was first begun.

    Raises `ConfigError` when it cannot be written.
    """
    before = store.read_run() or {}
    now = time.time()
    record = {
        "schema_version": "wabe-run-1",
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
        "judge_usage": before.get("judge_usage"),
        "packages": package_versions(),
    }
    try:
        store.write_run(record)
    except OSError as error:
        raise ConfigError(
            f"cannot write {store.folder}: {error.strerror or error}", remedy="free some space or choose another folder"
        ) from None


def end_run(
    store: RunStore,
    state: str,
    results: Sequence[TaskSummary] = (),
    judge: JudgeInfo | None = None,
    spending: Spending | None = None,
) -> None:
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
    if spending is not None:
        record["judge_usage"] = {"token_usage": spending.usage.model_dump(), "cost_usd": spending.cost_usd}
    store.write_run(record)


def spending_before(store: RunStore) -> Spending:
    """What the judge model used before the run was interrupted: a budget is one for the whole run."""
    stored: Any = (store.read_run() or {}).get("judge_usage")
    try:
        usage, cost_usd = TokenUsage.model_validate(stored["token_usage"]), stored["cost_usd"]
    except (TypeError, KeyError, ValidationError):
        return Spending()
    return Spending(usage, float(cost_usd) if isinstance(cost_usd, int | float) else 0.0)


def outcomes_of(results: Sequence[TaskSummary]) -> dict[str, int]:
    """How many tasks count as what."""
    outcomes = [result.outcome for result in results]
    return {name: outcomes.count(name) for name in ("success", "failure", "unscored", "aborted")}


def environment_of(results: Sequence[TaskSummary]) -> dict[str, str]:
    """The browser and server versions that the episodes report."""
    return next((dict(result.versions) for result in results if result.versions), {})


def judge_of(results: Sequence[TaskSummary]) -> JudgeInfo | None:
    """Who judged, as the verdicts tell it."""
    return next((result.judge for result in results if result.judge), None)
