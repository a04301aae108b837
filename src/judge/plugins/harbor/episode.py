"""The one episode that an agent plays, whoever connects: its actions as turns of a session, and its verdict."""

import logging
from collections.abc import Awaitable
from typing import Protocol

from judge.environment.errors import EpisodeFault
from judge.environment.session import StepResult
from judge.plugins.harbor.verdict import EpisodeVerdict
from shared.mcp_tools import FAULT, TaskOver, TaskTools, TurnPage

# An agent that stops without `finish` has nothing more to say, as a participant that sends empty replies.
_NOTHING = ""
_log = logging.getLogger(__name__)


class PlayedSession(Protocol):
    """What is used of an environment's session."""

    async def reset(self, task_id: str) -> StepResult: ...

    async def step(self, reply: object) -> StepResult: ...

    async def close(self) -> None: ...


class AgentEpisode:
    """An episode at one task, played with its `tools`, which begins with the first request of any client."""

    def __init__(self, session: PlayedSession, task_id: str) -> None:
        self._session = session
        self._task_id = task_id
        self._verdict: EpisodeVerdict | None = None
        self._is_ending = False
        self.tools = TaskTools(self)

    async def begin(self) -> TurnPage:
        """The first observation. Raises `TaskOver`."""
        return await self._answered(self._session.reset(self._task_id))

    async def act(self, reply: object) -> TurnPage:
        """Execute a reply, and observe the page after it. Raises `TaskOver`."""
        if self._is_ending:
            raise TaskOver(is_fault=True)
        return await self._answered(self._session.step(reply))

    async def end(self) -> EpisodeVerdict:
        """The verdict. An episode that has not ended is ended as it is: without an answer, as a failure."""
        # The agent is gone, so no call that still waits is executed.
        self._is_ending = True
        return await self.tools.in_turn(self._ended)

    async def aclose(self) -> None:
        """Close the session. An episode in progress is abandoned."""
        await self._session.close()
        await self.tools.aclose()

    async def _ended(self) -> EpisodeVerdict:
        await self.tools.begin()
        while self._verdict is None:
            try:
                await self._answered(self._session.step(_NOTHING))
            except TaskOver:
                break
        assert self._verdict is not None
        return self._verdict

    async def _answered(self, question: Awaitable[StepResult]) -> TurnPage:
        """The session's next observation. The agent may know whether to stop, but not what was decided."""
        try:
            answer = await question
        except EpisodeFault as fault:
            self._verdict = EpisodeVerdict.of_fault(fault)
            _log.warning("task %s: %s", self._task_id, fault)
            raise TaskOver(FAULT, is_fault=True) from None
        # Isolation boundary: an internal error is a verdict as well, and no answer of a tool.
        except Exception as error:  # noqa: BLE001
            _log.exception("task %s", self._task_id)
            self._verdict = EpisodeVerdict.of_fault(EpisodeFault("aborted", "internal", type(error).__name__))
            raise TaskOver(FAULT, is_fault=True) from None
        if answer.done:
            self._verdict = EpisodeVerdict.of_reward(answer.reward)
            if self._verdict.reward is None:
                raise TaskOver(FAULT, is_fault=True)
            raise TaskOver
        assert answer.message is not None
        return TurnPage(answer.message, answer.screenshot, answer.media_type)
