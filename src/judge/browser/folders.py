"""A temporary folder for each browser, and the removal of those that killed judges left behind."""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

from judge.browser.processes import kill_family

if sys.platform != "win32":
    import fcntl

_FOLDER_PREFIX = "wabe-browser-"
_LOCK = "owner.lock"
# A socket's path may have 108 characters, and browsers create theirs in folders below this one.
_MAX_FOLDER_CHARS = 61
_log = logging.getLogger(__name__)


class BrowserFolder:
    """A new temporary folder for one browser, locked until `remove`.

    A killed judge cannot clean up, but the kernel releases its locks, by which the next judge recognises abandoned
    folders. Process ids would not work: they are reused, and differ between containers.
    The path contains no symbolic links, because command lines are searched for it, and is short, because socket paths
    are limited.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=_folder_base()))
        # Locked before it is renamed, so that other judges never see the lock file without its lock.
        unnamed = self.path / f"{_LOCK}.new"
        self._handle = os.open(unnamed, os.O_RDWR | os.O_CREAT)
        if sys.platform != "win32":
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder and its contents."""
        # Before the lock is released, so that no other judge sweeps the folder meanwhile.
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def sweep() -> int:
    """End the browsers and remove the folders that killed judges left behind. Returns the number of folders."""
    if sys.platform == "win32":
        return 0
    swept = 0
    for folder in sorted(_folder_base().glob(f"{_FOLDER_PREFIX}*")):
        # Another user's folder, one still locked, or one that its owner has removed meanwhile: skip it.
        with contextlib.suppress(OSError):
            # No links: everyone may write to the temporary folder, and a link could point to any lock file.
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # First, because living processes would write more files.
                kill_family(folder)
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
            finally:
                os.close(handle)
    if swept:
        _log.warning("removed the files of %d browser(s) that a killed judge left", swept)
    return swept


def _folder_base() -> Path:
    base = Path(tempfile.gettempdir()).resolve()
    too_long = len(os.fsencode(base)) + len(f"/{_FOLDER_PREFIX}12345678") > _MAX_FOLDER_CHARS
    shorter = Path("/tmp").resolve()
    return shorter if too_long and shorter.is_dir() else base
