"""One writer per run folder, by a lock that the kernel releases when its process ends, however it ends."""

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from shared.errors import ConfigError

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)
_MAX_HOLDER_BYTES = 300


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` while the body runs. Raises `ConfigError` that names the process holding it.

    Where the file system has no locks (some mounted volumes) it warns and goes on without.
    """
    try:
        # Python opens files close-on-exec, so no browser or participant started meanwhile inherits the lock.
        stream = path.open("a+b", buffering=0)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror or error}", remedy="check who owns the folder, and the disk's space"
        ) from None
    with stream:
        try:
            _lock(stream.fileno())
        except BlockingIOError:
            stream.seek(0)
            holder = (stream.read(_MAX_HOLDER_BYTES) or b"").decode("utf-8", "replace").strip()
            raise ConfigError(
                f"{what} is being written by {holder or 'another process'}", remedy="wait until it ends, or stop it"
            ) from None
        except OSError as error:
            _log.warning(
                "%s: this file system has no locks (%s); nothing keeps a second process out", what, error.strerror
            )
        # A full disk takes the name from the message, not the lock.
        with contextlib.suppress(OSError):
            stream.truncate(0)
            stream.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


def _lock(handle: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file `path`. Nothing is written; where there are no locks, it is not known."""
    if sys.platform == "win32":
        return False
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
