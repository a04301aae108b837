"""Waiting for a person to save a file that a command watches."""

from collections.abc import Awaitable, Callable
from pathlib import Path

# How often a watched file is checked: fast enough for a person, hardly any load for the machine.
_POLL_S = 0.3

FileStamp = tuple[int, int] | None


def signature(path: Path) -> FileStamp:
    """A value that changes when the file is saved; `None` while an editor replaces it."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


async def next_save(path: Path, before: FileStamp, sleep: Callable[[float], Awaitable[None]]) -> FileStamp:
    """Wait until the file differs from `before`."""
    while True:
        now = signature(path)
        if now is not None and now != before:
            return now
        await sleep(_POLL_S)
