"""One attempt's process, under a supervisor that ends everything it starts; its output, bounded and redacted."""

import asyncio
import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from judge.plugins.mcp_agents import sandbox
from shared.text import one_line

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_KEPT_CHARS = 100_000
_LINE_BYTES = 1_000_000
_BY_SIGNAL = 128
_GRACE_S = 5.0
_POLL_S = 1.0
_KILL_S = 10.0
_HIDDEN = "[redacted]"


class KeptOutput:
    """What a process prints: the first and the last 100,000 characters, without secrets."""

    def __init__(self, log: Path | None, secrets: Sequence[SecretStr]) -> None:
        self._log = log
        self._secrets = [secret.get_secret_value() for secret in secrets]
        self._first: list[str] = []
        self._last: deque[str] = deque()
        self._chars = self._last_chars = self._dropped = 0

    def add(self, line: str) -> None:
        """Keep a line."""
        for secret in self._secrets:
            line = line.replace(secret, _HIDDEN)
        if self._chars + len(line) <= _KEPT_CHARS:
            self._chars += len(line)
            self._first.append(line)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as stream:
                    stream.write(line)
            return
        self._chars = _KEPT_CHARS
        self._last.append(line[-_KEPT_CHARS:])
        self._last_chars += len(self._last[-1])
        while self._last_chars > _KEPT_CHARS:
            gone = len(self._last.popleft())
            self._last_chars -= gone
            self._dropped += gone

    def close(self, note: str) -> None:
        """Write what was kept of the end, and a last line."""
        if self._log is not None:
            between = f"[{self._dropped} characters left out]\n" if self._dropped else ""
            with self._log.open("a", encoding="utf-8") as stream:
                stream.write("".join((between, *self._last, f"{note}\n")))

    @property
    def text(self) -> str:
        """All that was kept."""
        return "".join((*self._first, *self._last))

    @property
    def end(self) -> str:
        """The end in one line, for an error."""
        lines = [line.strip() for line in self.text[-4_000:].splitlines() if line.strip()]
        return one_line(" | ".join(lines[-5:])[-600:], 600) if lines else "it printed nothing"


class AgentProcess:
    """A process that has been started. `ended` is its task: the exit status, 128 and more for a signal."""

    def __init__(self, supervisor: asyncio.subprocess.Process, output: KeptOutput) -> None:
        self._supervisor = supervisor
        self.output = output
        self.ended = asyncio.create_task(self._run())

    async def _run(self) -> int:
        reading = asyncio.create_task(self._read())
        # `wait` alone would also wait for whatever has the output, such as the orphans of a killed supervisor.
        while self._supervisor.returncode is None and not reading.done():
            await asyncio.wait({reading}, timeout=_POLL_S)
        await asyncio.wait({reading}, timeout=_GRACE_S)
        reading.cancel()
        status = await self._supervisor.wait()
        return status if status >= 0 else _BY_SIGNAL - status

    async def _read(self) -> None:
        stream = self._supervisor.stdout
        assert stream is not None
        rest = b""
        while data := await stream.read(65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.output.add(line.decode("utf-8", "replace") + "\n")
            if len(rest) > _LINE_BYTES:
                self.output.add(rest.decode("utf-8", "replace"))
                rest = b""
        if rest:
            self.output.add(rest.decode("utf-8", "replace"))

    async def stop(self, grace_s: float = _GRACE_S) -> None:
        """Wait a moment for the end, then end it with all its children."""
        await asyncio.wait({self.ended}, timeout=grace_s)
        if self.ended.done():
            return
        assert self._supervisor.stdin is not None
        # The supervisor ends everything when its input ends.
        self._supervisor.stdin.close()
        await asyncio.wait({self.ended}, timeout=_KILL_S)
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                self._supervisor.kill()
            await self.ended


def status_text(status: int) -> str:
    """How a process ended, in words."""
    if status <= _BY_SIGNAL:
        return f"with status {status}"
    with contextlib.suppress(ValueError):
        return f"by {signal.Signals(status - _BY_SIGNAL).name}"
    return f"with status {status}"


@asynccontextmanager
async def started(
    argv: Sequence[str],
    env: Mapping[str, str],
    workdir: Path,
    output: KeptOutput,
    *,
    private: Path,
    ports: Sequence[int] | None = None,
) -> AsyncIterator[AgentProcess]:
    """Run a command in `workdir` while the body does. With `ports`, in a sandbox from which only these are reached.

    `private` is an empty folder that the command is not told of.
    """
    spec: dict[str, Any] = {"argv": list(argv), "env": dict(env), "cwd": str(workdir)}
    async with contextlib.AsyncExitStack() as stack:
        wrapper: list[str] = []
        if ports is not None:
            spec["shown"] = sandbox.shown_paths(argv, workdir)
            wrapper, spec = await stack.enter_async_context(sandbox.opened(private, spec, ports))
        path = private / "spec.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(spec), encoding="utf-8")
        supervisor = await asyncio.create_subprocess_exec(
            *wrapper,
            sys.executable,
            "-I",
            str(_SUPERVISOR),
            str(path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        process = AgentProcess(supervisor, output)
        try:
            yield process
        finally:
            # Also if this is cancelled: nothing may stay behind.
            await asyncio.shield(process.stop(0.0))
