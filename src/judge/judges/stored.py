"""Finds stored trajectories, and judges all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from judge.judges.base import Judge
from judge.judges.rescoring import Scored, is_unreached, judge_stored, with_last_probe
from judge.store.layout import TaskStore, results_folders
from judge.trajectory.files import is_trajectory
from shared.errors import ConfigError

# Not searched: `attempts`, for example, contains earlier attempts, which do not count.
_PARTS_OF_A_TRAJECTORY = ("trajectory", "snapshots", "final", "verdicts", "attempts", "scores")
# Deeper than any layout. Limited, because links can nest folders endlessly.
_MAX_DEPTH = 32


def find_trajectories(path: Path) -> tuple[Path, ...]:
    """The trajectory folders at and under `path`, at any depth, in name order; for a run, its tasks' folders.

    A folder that neither is nor contains a trajectory is listed as well, so that judging it reports the problem. A
    folder reached again through a link counts once. Raises `ConfigError` if there is no trajectory.
    """
    if not path.is_dir():
        raise ConfigError(f"{path}: no such folder", remedy="give a run, or a folder with trajectories in it")
    folders, _ = _search(path, {path.resolve()}, depth=0)
    if not folders:
        raise ConfigError(f"{path}: no trajectory in it", remedy="docs/own-browser.md lists the layouts that are read")
    return tuple(folders)


def _search(folder: Path, seen: set[Path], *, depth: int) -> tuple[list[Path], bool]:
    """The folders to list at and under a folder, and whether it contains a trajectory; skips `seen` folders."""
    if depth > _MAX_DEPTH:
        return [folder], False
    is_one = has_trajectories = is_trajectory(folder)
    folders = [folder] if is_one else []
    for child in _children(folder, () if is_one else results_folders(folder)):
        if not child.is_dir() or child.name.startswith(".") or child.name in _PARTS_OF_A_TRAJECTORY:
            continue
        if (real := child.resolve()) in seen:
            continue
        seen.add(real)
        try:
            below, holds_one = _search(child, seen, depth=depth + 1)
        except OSError:
            below, holds_one = [], False
        has_trajectories = has_trajectories or holds_one
        if holds_one:
            folders += below
        elif not is_one:
            folders.append(child)
    return folders, has_trajectories


def _children(folder: Path, results: Sequence[Path]) -> Iterator[Path]:
    """The entries of a folder, links last; of a run, the ones in its `results` folders."""
    for parent in results or [folder]:
        # Links last, so that a folder reached both directly and by a link is listed under its own name.
        yield from sorted(parent.iterdir(), key=lambda child: (child.is_symlink(), child))


async def score_all(
    folders: Iterable[Path],
    judge: Judge,
    *,
    max_parallel: int,
    off_site: str = "flag",
    again: bool = False,
    done: Callable[[Scored], None],
) -> None:
    """Judge every folder, at most `max_parallel` at once, and call `done` for each once its verdict is on disk.

    `again`: also judge those that already have a verdict.
    """

    async def score(folder: Path, is_last: bool) -> bool:
        scored = await judge_stored(TaskStore(folder), judge, off_site=off_site, again=again)
        if is_unreached(scored.verdict) and not is_last:
            return False
        done(scored)
        return True

    await with_last_probe(folders, score, judge, at_once=max_parallel)
