"""The processes that belong to one browser: found by its own folder, watched, and ended.

A browser leaves the process group of the server that started it, and outlives a killed server. What belongs together
is told by the folder named in command lines, by descent, and by process group.
"""

import asyncio
import contextlib
import os
import platform
import select
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SYSTEM = platform.system()
_END_TRIES = 200
_END_POLL_S = 0.01
_PS_TIMEOUT_S = 10


class Process(NamedTuple):
    """One running process. `command` is its command line, arguments separated by spaces."""

    pid: int
    parent: int
    group: int
    command: str


def list_processes() -> list[Process]:
    """Every running process that we may see, without the dead that nobody has reaped yet.

    Empty on Windows: there the server is started in a job object that ends with it.
    """
    if _SYSTEM == "Linux":
        return [process for entry in os.listdir("/proc") if entry.isdigit() and (process := _read_process(entry))]  # noqa: PTH208 - ten times faster
    if _SYSTEM == "Windows":
        return []
    command = ["ps", "-Awwo", "pid=,ppid=,pgid=,stat=,command="]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=_PS_TIMEOUT_S, check=False).stdout
    rows = [line.split(None, 4) for line in listing.splitlines()]
    return [
        Process(int(row[0]), int(row[1]), int(row[2]), row[4]) for row in rows if len(row) == 5 and row[3][0] != "Z"
    ]


def _read_process(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123
            state, parent, group = stream.read().rpartition(b")")[2].split()[:3]
        with open(f"/proc/{pid}/cmdline", "rb") as stream:  # noqa: PTH123
            command = stream.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else Process(int(pid), int(parent), int(group), command)


def is_server(process: Process, folder: Path) -> bool:
    """Whether this is the MCP server that was given `folder` as its output folder."""
    return f"--output-dir {folder} " in f"{process.command} "


def is_browser(process: Process, folder: Path) -> bool:
    """Whether this is a browser's main process (or its wrapper script) with its profile in `folder`."""
    return f"--user-data-dir={folder}/" in process.command and " --type=" not in process.command


def family(processes: Iterable[Process], folder: Path, *, known_groups: frozenset[int] = frozenset()) -> list[Process]:
    """The processes that belong to the browser whose folder this is. Pure.

    `known_groups` are groups seen to belong to it before: they tell when the marked processes are gone already.
    """
    everyone = list(processes)
    marked = [p for p in everyone if is_server(p, folder) or f"--user-data-dir={folder}/" in p.command]
    own = os.getpid()
    own_group = next((p.group for p in everyone if p.pid == own), own)
    groups = ({p.group for p in marked} | known_groups) - {own_group}
    found = {p.pid for p in everyone if p in marked or p.group in groups} - {own}
    while more := {p.pid for p in everyone if p.parent in found} - found:
        found |= more
    return [p for p in everyone if p.pid in found]


class Watch:
    """Says at once, and for microseconds, whether processes seen before are all still the same and alive."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._handles: list[int] = []
        self._poll = None
        if _SYSTEM == "Linux":
            self._poll = select.poll()
            self._dead_already = False
            for pid in self._pids:
                try:
                    handle = os.pidfd_open(pid)
                except ProcessLookupError:
                    self._dead_already = True
                    continue
                self._handles.append(handle)
                self._poll.register(handle, select.POLLIN)

    def alive(self) -> bool:
        """Whether every watched process still runs. True when nothing is watched."""
        if self._poll is not None:
            return not self._dead_already and not self._poll.poll(0)
        return all(map(_exists, self._pids))

    def close(self) -> None:
        """Release the handles."""
        while self._handles:
            os.close(self._handles.pop())


def _exists(pid: int) -> bool:
    if _SYSTEM == "Windows":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def kill_family(folder: Path, known_groups: frozenset[int]) -> list[Process]:
    """Kill what belongs to the browser, browser before server so that the server reaps it. Returns who was killed."""
    found = family(list_processes(), folder, known_groups=known_groups)
    for process in sorted(found, key=lambda process: is_server(process, folder)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
    return found


async def end_family(folder: Path, known_groups: frozenset[int]) -> bool:
    """Kill what belongs to the browser until nothing is left of it. False when something survives (after 2 s)."""
    killed: dict[int, Process] = {}
    for _ in range(_END_TRIES):
        found = kill_family(folder, known_groups)
        if not found:
            _reap(process for process in killed.values() if not is_server(process, folder))
            return True
        killed |= {process.pid: process for process in found}
        await asyncio.sleep(_END_POLL_S)
    return False


def _reap(processes: Iterable[Process]) -> None:
    """Orphans become children of a process that adopts them, which may be this one; nobody else would reap them."""
    if _SYSTEM == "Windows":
        return
    for process in processes:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
