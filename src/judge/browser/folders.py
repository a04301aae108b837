"""The temporary folder of each browser, which its owner keeps locked: what a killed judge left is told by that.

A process that is killed cannot clean up. The kernel takes its locks away, so that the next judge to start knows whose
folders nobody owns any more. Process numbers would not do: they are used again, and differ between containers.
"""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from judge.browser import processes as process_tree

if sys.platform != "win32":
    import fcntl

_PREFIX = "wabe-browser-"
_LOCK = "owner.lock"
_MAX_FOLDER_CHARS = 61
_log = logging.getLogger(__name__)


class BrowserFolder:
    """A new folder below the temporary one, locked until `remove`.

    Its path has no symbolic links, because processes are told by it in command lines, and is short, because paths of
    sockets have a limit.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_base()))
        # Locked before it has its name: nobody ever sees the lock's file without its lock.
        unnamed = self.path / f"{_LOCK}.new"
        self._handle = os.open(unnamed, os.O_RDWR | os.O_CREAT)
        if sys.platform != "win32":
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def sweep() -> int:
    """End the browsers and remove the folders that killed judges left here. Returns how many folders there were."""
    if sys.platform == "win32":
        return 0
    swept = 0
    for folder in sorted(_base().glob(f"{_PREFIX}*")):
        # Another user's, or removed by its owner meanwhile: not ours to touch.
        with contextlib.suppress(OSError):
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                process_tree.kill_family(folder, frozenset())
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
            finally:
                os.close(handle)
    if swept:
        _log.warning("removed what %d browser(s) of a killed judge had left", swept)
    return swept


def _base() -> Path:
    base = Path(tempfile.gettempdir()).resolve()
    too_long = len(os.fsencode(base)) + len(f"/{_PREFIX}12345678") > _MAX_FOLDER_CHARS
    shorter = Path("/tmp").resolve()
    return shorter if too_long and shorter.is_dir() else base
