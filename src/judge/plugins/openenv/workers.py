"""The judges' processes behind one server, and their sessions.

A session that has no process yet, or whose process has ended, gets one with its next `reset`. A process that ends is
started again; the episodes that it played are lost, which is an error and never a reward.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from judge.browser.orphans import end_with_parent
from judge.environment.errors import CapacityReached, EpisodeFault, NotReset
from judge.environment.session import SessionState, StepResult, reply_text
from judge.plugins.openenv.calls import (
    ANSWER,
    FIRST_LINE,
    ResetCall,
    Seen,
    SessionCall,
    StepCall,
    Unusable,
    WorkerOrder,
    WorkerReady,
    receive,
    send,
)
from shared.errors import WabeError
from shared.text import counted, without_surrogates

_log = logging.getLogger(__name__)

_STOP_S = 30.0
# Longer than a session takes to be closed; a process that hangs is then left to its own end.
_CLOSE_S = 30.0
# A client that left without a word may be back before the server has learnt that it left.
_NOTICE_S = 1.0
_RESTART_S = 1.0
_MAX_RESTART_S = 60.0
# A process that ends is up again within some seconds; a client waits 60.
_PATIENCE_S = 30.0
# For the line with all tasks.
_MAX_LINE_BYTES = 64_000_000
_MAX_TEMP_BYTES = 60
_ENDED = "the judge's process ended"


class Worker:
    """One process, started again whenever it ends. `load` is the number of sessions that it plays."""

    def __init__(self, order: WorkerOrder, environ: Mapping[str, str]) -> None:
        self.order = order
        self.load = 0
        self.up = asyncio.Event()
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> WorkerReady:
        """Start the process, and wait until it plays. Raises `ConfigError` if its scenario cannot be offered."""
        self.order.scratch.mkdir(parents=True, exist_ok=True)
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "judge.plugins.openenv.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**self._environ, "TMPDIR": str(self.order.scratch)},
            limit=_MAX_LINE_BYTES,
            # Ctrl-C in the terminal must only reach the server, which stops its processes in order.
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(self.order.model_dump_json().encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            raise WabeError(f"{_ENDED} with exit code {await process.wait()}; see its log")
        first_line = FIRST_LINE.validate_json(line)
        if isinstance(first_line, Unusable):
            await process.wait()
            raise first_line.error()
        self.up.set()
        return first_line

    async def keep(self) -> None:
        """Start the process again whenever it ends. Never returns."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            self.up.clear()
            _log.error("%s (%s); it is started again", _ENDED, code)
            pause = _RESTART_S
            while not self.up.is_set():
                try:
                    await self.start()
                except WabeError as error:
                    _log.error("it cannot be started again, next try in %g s: %s", pause, error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _MAX_RESTART_S)

    async def stop(self) -> None:
        """End the process and what it started."""
        process, self._process = self._process, None
        self.up.clear()
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class Workers:
    """All processes, with at most `sessions` sessions together."""

    def __init__(self, workers: list[Worker], sessions: int) -> None:
        self._workers = workers
        self._sessions = sessions
        self._open = 0
        self._closing = 0
        self._freed = asyncio.Event()

    @property
    def health(self) -> Literal["healthy", "degraded", "unhealthy"]:
        """Whether the processes are up: all, some or none."""
        up = sum(worker.up.is_set() for worker in self._workers)
        return "healthy" if up == len(self._workers) else "degraded" if up else "unhealthy"

    async def open(self) -> "RemoteSession":
        """Another session. Raises `CapacityReached`, after those about to be closed have been waited for."""
        if self._open >= self._sessions and not self._closing:
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_NOTICE_S):
                    await self._freed.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while self._open >= self._sessions and self._closing:
                    self._freed.clear()
                    await self._freed.wait()
        if self._open >= self._sessions:
            raise CapacityReached(self._open, self._sessions)
        self._open += 1
        return RemoteSession(self)

    async def connected(self) -> "WorkerConnection":
        """A connection to the process with the fewest sessions. Raises `EpisodeFault` if none is up."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._connected()
        except TimeoutError:
            raise EpisodeFault("aborted", "internal", "the judge's processes are not up") from None

    async def _connected(self) -> "WorkerConnection":
        while True:
            if up := [worker for worker in self._workers if worker.up.is_set()]:
                worker = min(up, key=lambda each: each.load)
                worker.load += 1
                try:
                    return WorkerConnection(worker, *await asyncio.open_unix_connection(worker.order.socket))
                except OSError:
                    # It has just ended.
                    worker.load -= 1
                    await asyncio.sleep(_RESTART_S)
            else:
                waiting = [asyncio.create_task(worker.up.wait()) for worker in self._workers]
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in waiting:
                        each.cancel()

    @contextlib.asynccontextmanager
    async def closing(self) -> AsyncIterator[None]:
        """While the body runs, a session is being closed; then its place is free."""
        self._closing += 1
        try:
            yield
        finally:
            self._closing -= 1
            self._open -= 1
            self._freed.set()


class WorkerConnection:
    """A session's connection to its process."""

    def __init__(self, worker: Worker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._worker: Worker | None = worker
        self._reader, self._writer = reader, writer

    async def ask(self, call: SessionCall) -> bytes | None:
        """The answer to a call; `None` if the process has ended."""
        with contextlib.suppress(ConnectionError):
            await send(self._writer, call)
            return await receive(self._reader)
        return None

    async def close(self) -> None:
        """End the session, and wait until its browser is free."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        try:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    self._writer.write_eof()
                    while await self._reader.read(65_536):
                        pass
        finally:
            worker.load -= 1
            self._writer.close()


class RemoteSession:
    """A session that a process plays. See `judge.environment.session.EnvironmentSession`."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._connection: WorkerConnection | None = None
        self._state = SessionState()
        self._is_closed = False

    async def reset(
        self, task_id: str | None = None, *, seed: int | None = None, episode_id: str | None = None
    ) -> StepResult:
        """Begin an episode."""
        call = ResetCall(task_id=task_id, seed=seed, episode_id=episode_id)
        data = await self._answer(call)
        if data is None:
            # A process that is just ending still accepts connections. No episode is lost with it: another one is asked.
            await asyncio.sleep(_RESTART_S)
            data = await self._answer(call)
        return self._result(data)

    async def step(self, reply: object) -> StepResult:
        """Answer the last observation."""
        if self._connection is None:
            raise NotReset("the environment was not reset", remedy="call reset first, and after each end")
        return self._result(await self._answer(StepCall(reply=without_surrogates(reply_text(reply)))))

    def state(self) -> SessionState:
        """The episode in progress, or the last one."""
        return self._state

    async def close(self) -> None:
        """End the session; its place is free when its browser is. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        async with self._workers.closing():
            await self._disconnect()

    async def _answer(self, call: SessionCall) -> bytes | None:
        """The answer of the session's process, which it gets if it has none; `None` if the process has ended."""
        if self._connection is None:
            self._connection = await self._workers.connected()
        data = await self._connection.ask(call)
        if data is None:
            await self._disconnect()
        return data

    def _result(self, data: bytes | None) -> StepResult:
        if data is None:
            raise EpisodeFault("aborted", "internal", _ENDED)
        answer = ANSWER.validate_json(data)
        self._state = answer.state
        if isinstance(answer.found, Seen):
            return answer.found.result()
        raise answer.found.error()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


@asynccontextmanager
async def working(
    order: WorkerOrder, environ: Mapping[str, str], processes: int
) -> AsyncIterator[tuple[Workers, WorkerReady]]:
    """The processes with an order, each with a separate folder, while the body runs.

    Raises `ConfigError` if the scenario cannot be offered.
    """
    # The path of a socket can have about 100 bytes.
    place = "/tmp" if len(os.fsencode(tempfile.gettempdir())) > _MAX_TEMP_BYTES else None
    with tempfile.TemporaryDirectory(prefix="wabe-env-", dir=place) as folder:
        workers = [Worker(_part(order, Path(folder), each, processes), environ) for each in range(1, processes + 1)]
        try:
            ready = [await worker.start() for worker in workers]
            _log.info("%s started", counted(processes, "process", "processes"))
            keeping = [asyncio.create_task(worker.keep()) for worker in workers]
            try:
                yield Workers(workers, order.host.sessions), ready[0]
            finally:
                for task in keeping:
                    task.cancel()
                await asyncio.gather(*keeping, return_exceptions=True)
        finally:
            # Shielded: a second Ctrl-C must not leave processes behind.
            await asyncio.shield(asyncio.gather(*(worker.stop() for worker in workers)))


def _part(order: WorkerOrder, folder: Path, number: int, processes: int) -> WorkerOrder:
    """The order of one process, which has separate folders: a run is recorded by one process."""
    host = order.host
    if host.record is not None and processes > 1:
        host = host.model_copy(update={"record": host.record / str(number)})
    return order.model_copy(update={"folder": folder / str(number), "host": host})
