"""Finds, watches and ends the processes that belong to one browser.

A browser leaves the process group of the server that started it, and outlives a killed server. The processes are
recognised by the folder in their command lines, by parent process, and by process group.
"""

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

_END_TRIES = 100
_END_POLL_S = 0.01


class Process(NamedTuple):
    """One running process. `command` is its command line, arguments separated by spaces."""

    pid: int
    parent: int
    group: int
    command: str


def list_processes() -> list[Process]:
    """Every running process visible to this one, except zombies.

    Empty on Windows, where the server runs in a job object, so that all its processes end with it.
    """
    processes: list[Process] = []
    if sys.platform != "win32":
        for process in psutil.process_iter():
            # `cmdline` fails for zombies.
            with contextlib.suppress(psutil.Error, ProcessLookupError), process.oneshot():
                command = " ".join(process.cmdline())
                processes.append(Process(process.pid, process.ppid(), os.getpgid(process.pid), command))
    return processes


def is_server(process: Process, folder: Path) -> bool:
    """Whether this is the MCP server with `folder` as its output folder."""
    return f"--output-dir {folder} " in f"{process.command} "


def is_browser(process: Process, folder: Path) -> bool:
    """Whether this is a browser's main process (or its wrapper script) with its profile in `folder`."""
    return f"--user-data-dir={folder}/" in process.command and " --type=" not in process.command


def is_page(process: Process) -> bool:
    """Whether this is a browser's process for pages."""
    return " --type=renderer" in process.command


def family(processes: Iterable[Process], folder: Path, *, known_groups: frozenset[int] = frozenset()) -> list[Process]:
    """The processes that belong to the browser with this folder. Pure.

    `known_groups` are process groups that were found to belong to it before; they identify helpers without parents.
    """
    everyone = list(processes)
    marked = [p for p in everyone if is_server(p, folder) or f"--user-data-dir={folder}/" in p.command]
    own = os.getpid()
    own_group = next((p.group for p in everyone if p.pid == own), own)
    # Never our own group: it also contains processes that do not belong to the browser.
    groups = ({p.group for p in marked} | known_groups) - {own_group}
    family_ids = {p.pid for p in everyone if p in marked or p.group in groups} - {own}
    while more := {p.pid for p in everyone if p.parent in family_ids} - family_ids:
        family_ids |= more
    return [p for p in everyone if p.pid in family_ids]


class Watch:
    """Checks within microseconds that processes are alive and still the same; used after every tool call."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._handles: list[int] = []
        self._poll = select.poll() if sys.platform == "linux" else None
        # Without handles: these compare start times, so that a reused process id is not mistaken for the old process.
        self._processes: list[psutil.Process] = []
        self._is_one_gone = False
        self.size = len(pids)
        for pid in pids:
            try:
                if self._poll is None:
                    self._processes.append(psutil.Process(pid))
                else:
                    # A handle stays with its process, even if another one gets the same id.
                    self._handles.append(os.pidfd_open(pid))
                    self._poll.register(self._handles[-1], select.POLLIN)
            except (ProcessLookupError, psutil.NoSuchProcess):
                self._is_one_gone = True

    def alive(self) -> bool:
        """Whether every watched process still runs. True when nothing is watched."""
        has_ended = self._poll.poll(0) if self._poll else not all(process.is_running() for process in self._processes)
        return not self._is_one_gone and not has_ended

    def reap(self) -> None:
        """Reap those that this process has adopted, because nobody else would. Only for what it has not started."""
        for handle in self._handles:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Release the handles."""
        while self._handles:
            os.close(self._handles.pop())


def kill_family(folder: Path, known_groups: frozenset[int] = frozenset()) -> list[Process]:
    """Kill the browser's processes, the browser before its server, which then reaps it. Returns those killed."""
    remaining = family(list_processes(), folder, known_groups=known_groups)
    for process in sorted(remaining, key=lambda process: is_server(process, folder)):
        with contextlib.suppress(psutil.Error):
            psutil.Process(process.pid).kill()
    return remaining


async def end_family(folder: Path, known_groups: frozenset[int]) -> bool:
    """Kill the browser's processes until none is left. False if any survives for more than a second."""
    for _ in range(_END_TRIES):
        remaining = kill_family(folder, known_groups)
        # Helpers that were just starting have lost their parents and are only found by group.
        known_groups |= {process.group for process in remaining}
        if not remaining:
            return True
        await asyncio.sleep(_END_POLL_S)
    return False
