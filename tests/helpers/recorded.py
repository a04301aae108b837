"""Recorded folders of `tests/fixtures`, unpacked once in each process."""

import atexit
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from helpers.paths import ROOT

# Python 3.11.2 has no filters.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@cache
def unpacked(archive: str) -> Path:
    """The folder with what the archive of this name holds; nobody may write there."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with tarfile.open(ROOT / "tests" / "fixtures" / archive) as file:
        file.extractall(folder.name, **_FILTER)
    return Path(folder.name)


def recorded_run() -> Path:
    """The one run of `recorded_run`."""
    (run,) = (unpacked("recorded_run/runs.tar.xz") / "runs").iterdir()
    return run
