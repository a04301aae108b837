"""Our agents and their work on A2A tasks, independent of the transport.

An agent implements `TextExecutor` or `TextHandler`. Regardless of what the agent does, its task's events stay in order:
one start, then progress, then at most one end.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Task, TaskState, TaskStatus
from pydantic import Field

from shared.a2a.attendance import Attendance, attendance_of
from shared.errors import WabeError
from shared.models import Record
from shared.text import clip, without_surrogates

log = logging.getLogger(__name__)

_CLEAN_UP_S = 30.0
_MAX_MESSAGE_CHARS = 20_000
# Joined in one status.
_MAX_UPDATES = 200
_NO_FACTS: Mapping[str, Any] = MappingProxyType({})
_NOT_KEPT = "A request in JSON, which is not kept."
# Begins with a letter and is not a literal that JSON readers accept.
_PROSE = re.compile(r"(?!(?:true|false|null|NaN|Infinity)\Z)[^\W\d_]")


class TurnFile(NamedTuple):
    """A file in a message, as the sender encoded it."""

    data: bytes
    media_type: str


class AgentMessage(Record):
    """One message to an agent. `text` joins its text parts by line breaks; links to files elsewhere are left out."""

    text: str
    context_id: str
    task_id: str
    files: tuple[TurnFile, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class Note(NamedTuple):
    """What a client should know when a stop of the server ended its task: prose, and `facts` for programs."""

    text: str = ""
    facts: Mapping[str, str] = MappingProxyType({})

    def after(self, text: str) -> str:
        """The prose after another sentence."""
        return f"{text} {self.text}".rstrip()


NoteOnStop = Callable[[Mapping[str, Any]], Note]
"""The note for a task whose metadata is given."""


def no_note(_: Mapping[str, Any]) -> Note:
    """Nothing to add."""
    return Note()


class _Update(NamedTuple):
    text: str
    facts: Mapping[str, Any] = _NO_FACTS


class End(NamedTuple):
    """How a task ends: its state, the last message, and the same for programs."""

    state: TaskState
    text: str
    facts: Mapping[str, Any] = _NO_FACTS


class TaskSink:
    """Receives the progress, results and end of one task. Calls after the end are ignored."""

    def __init__(self, context: RequestContext, queue: EventQueue) -> None:
        self._request = context.message
        self._queue = queue
        # For a message that names only its task, the SDK invents a new context.
        context_id = (context.current_task or context).context_id or ""
        self._updater = TaskUpdater(queue, context.task_id or "", context_id)
        self._has_begun = context.current_task is not None
        self._has_ended = False
        self.end_if_cancelled = End(TaskState.TASK_STATE_FAILED, "The work was interrupted.")
        self.attendance = attendance_of(context.call_context)
        self._metadata: dict[str, Any] = {}
        self._secrets: dict[str, str] = {}
        # The work, the pump and a cancellation all send events; the lock keeps these in order.
        self._lock = asyncio.Lock()
        self._pending: list[_Update] = []
        self._has_pending = asyncio.Event()

    async def begin(self) -> None:
        """Announce the task to the client, unless already announced."""
        async with self._lock:
            await self._begin()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What was added to the task with `annotate`."""
        return self._metadata

    def annotate(self, metadata: Mapping[str, str], *, secrets: Mapping[str, str] = _NO_FACTS) -> None:
        """Add metadata to the task, sent with its next status and every later one; `secrets` with the next one only."""
        self._metadata.update(metadata)
        self._secrets.update(secrets)

    def update(self, text: str, facts: Mapping[str, Any] = _NO_FACTS) -> None:
        """Report progress as prose, sent by `pump`. Texts that arrive faster than they are sent are joined.

        `facts` are the same for programs, as JSON: under each key, the metadata of the status has the list of them.
        """
        if text.strip():
            self._pending.append(_Update(text, facts))
            self._has_pending.set()

    async def artifact(self, name: str, texts: list[str]) -> None:
        """Send a complete result with one text part per text."""
        async with self._lock:
            if not self._has_ended:
                await self._begin()
                await self._flush()
                parts = [Part(text=without_surrogates(text)) for text in texts]
                await self._updater.add_artifact(parts, name=name, last_chunk=True)

    async def complete(self, text: str | None = None) -> None:
        """End the task as completed."""
        await self.end(TaskState.TASK_STATE_COMPLETED, text)

    async def fail(self, text: str, facts: Mapping[str, str] = _NO_FACTS) -> None:
        """End the task as failed: work began but could not be finished."""
        await self.end(TaskState.TASK_STATE_FAILED, text, facts)

    async def reject(self, text: str, facts: Mapping[str, str] = _NO_FACTS) -> None:
        """End the task as rejected: the request cannot be served."""
        await self.end(TaskState.TASK_STATE_REJECTED, text, facts)

    async def cancelled(self, text: str) -> None:
        """End the task as canceled: somebody other than its client stopped the work."""
        await self.end(TaskState.TASK_STATE_CANCELED, text)

    async def reply(self, text: str) -> None:
        """Answer with a message and no task, which is cheapest; if the task has begun, complete it with the message."""
        async with self._lock:
            if self._has_begun:
                await self._end(TaskState.TASK_STATE_COMPLETED, without_surrogates(text))
            elif not self._has_ended:
                self._has_ended = True
                message = new_text_message(without_surrogates(text), context_id=self._updater.context_id)
                await self._queue.enqueue_event(message)

    async def end(self, state: TaskState, text: str | None, facts: Mapping[str, Any] = _NO_FACTS) -> None:
        """End the task in a terminal `state`."""
        async with self._lock:
            await self._end(state, _sayable(text) if text else None, facts)

    async def pump(self, interval_s: float, still_working_s: float) -> None:
        """Send progress at most every `interval_s`, and a heartbeat after `still_working_s` without any."""
        # Clients disconnect after a time without data.
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(still_working_s):
                    await self._has_pending.wait()
            async with self._lock:
                if not self._has_ended:
                    if self._has_begun and not self._pending:
                        self._pending.append(_Update("Still working."))
                    await self._flush()
            await asyncio.sleep(interval_s)

    async def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
            status.timestamp.GetCurrentTime()
            task = Task(id=self._updater.task_id, context_id=self._updater.context_id, status=status)
            if self._request is not None:
                task.history.append(_without_secrets(self._request))
            await self._queue.enqueue_event(task)

    async def _flush(self) -> None:
        pending, self._pending = self._pending, []
        self._has_pending.clear()
        for begin in range(0, len(pending), _MAX_UPDATES):
            updates = pending[begin : begin + _MAX_UPDATES]
            await self._begin()
            text = _sayable("\n".join(update.text for update in updates))
            facts: dict[str, list[Any]] = {}
            for update in updates:
                for key, fact in update.facts.items():
                    facts.setdefault(key, []).append(fact)
            await self._send_status(TaskState.TASK_STATE_WORKING, text, facts)

    async def _end(self, state: TaskState, text: str | None, facts: Mapping[str, Any] = _NO_FACTS) -> None:
        if not self._has_ended:
            await self._begin()
            await self._flush()
            self._has_ended = True
            await self._send_status(state, text, facts)

    async def _send_status(self, state: TaskState, text: str | None, facts: Mapping[str, Any] = _NO_FACTS) -> None:
        message = None if text is None else self._updater.new_agent_message([Part(text=text)])
        metadata = {**self._metadata, **self._secrets, **facts}
        self._secrets = {}
        await self._updater.update_status(state, message, metadata=metadata)


