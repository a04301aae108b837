"""What becomes of processes whose parent has ended.

A killed browser leaves helpers, which the kernel gives to the nearest process above that adopts orphans. They stay as
zombies until it waits for them, which nothing does by itself: asyncio and `subprocess` wait for what they started only.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator

import psutil

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
# From <linux/prctl.h>; Python has no names for these.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PERIOD_S = 5.0


def end_with_parent() -> None:
    """Run in a child before its program starts: makes the kernel end it if this process is killed."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def adopt_orphans() -> None:
    """Make the orphans below this process its children, where the system can."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.asynccontextmanager
async def reaping_orphans() -> AsyncIterator[None]:
    """While the body runs, and at its end, reap the orphans that this process has adopted."""
    task = asyncio.create_task(_keep_reaping())
    try:
        yield
    finally:
        task.cancel()
        reap_orphans()


async def _keep_reaping() -> None:
    while True:
        await asyncio.sleep(_PERIOD_S)
        reap_orphans()


def reap_orphans() -> None:
    """Reap the adopted orphans that have ended, but no process that this one has started, whose status others want.

    A process that this one has started is in the same session, or leads one of its own. One in another session was
    started by somebody else. An adopted leader cannot be told from an own one, so it is left: `Watch.reap` knows those
    of browsers.
    """
    if _LIBC is None or not _has_zombie():
        return
    own = os.getsid(0)
    for child in psutil.Process().children():
        # Another thread may have reaped it meanwhile.
        with contextlib.suppress(psutil.Error, ProcessLookupError, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE and os.getsid(child.pid) not in (own, child.pid):
                os.waitpid(child.pid, os.WNOHANG)


def _has_zombie() -> bool:
    """Whether any child has ended and was not waited for. Much faster than looking at all of them."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
