"""Runs the real commands as a user would, and counts what they leave behind."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from helpers.paths import ROOT
from shared.settings import Settings

BIN = Path(sys.executable).parent
_PR_SET_CHILD_SUBREAPER = 36


def adopt_descendants() -> None:
    """Make every orphan below this process a child of it, so that nothing started here can hide."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int) -> dict[int, str]:
    """Living processes below `pid` and their command lines; zombies do not count."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    results: dict[int, str] = {}
    frontier = {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier and child not in results}
        for child in frontier:
            results[child] = command_line(child)
    return results


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def ray_worker_of(pid: int, shard: int) -> int:
    """The Ray worker below `pid` that plays a shard."""
    for child, line in descendants(pid).items():
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0") if "--shards auto" in line else []
        if f"WABE_SHARD={shard}".encode() in variables:
            return int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
    raise AssertionError(f"nobody plays shard {shard}")


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class FinishedCommand:
    """How a command ended and what it left."""

    code: int
    stdout: str
    stderr: str
    left_processes: dict[int, str]
    left_files: list[str]
    seconds: float


@dataclass
class RunningCommand:
    """A command under way. `temp` is its TMPDIR, watched for what it leaves there."""

    process: subprocess.Popen[str]
    temp: Path
    before: set[int]
    began: float = field(default_factory=time.monotonic)

    def wait_for_file(self, folder: Path, pattern: str, timeout_s: float = 60.0) -> Path:
        """The first file matching `pattern` below `folder`; fails when the command ends before."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            result = sorted(folder.glob(pattern))
            if result:
                return result[0]
            assert self.process.poll() is None, f"ended early: {self.process.communicate()}"
            time.sleep(0.02)
        raise AssertionError(f"no {pattern} under {folder} within {timeout_s} s")

    def descendants(self, containing: str) -> list[int]:
        """Pids of the command's living descendants whose command line contains a text."""
        process_ids = descendants(self.process.pid)
        return [pid for pid, line in process_ids.items() if containing in line]

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, timeout_s: float = 120.0) -> FinishedCommand:
        """Wait for its end and count what is left, giving the kernel time to reap."""
        stdout, stderr = self.process.communicate(timeout=timeout_s)
        seconds = time.monotonic() - self.began
        until = time.monotonic() + 60
        while (left := self._remaining_processes()) and time.monotonic() < until:
            time.sleep(0.05)
        files = sorted(path.name for path in self.temp.iterdir())
        return FinishedCommand(self.process.returncode, stdout, stderr, left, files, seconds)

    def _remaining_processes(self) -> dict[int, str]:
        return {pid: line for pid, line in descendants(os.getpid()).items() if pid not in self.before}


@contextmanager
def command(
    temp: Path, *arguments: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT
) -> Iterator[RunningCommand]:
    """Start one of our commands in a session of its own; kill whatever is left of it at the end."""
    adopt_descendants()
    temp.mkdir(exist_ok=True)
    environ = {
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(temp.parent),
        "TMPDIR": str(temp),
        # A user's second command does not compile and parse everything again.
        "XDG_CACHE_HOME": str(Settings.from_environ().cache_folder or temp.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "160",
        **(env or {}),
    }
    before = set(descendants(os.getpid()))
    process = subprocess.Popen(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running = RunningCommand(process, temp, before)
    try:
        yield running
    finally:
        for pid in (process.pid, *running._remaining_processes()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate()


def run_command(
    temp: Path, *arguments: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT, timeout_s: float = 300
) -> FinishedCommand:
    """Run one of our commands to its end."""
    with command(temp, *arguments, env=env, cwd=cwd) as running:
        return running.end(timeout_s)
