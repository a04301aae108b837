"""Judging stored trajectories again: concurrent, resumable, one trajectory in memory per worker.

A verdict that this very judge has given before is kept, unless it was unscored. A folder that cannot be read is
reported and skipped.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from judge.judges.base import Judge
from judge.store import TaskStore
from judge.trajectory import Trajectory
from judge.trajectory_files import load_trajectory
from judge.without_judge import verdict_without_judge
from shared.errors import ConfigError, TrajectoryError
from shared.models import Record, Verdict

ScoreOutcome = Literal["success", "failure", "unscored", "aborted", "broken"]
_PARTS_OF_A_TRAJECTORY = ("trajectory", "snapshots", "verdicts", "attempts", "scores")
_MAX_DEPTH = 32


class Scored(Record):
    """What became of one folder. `kept`: the verdict was there already; `verdict` is missing without one."""

    folder: Path
    outcome: ScoreOutcome
    reason: str
    kept: bool = False
    verdict: Verdict | None = None


def find_trajectories(path: Path) -> tuple[Path, ...]:
    """The trajectory folders at and under `path`, at any depth, in name order; a run's are those of its tasks.

    A folder that neither is a trajectory nor holds one is listed as well, so that judging it reports it. A folder that
    links lead to again counts once. Raises `ConfigError` when there is none.
    """
    if not path.is_dir():
        raise ConfigError(f"{path}: no such folder", remedy="give a run, or a folder with trajectories in it")
    folders, _ = _search(path, {_identity(path)}, depth=0)
    if not folders:
        raise ConfigError(f"{path}: no trajectory in it", remedy="each trajectory is a folder with a result.json")
    return tuple(folders)


def _search(folder: Path, seen: set[tuple[int, int]], *, depth: int) -> tuple[list[Path], bool]:
    """What is listed at and under a folder, and whether a trajectory is among it; no folder of `seen` again."""
    if depth > _MAX_DEPTH:
        return [folder], False
    is_trajectory = os.path.lexists(folder / "result.json")
    parent = folder / "results" if not is_trajectory and (folder / "results").is_dir() else folder
    listed, found = [folder] * is_trajectory, is_trajectory
    # Links last: what is reached both ways is listed under its own name.
    for child in sorted(parent.iterdir(), key=lambda child: (child.is_symlink(), child)):
        if not child.is_dir() or child.name.startswith(".") or child.name in _PARTS_OF_A_TRAJECTORY:
            continue
        if (identity := _identity(child)) in seen:
            continue
        seen.add(identity)
        try:
            below, holds_one = _search(child, seen, depth=depth + 1)
        except OSError:
            below, holds_one = [], False
        found = found or holds_one
        if holds_one or not is_trajectory:
            listed += below if holds_one else [child]
    return listed, found


def _identity(folder: Path) -> tuple[int, int]:
    place = folder.stat()
    return place.st_dev, place.st_ino


async def score_all(
    folders: Iterable[Path],
    judge: Judge,
    *,
    max_parallel: int,
    off_site: str = "flag",
    again: bool = False,
    done: Callable[[Scored], None],
) -> None:
    """Judge every folder, at most `max_parallel` at once; `done` hears of each as it ends.

    `again` judges also what has a verdict already. The verdict is on disk before `done` is called.
    """
    todo = iter(folders)

    async def work() -> None:
        # Workers draw from one iterator: nothing of a trajectory is held before its turn or after it.
        for folder in todo:
            done(await score_one(folder, judge, off_site=off_site, again=again))

    async with asyncio.TaskGroup() as group:
        for _ in range(max_parallel):
            group.create_task(work())


async def score_one(folder: Path, judge: Judge, *, off_site: str = "flag", again: bool = False) -> Scored:
    """Judge one folder, or say why not."""
    store = TaskStore(folder)
    try:
        trajectory = load_trajectory(folder)
        _check_files(trajectory)
    except (TrajectoryError, OSError) as error:
        return Scored(folder=folder, outcome="broken", reason=str(error))
    if trajectory.is_aborted:
        reason = f"aborted, so not judged: {trajectory.error or trajectory.stop_reason or 'no cause recorded'}"
        return Scored(folder=folder, outcome="aborted", reason=reason)
    kept = store.read_verdict(judge.id)
    is_decided = kept is not None and kept.outcome != "unscored"
    if kept is not None and is_decided and not again:
        return Scored(folder=folder, outcome=kept.outcome, reason=kept.reason, kept=True, verdict=kept)
    verdict = verdict_without_judge(trajectory.stop_reason, trajectory.error, trajectory.steps, off_site)
    if verdict is None:
        verdict = await judge.judge(trajectory)
    else:
        verdict = verdict.model_copy(update={"judge": judge.info})
    try:
        # A judge model that fails today takes no verdict away that it gave before.
        if verdict.outcome != "unscored" or not is_decided:
            store.write_verdict(judge.id, verdict)
    except OSError as error:
        reason = f"{folder / 'verdicts'}: cannot be written: {error.strerror or error}"
        return Scored(folder=folder, outcome="broken", reason=reason)
    return Scored(folder=folder, outcome=verdict.outcome, reason=verdict.reason, verdict=verdict)


def _check_files(trajectory: Trajectory) -> None:
    """A missing image is a broken folder, to be told apart from a judge model that failed."""
    for path in trajectory.screenshots:
        if not path.is_file():
            raise TrajectoryError(f"{path}: no such file")
