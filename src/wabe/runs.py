"""A run as tables: one row per task and epoch, and one per step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.store import run_of
from judge.trajectory.files import read_result
from shared.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """A run's records. Rows are plain dictionaries with the same keys, so `pandas.DataFrame(run.tasks)` works."""

    run_id: str
    info: dict[str, Any]
    tasks: list[dict[str, Any]]
    steps: list[dict[str, Any]]


def load_run(folder: Path | str) -> Run:
    """Read a run's folder (`.output/runs/<run_id>`). Tasks that have not ended yet have no row.

    Times are in seconds; `success` is `None` for a task that is unscored or aborted. Raises `ConfigError` if the
    folder is not a run, `TrajectoryError` for a damaged result.
    """
    path = Path(folder).resolve()
    store = run_of(path)
    info = store.read_run() if store else None
    if store is None or info is None:
        raise ConfigError(f"{folder} is not a run", remedy="give a folder .output/runs/<run_id> with a run.json")
    tasks, steps = [], []
    for task in store.tasks():
        if not (task.folder / "result.json").is_file():
            continue
        result = read_result(task.folder)
        tasks.append(_task_row(result))
        steps += [_step_row(result, step) for step in result.get("steps") or ()]
    return Run(run_id=store.run_id, info=info, tasks=tasks, steps=steps)


def _task_row(result: dict[str, Any]) -> dict[str, Any]:
    verdict, times = result.get("verdict"), result.get("times") or {}
    return {
        **{key: result.get(key) for key in ("task_id", "task", "website", "level", "reference_length")},
        "epoch": result.get("epoch", 1),
        "verdict": verdict,
        "success": {"success": True, "failure": False}.get(str(verdict)),
        "steps_taken": len(result.get("steps") or ()),
        **{key: result.get(key) for key in ("max_steps", "stop_reason", "error", "blame", "attempt")},
        "answer": result.get("agent_final_answer"),
        "cost_usd": result.get("cost_usd"),
        "duration_s": times.get("duration_s"),
        "judge_s": times.get("judge_s"),
        "trajectory_sha256": result.get("trajectory_sha256"),
    }


def _step_row(result: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    action, outcome, timings = (step.get(key) or {} for key in ("action", "outcome", "timings"))
    return {
        "task_id": result["task_id"],
        "epoch": result.get("epoch", 1),
        **{key: step.get(key) for key in ("index", "url", "title", "screenshot", "snapshot", "feedback")},
        **{key: action.get(key) for key in ("thought", "tool", "params")},
        "action_line": outcome.get("line"),
        "ok": outcome.get("ok"),
        **{key: timings.get(key) for key in ("observe_s", "reply_s", "act_s")},
    }
