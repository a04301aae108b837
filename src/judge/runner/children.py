"""Processes that `agentbeats-run` starts: each in its own session, its output in a log file, none left behind."""

import asyncio
import contextlib
import ctypes
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from shared.errors import ConfigError

_STOP_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Child:
    """One started process and its log."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def returncode(self) -> int | None:
        """`None` while it runs."""
        return self.process.returncode

    def log_end(self, lines: int = 12) -> str:
        """The last lines of its log, for an error message."""
        return log_end(self.log, lines)

    def crash(self) -> str | None:
        """How it ended by itself, with the last line of its traceback; `None` while it runs."""
        code = self.returncode
        if code is None:
            return None
        how = f"with exit code {code}" if code >= 0 else f"by {_signal_name(-code)}"
        lines = self.log_end(1000).splitlines()
        traces = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
        # After the frames, which are indented, comes the error.
        words = [line for line in lines[traces[-1] + 1 :] if line[:1].strip()] if traces else lines[-1:]
        said = f": {words[0][:500]}" if words else ""
        return f"{self.name} ended during the run {how}{said} (its log: {self.log})"

    async def stop(self) -> None:
        """End the whole session: ask, wait, then kill. Cancellation does not leave it running."""
        try:
            if self.process.returncode is None:
                self._signal(signal.SIGTERM)
                async with asyncio.timeout(_STOP_GRACE_S):
                    await self.process.wait()
        except TimeoutError:
            pass
        finally:
            # What the process itself left in its session goes too, also when it had ended before.
            self._signal(signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_GRACE_S):
                await self.process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self.process.terminate()
            else:
                os.killpg(self.process.pid, number)


def log_end(log: Path, lines: int = 12) -> str:
    """The last lines of a log; of its last 16 kB at most."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 16_384))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def start_child(name: str, cmd: str, *, env: Mapping[str, str], log: Path) -> Child:
    """Start `cmd` (split as a shell would, but run by none). Raises `ConfigError` when it cannot be started."""
    try:
        argv = shlex.split(cmd)
    except ValueError as error:
        raise ConfigError(f"{name}: cmd {cmd[:200]!r} cannot be split: {error}", remedy="check its quotes") from None
    if not argv:
        raise ConfigError(f"{name}: cmd is empty", remedy="give a command or leave the key out")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stream,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent(),
            )
        except OSError as error:
            raise ConfigError(
                f"{name}: cannot start {argv[0][:200]!r}: {error.strerror or error}",
                remedy="check the cmd in the scenario and that the program is installed",
            ) from None
    return Child(name, process, log)


def _die_with_parent() -> Callable[[], object] | None:
    """On Linux, have the kernel end the child when we are killed outright and can end nothing ourselves."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def adopt_orphans() -> None:
    """On Linux, make orphans of our children ours, so that `end_orphans` finds what a killed child left running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> int:
    """Kill and reap every process that still descends from this one. Returns how many there were."""
    if sys.platform != "linux":
        return 0
    ended = 0
    # Killing a parent hands its children to us, so look again until none is left.
    for _ in range(20):
        found = psutil.Process().children(recursive=True)
        if not found:
            break
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for process in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, 0)
                ended += 1
    return ended


def endpoint_address(name: str, endpoint: str) -> tuple[str, int]:
    """Host and port of an endpoint URL. Raises `ConfigError`."""
    parts = urlsplit(endpoint)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    if not parts.hostname or port is None:
        raise ConfigError(f"{name}: endpoint {endpoint[:200]!r} names no host and port")
    return parts.hostname, port


def require_free_port(name: str, endpoint: str) -> None:
    """Refuse an endpoint whose port something listens on already. Raises `ConfigError`."""
    host, port = endpoint_address(name, endpoint)
    try:
        with socket.create_connection((host, port), timeout=2):
            pass
    except OSError:
        return
    raise ConfigError(
        f"{name}: port {port} on {host} is already taken",
        remedy="stop what listens there, or change the port in both endpoint and cmd",
    )
