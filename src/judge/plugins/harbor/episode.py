"""The one episode that an agent plays, whoever connects: its tools, its actions one at a time, and its verdict."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from judge.environment.errors import EpisodeFault
from judge.environment.session import StepResult
from judge.plugins.harbor.verdict import EpisodeVerdict
from shared.models import ObservationMessage, ToolSpec
from shared.protocol import render_observation

CURRENT_PAGE = ToolSpec(
    name="current_page",
    description="Show the task and the page as they were last observed. Takes no action.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)
# An agent that stops without `finish` has nothing more to say, as a participant that sends empty replies.
_NOTHING = ""
_OVER = "The task has ended."
_FAULT = "The task cannot be continued, through no fault of yours. Stop here."
_BUSY = "Too many calls at once. Call one tool after another."
# An agent may call some tools at the same time, but not fill the memory with calls that wait.
_MOST_WAITING = 32
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class PlayedSession(Protocol):
    """What is used of an environment's session."""

    async def reset(self, task_id: str) -> StepResult: ...

    async def step(self, reply: object) -> StepResult: ...

    async def close(self) -> None: ...


class ToolAnswer(NamedTuple):
    """What a call of a tool returns. `is_error`: no page follows."""

    text: str
    screenshot: bytes | None = None
    media_type: str = ""
    is_error: bool = False


class AgentEpisode:
    """An episode at one task, which begins with the first request of any client.

    Clients that connect later, or again, play the same episode: they can only be the same agent. Calls are executed in
    the order in which they arrive. A client that goes away in the middle of a call does not end it: the action is
    executed, and the next call continues from the page after it.
    """

    def __init__(self, session: PlayedSession, task_id: str) -> None:
        self._session = session
        self._task_id = task_id
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._running: set[asyncio.Task[Any]] = set()
        # What the first observation says is said again, because a client may join later.
        self._first: ObservationMessage | None = None
        self._last: StepResult | None = None
        self._verdict: EpisodeVerdict | None = None
        self._is_ending = False

    async def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the task."""
        await self._in_turn(self._begin)
        offered = self._first.tools if self._first else ()
        return (CURRENT_PAGE, *offered)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Execute an action, and observe the page after it. Whatever is called is the agent's reply, never an error."""
        if self._waiting >= _MOST_WAITING:
            return ToolAnswer(_BUSY, is_error=True)
        if name == CURRENT_PAGE.name:
            return await self._in_turn(self._looked)
        return await self._in_turn(lambda: self._acted({"tool": name, "params": dict(arguments)}))

    async def end(self) -> EpisodeVerdict:
        """The verdict. An episode that has not ended is ended as it is: without an answer, as a failure."""
        # The agent is gone, so no call that still waits is executed.
        self._is_ending = True
        return await self._in_turn(self._ended)

    async def _in_turn(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do one thing after another, to the end even if its caller does not wait any longer."""

        async def alone() -> _T:
            async with self._turn:
                return await work()

        self._waiting += 1
        task = asyncio.create_task(alone())
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._waiting -= 1
        self._running.discard(task)
        # Its caller may be gone: an exception that nobody reads is logged as one.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a call failed", exc_info=error)

    async def _begin(self) -> None:
        if self._last is None and self._verdict is None:
            await self._answered(self._session.reset(self._task_id))
            self._first = self._last.message if self._last else None

    async def _looked(self) -> ToolAnswer:
        await self._begin()
        if self._verdict is not None:
            return self._over()
        return self._answer(is_whole=True)

    async def _acted(self, reply: object) -> ToolAnswer:
        if self._is_ending:
            return ToolAnswer(_OVER, is_error=True)
        await self._begin()
        if self._verdict is None:
            await self._answered(self._session.step(reply))
        return self._over() if self._verdict is not None else self._answer()

    async def _ended(self) -> EpisodeVerdict:
        await self._begin()
        while self._verdict is None:
            await self._answered(self._session.step(_NOTHING))
        return self._verdict

    async def _answered(self, question: Awaitable[StepResult]) -> None:
        """The session's answer becomes the last observation, or the verdict."""
        try:
            self._last = await question
        except EpisodeFault as fault:
            self._verdict = EpisodeVerdict.of_fault(fault)
            _log.warning("task %s: %s", self._task_id, fault)
            return
        # Isolation boundary: an internal error is a verdict as well, and no answer of a tool.
        except Exception as error:  # noqa: BLE001
            _log.exception("task %s", self._task_id)
            self._verdict = EpisodeVerdict.of_fault(EpisodeFault("aborted", "internal", type(error).__name__))
            return
        if self._last.done:
            self._verdict = EpisodeVerdict.of_reward(self._last.reward)

    def _over(self) -> ToolAnswer:
        """What an agent may know of the end: whether to stop, but not what was decided."""
        assert self._verdict is not None
        return ToolAnswer(_OVER if self._verdict.reward is not None else _FAULT, is_error=self._verdict.reward is None)

    def _answer(self, *, is_whole: bool = False) -> ToolAnswer:
        """The last observation. `is_whole`: with what only the first one says."""
        assert self._last is not None
        assert self._first is not None
        message = self._last.message
        assert message is not None
        if is_whole:
            message = message.model_copy(
                update={"instruction": self._first.instruction, "website": self._first.website}
            )
        # The client has the tools' schemas, unless the page has added one.
        text = render_observation(message, with_tools=message.tools != self._first.tools)
        return ToolAnswer(text, self._last.screenshot, self._last.media_type)

    async def aclose(self) -> None:
        """Close the session. An episode in progress is abandoned."""
        await self._session.close()
        for task in tuple(self._running):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
