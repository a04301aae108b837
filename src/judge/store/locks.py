"""Locks of a run folder: one process judges it, and one runs it."""

import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from shared.errors import ConfigError
from shared.files import opened, write_errors

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

_MAX_HOLDER_BYTES = 300
_LOCK_POLL_S = 0.005


@contextlib.contextmanager
def locked(path: Path, what: str, *, wait_s: float = 0.05) -> Iterator[None]:
    """Hold the lock file `path` while the body runs. Raises `ConfigError` that names the process holding it, if that
    does not release it within `wait_s`.

    The kernel releases the lock when the process ends, however it ends. On a file system without locks (some mounted
    volumes) this logs a warning and continues without a lock.
    """
    with write_errors(f"cannot write {path}", "check who owns the folder, and the disk's space"):
        # Python opens files close-on-exec, so no browser or participant started meanwhile inherits the lock.
        stream = open(path, "a+b", buffering=0, opener=_open_no_link)  # noqa: SIM115
    with stream:
        try:
            _take_lock(stream.fileno(), wait_s)
        except BlockingIOError:
            stream.seek(0)
            holder = (stream.read(_MAX_HOLDER_BYTES) or b"").decode("utf-8", "replace").strip()
            raise ConfigError(
                f"{what} is being written by {holder or 'another process'}", remedy="wait until it ends, or stop it"
            ) from None
        except OSError as error:
            _log.warning(
                "%s: this file system has no locks (%s), so a second process could write here too", what, error.strerror
            )
        # On a full disk the message cannot name the holder, but the lock still holds.
        with contextlib.suppress(OSError):
            stream.truncate(0)
            stream.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


def _take_lock(file: int, wait_s: float) -> None:
    if sys.platform == "win32":
        return None
    for _ in range(round(wait_s / _LOCK_POLL_S) - 1):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A process that only checks whether the folder is in use (`is_locked`) holds the lock for an instant.
        time.sleep(_LOCK_POLL_S)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open_no_link(path: str, flags: int) -> int:
    """An opener that refuses links: the lock file is written, and a link could point to any of the user's files."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file."""
    if sys.platform == "win32":
        return False
    try:
        with opened(path) as stream:
            # Shared, so that two processes that only look do not take each other for the holder.
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        pass
    return False
