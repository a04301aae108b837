"""Work in progress on tasks: progress that is paced, one end for each, cancellation. Knows no protocol.

Whatever an agent does, its task goes: begun once, progress, at most one end, nothing after it.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from typing import Literal, Protocol

from shared.a2a.turn import TextExecutor, TextHandler, Turn, as_prose
from shared.errors import WabeError
from shared.text import clip, without_surrogates

log = logging.getLogger(__name__)

TaskEnd = Literal["completed", "failed", "rejected", "canceled"]
CANCEL_GRACE_S = 30.0
_MAX_MESSAGE_CHARS = 20_000
_MAX_PENDING_TEXTS = 500


class Wire(Protocol):
    """Says on the wire what a task's sink decides. Texts are ready to be sent."""

    async def begin(self) -> None:
        """The task exists and is being worked on."""
        ...

    def annotate(self, metadata: Mapping[str, str]) -> None:
        """Metadata for the task's next status and every later one."""
        ...

    async def status(self, state: Literal["working"] | TaskEnd, text: str | None) -> None: ...

    async def artifact(self, name: str, texts: list[str]) -> None: ...

    async def message(self, text: str) -> None: ...


class PacedSink:
    """The `TaskSink` of one task. `begun` says that the task is known to the client already."""

    def __init__(self, wire: Wire, *, begun: bool) -> None:
        self._wire = wire
        self._begun = begun
        self._ended = False
        self._lock = asyncio.Lock()
        self._pending: deque[str] = deque(maxlen=_MAX_PENDING_TEXTS)
        self._news = asyncio.Event()

    async def begin(self) -> None:
        """Tell the client of the task, if that has not been done."""
        async with self._lock:
            await self._begin()

    async def annotate(self, metadata: Mapping[str, str]) -> None:
        """See `TaskSink`."""
        self._wire.annotate(metadata)

    async def update(self, text: str) -> None:
        """See `TaskSink`. Of more than 500 texts that wait the oldest are dropped."""
        if text.strip():
            self._pending.append(text)
            self._news.set()

    async def artifact(self, name: str, texts: list[str]) -> None:
        """See `TaskSink`."""
        async with self._lock:
            if not self._ended:
                await self._begin()
                await self._flush()
                await self._wire.artifact(name, [without_surrogates(text) for text in texts])

    async def complete(self, text: str | None = None) -> None:
        """See `TaskSink`."""
        await self.end("completed", text)

    async def fail(self, text: str) -> None:
        """See `TaskSink`."""
        await self.end("failed", text)

    async def reject(self, text: str) -> None:
        """See `TaskSink`."""
        await self.end("rejected", text)

    async def reply(self, text: str) -> None:
        """See `TaskSink`. On a task that was begun it is the text of its completion."""
        if self._begun:
            await self._end("completed", text, as_it_is=True)
            return
        async with self._lock:
            if not self._ended:
                self._ended = True
                await self._wire.message(without_surrogates(text))

    async def end(self, state: TaskEnd, text: str | None) -> None:
        """End the task, unless it has ended."""
        await self._end(state, text)

    async def pump(self, interval_s: float, still_working_s: float) -> None:
        """Send progress, no faster than `interval_s`, and a word of life after `still_working_s` without any."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(still_working_s):
                    await self._news.wait()
            async with self._lock:
                if not self._ended:
                    if self._begun and not self._pending:
                        self._pending.append("Still working.")
                    await self._flush()
            await asyncio.sleep(interval_s)

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._wire.begin()

    async def _flush(self) -> None:
        texts = list(self._pending)
        self._pending.clear()
        self._news.clear()
        if texts:
            await self._begin()
            await self._wire.status("working", _sayable("\n".join(texts)))

    async def _end(self, state: TaskEnd, text: str | None, *, as_it_is: bool = False) -> None:
        async with self._lock:
            if self._ended:
                return
            await self._begin()
            await self._flush()
            self._ended = True
            said = without_surrogates(text) if text and as_it_is else _sayable(text) if text else None
            await self._wire.status(state, said)


def _sayable(text: str) -> str:
    return as_prose(clip(without_surrogates(text), _MAX_MESSAGE_CHARS))


class _Run:
    """One piece of work. `end` is how its task ends when the work is cancelled."""

    def __init__(self, work: "asyncio.Task[None]", sink: PacedSink) -> None:
        self.work = work
        self.sink = sink
        self.over = asyncio.Event()
        self.end: tuple[TaskEnd, str] = ("failed", "The work was interrupted.")

    async def cancel(self, state: TaskEnd, text: str) -> None:
        """End the work and wait until it has cleaned up; if that takes too long, say the end all the same."""
        self.end = (state, text)
        self.work.cancel()
        try:
            async with asyncio.timeout(CANCEL_GRACE_S):
                await self.over.wait()
        except TimeoutError:
            await self.sink.end(state, text)


class TaskRuns:
    """All work in progress of one agent, by task id."""

    def __init__(self, agent: TextExecutor | TextHandler, *, update_interval_s: float, still_working_s: float) -> None:
        self._agent = agent
        self._update_interval_s = update_interval_s
        self._still_working_s = still_working_s
        self._runs: dict[str, _Run] = {}

    async def run(self, turn: Turn, sink: PacedSink) -> None:
        """Let the agent work on `turn` to an end. Raises nothing but cancellation."""
        run = _Run(asyncio.create_task(self._work(turn, sink)), sink)
        self._runs[turn.task_id] = run
        pump = asyncio.create_task(sink.pump(self._update_interval_s, self._still_working_s))
        try:
            await asyncio.wait({run.work})
            await _conclude(run)
        finally:
            pump.cancel()
            run.work.cancel()
            run.over.set()
            del self._runs[turn.task_id]

    async def cancel(self, task_id: str) -> bool:
        """End the work on a task as canceled; false when none is under way."""
        run = self._runs.get(task_id)
        if run is not None:
            await run.cancel("canceled", "Cancelled on request.")
        return run is not None

    async def stop(self) -> None:
        """End everything under way as failed, because the server stops."""
        text = "The agent was stopped before the work was done."
        await asyncio.gather(*[run.cancel("failed", text) for run in self._runs.values()])

    async def _work(self, turn: Turn, sink: PacedSink) -> None:
        if isinstance(self._agent, TextExecutor):
            await sink.begin()
            await self._agent.execute(turn, sink)
        else:
            await sink.reply(await self._agent(turn))


async def _conclude(run: _Run) -> None:
    if run.work.cancelled():
        await run.sink.end(*run.end)
    elif isinstance(error := run.work.exception(), WabeError):
        await run.sink.fail(str(error))
    elif error is not None:
        log.error("an agent failed", exc_info=error)
        await run.sink.fail(f"The agent failed: {type(error).__name__}.")
    else:
        await run.sink.fail("The agent gave no answer.")