@runtime_checkable
class TextExecutor(Protocol):
    """An agent that works on a task. When the task is cancelled, `execute` is cancelled and may clean up."""

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        """Work on `turn` and end the task through `sink`. An exception, or no end, makes the task failed."""
        ...


TextHandler = Callable[[AgentMessage], Awaitable[str]]
"""An agent that answers each message with a text. A `WabeError` becomes a failed task with its message."""


class TaskRuns(AgentExecutor):
    """Runs one agent on every message that the SDK delivers. `note_on_stop` is for work that `stop` ends."""

    def __init__(
        self,
        agent: TextExecutor | TextHandler,
        *,
        update_interval_s: float,
        still_working_s: float,
        note_on_stop: NoteOnStop = no_note,
    ) -> None:
        self._agent = agent
        self._note_on_stop = note_on_stop
        self._update_interval_s = update_interval_s
        self._still_working_s = still_working_s
        self._runs: dict[str, tuple[asyncio.Task[None], TaskSink]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one message until its task has ended. Raises only `CancelledError`."""
        turn, sink = _turn(context), TaskSink(context, event_queue)
        # In a separate asyncio task, so that this one can still send the end when the work is cancelled.
        work = asyncio.create_task(self._work(turn, sink))
        pump = asyncio.create_task(sink.pump(self._update_interval_s, self._still_working_s))
        self._runs[turn.task_id] = work, sink
        try:
            await asyncio.wait({work})
            # Before returning, because the SDK then closes the client's stream. Ignored if the work has ended its task.
            await sink.end(*sink.end_if_cancelled)
        finally:
            pump.cancel()
            work.cancel()
            del self._runs[turn.task_id]

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task as canceled, even if no work on it is running."""
        end = End(TaskState.TASK_STATE_CANCELED, "Cancelled on request.")
        if run := self._runs.get(context.task_id or ""):
            await _cancel(*run, end)
        else:
            await TaskSink(context, event_queue).end(*end)

    async def stop(self) -> None:
        """End all work in progress as failed because the server stops."""
        await asyncio.gather(*[_cancel(*run, self._stopped(run[1])) for run in self._runs.values()])

    def attendance(self, task_id: str) -> Attendance | None:
        """The attendance of a task being worked on."""
        run = self._runs.get(task_id)
        return run[1].attendance if run else None

    def _stopped(self, sink: TaskSink) -> End:
        note = self._note_on_stop(sink.metadata)
        return End(
            TaskState.TASK_STATE_FAILED, note.after("The agent was stopped before the work was done."), note.facts
        )

    async def _work(self, turn: AgentMessage, sink: TaskSink) -> None:
        try:
            if isinstance(self._agent, TextExecutor):
                await sink.begin()
                await self._agent.execute(turn, sink)
                # Ignored if the agent has ended the task itself.
                await sink.fail("The agent gave no answer.")
            else:
                # The task is announced only if it fails: a message alone costs less.
                await sink.reply(await self._agent(turn))
        except WabeError as error:
            await sink.fail(str(error))
        except Exception as error:
            log.exception("an agent failed")
            await sink.fail(f"The agent failed: {type(error).__name__}.")


def _without_secrets(request: Message) -> Message:
    """The request as kept in the task's history: without JSON, which may contain login cookies or passwords."""
    copy = Message()
    copy.CopyFrom(request)
    for part in copy.parts:
        if part.text.lstrip().startswith("{"):
            part.text = _NOT_KEPT
    return copy


async def _cancel(work: "asyncio.Task[None]", sink: TaskSink, end: End) -> None:
    sink.end_if_cancelled = end
    work.cancel()
    await asyncio.wait({work}, timeout=_CLEAN_UP_S)
    # If the work has not stopped by now, the client still receives the end.
    await sink.end(*end)


def _turn(context: RequestContext) -> AgentMessage:
    parts = context.message.parts if context.message else ()
    return AgentMessage(
        text=context.get_user_input(),
        context_id=context.context_id or "",
        task_id=context.task_id or "",
        files=tuple(TurnFile(part.raw, part.media_type) for part in parts if part.HasField("raw")),
        metadata=context.metadata,
    )


def as_prose(text: str) -> str:
    """`text`, changed if it could be read as JSON, because clients treat every JSON text as a result.

    JSON begins with a bracket, a quote, a digit, a sign or one of five literals. Other text is returned unchanged.
    """
    return text if _PROSE.match(text) else f"Note: {text}"


def _sayable(text: str) -> str:
    return as_prose(clip(without_surrogates(text), _MAX_MESSAGE_CHARS))
