"""The git commit of a folder."""

import subprocess
from pathlib import Path

_TIMEOUT_S = 10


def git_revision(folder: Path) -> str | None:
    """The commit that is checked out there, with `-dirty` if files were changed since; `None` outside a repository."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        # Git is not installed, or the folder is on a slow network.
        return None
    return done.stdout.strip()[:100] or None if done.returncode == 0 else None
