"""The earlier attempts at a task played again: those that were aborted, replayed or interrupted.

They count for policies only. An attempt stopped with the judge's process has steps and no result.
"""

from pathlib import Path

from judge.records.tasks import Task
from judge.trajectory.files import load_trajectory, read_steps, with_digests
from judge.trajectory.record import CURRENT_RULES, Attempt, Trajectory
from shared.errors import TrajectoryError
from shared.files import sha256_json

_FOLDER = "attempts"


def earlier_digests(folder: Path) -> tuple[str, ...]:
    """The digest of the evidence of each earlier attempt, in order. Raises `TrajectoryError` or `OSError`."""
    return tuple(str(_load(each, None).sha256) for each in _folders(folder))


def earlier_attempts(folder: Path, task: Task) -> list[Trajectory]:
    """The earlier attempts in order, as attempts at `task`. Raises `TrajectoryError` or `OSError`."""
    return [_load(each, task) for each in _folders(folder)]


def _folders(folder: Path) -> list[Path]:
    return sorted((folder / _FOLDER).glob("*/"))


def _load(folder: Path, task: Task | None) -> Trajectory:
    trajectory = load_trajectory(folder) if (folder / "result.json").is_file() else _interrupted(folder)
    return trajectory if task is None else trajectory.model_copy(update={"judged_as": task})


def _interrupted(folder: Path) -> Trajectory:
    steps = read_steps(folder / "steps.jsonl")
    recorded = [step.model_dump(mode="json") for step in steps]
    if with_digests(folder, {"steps": recorded})["steps"] != recorded:
        raise TrajectoryError(
            "a screenshot or snapshot is not the file that was recorded (SHA-256)", location=str(folder)
        )
    attempt = Attempt(
        # Replaced by the played task.
        task=Task(task_id="interrupted", website="", task=""),
        steps=steps,
        stop_reason="cancelled",
        max_steps=max(1, len(steps)),
        started_at=0,
        ended_at=0,
        network_missing="the attempt was interrupted",
        rules_version=CURRENT_RULES,
    )
    return Trajectory(
        folder=folder,
        attempt=attempt,
        sha256=sha256_json(recorded),
        is_digested=True,
        network_missing=attempt.network_missing,
    )
