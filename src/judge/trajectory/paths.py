"""The files and folders of trajectories: those that one names are inside its folder, and of bounded size."""

import os
import re
from pathlib import Path

from judge.records.files import is_reserved
from shared.errors import TrajectoryError
from shared.files import read_errors

MAX_IMAGE_BYTES = 20_000_000
# The task's text, for layouts that do not store it: `wabe score DIR --tasks FILE` writes it.
TASK_FILE = "task.json"
_NOT_IN_AN_ID = re.compile("[^A-Za-z0-9_-]+")


def inside(folder: Path, relative: str, *, source: Path | None = None, max_bytes: int = MAX_IMAGE_BYTES) -> Path:
    """A file of the trajectory that `source` (default: its `result.json`) names.

    Raises `TrajectoryError` if it is outside the folder (a result could name any file of the host), missing, or too
    large.
    """
    source, target = source or folder / "result.json", folder / relative
    is_outside = Path(relative).is_absolute() or ".." in Path(relative).parts
    with read_errors(f"{source}: {relative[:100]!r}", kind=TrajectoryError):
        if not is_outside and not target.is_file():
            raise TrajectoryError("no such file", location=str(folder / relative[:200]))
        # A link inside the folder may lead out of it.
        if is_outside or (_has_link(folder, relative) and not _is_really_in(folder, target)):
            raise TrajectoryError(f"{relative[:100]!r} points outside its folder", location=str(source))
        if target.stat().st_size > max_bytes:
            raise TrajectoryError(f"larger than {max_bytes} bytes", location=str(target))
    return target


def _has_link(folder: Path, relative: str) -> bool:
    """Whether the file or a folder on the way to it is a link; without one, it is where its name says."""
    name = Path(relative)
    # The last parent is the folder itself.
    return any((folder / part).is_symlink() for part in (name, *name.parents[:-1]))


def _is_really_in(folder: Path, target: Path) -> bool:
    return Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder))


def usable_id(name: str) -> str:
    """A valid task id made from a foreign one."""
    cleaned = _NOT_IN_AN_ID.sub("_", name)[:128] or "_"
    return f"_{cleaned}" if is_reserved(cleaned) else cleaned
