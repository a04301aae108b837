"""Recorded folders of `tests/fixtures`, unpacked once in each process."""

import atexit
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from helpers.paths import ROOT


@cache
def unpacked(archive: str) -> Path:
    """The folder with what the archive of this name holds; nobody may write there."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with tarfile.open(ROOT / "tests" / "fixtures" / archive) as file:
        file.extractall(folder.name, filter="data")
    return Path(folder.name)


def recorded_run() -> Path:
    """The one run of `recorded_run`."""
    (run,) = (unpacked("recorded_run/runs.tar.xz") / "runs").iterdir()
    return run
