"""Virtual environments for programs that need other libraries than ours: made once, from locked requirements."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.paths import ROOT

_REQUIREMENTS = ROOT / "tests" / "interop"
# WebArena-Verified's is for users as well.
_OF_USERS = {"webarena": ROOT / "src" / "judge" / "plugins" / "webarena"}
_CACHE = ROOT / ".interop"
# What pip says when it gets no answer; anything else that goes wrong is our own fault.
_OFFLINE = ("connection broken by", "Could not fetch URL", "Temporary failure in name resolution", "ReadTimeoutError")


class IndexUnreachable(Exception):
    """The package index gives no answer. Carries what pip said last."""


def environment(name: str) -> Path:
    """The Python of the environment that `requirements-<name>.lock` describes.

    The first call makes it, which takes some seconds; a lock or an interpreter that changes makes another. Raises
    `IndexUnreachable`, or `CalledProcessError` when the installation fails for any other reason.
    """
    lock = _OF_USERS.get(name, _REQUIREMENTS) / f"requirements-{name}.lock"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode() + sys.executable.encode()).hexdigest()[:12]
    folder = _CACHE / f"{name}-{digest}"
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / f"{name}.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _make(name, folder, lock)
    return folder / "bin" / "python"


def _make(name: str, folder: Path, lock: Path) -> None:
    for old in _CACHE.glob(f"{name}-*/"):
        shutil.rmtree(old)
    # No virtual environment survives being moved: it is made in place, and counts when it is marked as done.
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--retries",
        "1",
        "--require-hashes",
        # The lock lists everything. Otherwise, older versions of pip look for newer ones of what has extras.
        "--no-deps",
        # Harbor's models run on older versions than Harbor does.
        *(["--ignore-requires-python"] if name == "harbor" else []),
        "-r",
        lock,
    ]
    completed = subprocess.run(
        install, check=False, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ""}
    )
    if completed.returncode:
        if any(words in completed.stderr for words in _OFFLINE):
            raise IndexUnreachable(completed.stderr.strip().splitlines()[-1])
        completed.check_returncode()
    (folder / "done").touch()


if __name__ == "__main__":
    print(environment(sys.argv[1]))
