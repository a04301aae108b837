"""A session of an environment: one trainer that plays one episode after another. Each episode is an attempt at a task.

Whatever the policy replies is a participant's reply and never an error; whatever else goes wrong is an error and never
a reward.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from judge.environment.errors import EpisodeFault, NotReset, SessionClosed
from judge.environment.participant import SentObservation, Trainer
from judge.records.tasks import Task
from shared.models import ObservationMessage, Record
from shared.protocol import parse_observation, render_observation

# An action in progress ends within a step's limit. A browser that takes longer to be freed is stopped.
_LEAVING_S = 5.0


class SessionState(Record):
    """What a client may know of a session. `step_count`: the replies that were answered in this episode."""

    episode_id: str | None = None
    task_id: str | None = None
    step_count: int = 0


class StepResult(NamedTuple):
    """The answer to a reset or a step.

    `message` is what a participant receives, `None` if the episode is over. `text` is its text, in which only the first
    observation of an episode has the tools, unless they have changed. `screenshot` is the page's, if the host sends
    images. `reward` is `None` except at the end of an episode, where `done` is true.
    """

    message: ObservationMessage | None
    text: str
    screenshot: bytes | None
    media_type: str
    reward: float | None
    done: bool


class Host(Protocol):
    """What a session needs of its host."""

    sends_images: bool

    def trainer(self) -> Trainer:
        """The participant of another episode."""
        ...

    def task(self, task_id: str | None, seed: int | None, number: int) -> Task:
        """The task of a session's episode with this number, from 0. Raises `ConfigError` for one not on offer."""
        ...

    def play(self, task: Task, trainer: Trainer) -> Coroutine[Any, Any, float]:
        """Play an episode to its end. Returns its reward; raises only `EpisodeFault`."""
        ...

    def release(self, session: "EnvironmentSession") -> None:
        """The session is closed, and its place free."""
        ...


@dataclass
class _Episode:
    trainer: Trainer
    playing: asyncio.Task[float]
    state: SessionState
    tools: object = None


class EnvironmentSession:
    """One client of a host. Its methods may be called one at a time: a call before the last one's answer closes it.

    `closed` is set once the session is closed, by its client, by the host, or because it was idle in an episode.
    """

    def __init__(self, host: Host) -> None:
        self.id = secrets.token_urlsafe(24)
        self.closed = asyncio.Event()
        self._host = host
        self._episode: _Episode | None = None
        self._state = SessionState()
        self._episodes = 0
        self._is_asked = False
        self._closing: asyncio.Task[None] | None = None
        # Of an episode that ended while no answer was due.
        self._fault: EpisodeFault | None = None

    async def reset(
        self, task_id: str | None = None, *, seed: int | None = None, episode_id: str | None = None
    ) -> StepResult:
        """Begin an episode: at this task, at one that the seed chooses, or at the next one in order.

        An episode in progress is abandoned. Returns the first observation, or the end of an episode that ended before
        it. Raises `ConfigError` for a task not on offer, `EpisodeFault` if it cannot be played, and
        `SessionClosed`.
        """
        async with self._question():
            task = self._host.task(task_id, seed, self._episodes)
            await self._leave("the environment was reset")
            self._episodes += 0 if task_id is not None or seed is not None else 1
            trainer = self._host.trainer()
            self._state = SessionState(episode_id=episode_id or secrets.token_hex(8), task_id=task.task_id)
            playing = asyncio.create_task(self._host.play(task, trainer))
            self._episode = _Episode(trainer, playing, self._state)
            playing.add_done_callback(self._ended)
            return await self._answer(self._episode)

    async def step(self, reply: object) -> StepResult:
        """Answer the last observation: with a participant's reply as text, or with an action as a mapping.

        Raises `EpisodeFault` if the episode ended without a reward, `NotReset` outside of one, and `SessionClosed`.
        """
        async with self._question():
            if self._episode is None:
                raise NotReset("the environment was not reset", remedy="call reset first, and after each end")
            self._episode.trainer.reply(reply_text(reply))
            result = await self._answer(self._episode)
            self._state = self._state.model_copy(update={"step_count": self._state.step_count + 1})
            return result

    def state(self) -> SessionState:
        """The episode in progress, or the last one."""
        return self._state

    async def close(self, why: str = "the session was closed") -> None:
        """Abandon the episode in progress, free its browser, and give the place back. May be called again."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(why))
        # Finished even if this call is cancelled.
        await asyncio.shield(self._closing)

    async def _close(self, why: str) -> None:
        try:
            await self._leave(why)
        finally:
            self.closed.set()
            self._host.release(self)

    @asynccontextmanager
    async def _question(self) -> AsyncIterator[None]:
        """One call. A second one at the same time closes the session: its client would misread the answers."""
        if self._closing is not None:
            fault, self._fault = self._fault, None
            raise fault or SessionClosed("the session is closed", remedy="open another one")
        if self._is_asked:
            await self.close("a question came before the last answer")
            raise SessionClosed("a question came before the last answer, so the session was closed")
        self._is_asked = True
        try:
            yield
        except asyncio.CancelledError:
            # The client does not wait any longer, and would take the answer for that to its next question.
            await self.close("its client stopped waiting for an answer")
            raise
        finally:
            self._is_asked = False

    async def _answer(self, episode: _Episode) -> StepResult:
        """The next observation, or the end of the episode."""
        observing = asyncio.create_task(episode.trainer.observation())
        try:
            await asyncio.wait({observing, episode.playing}, return_when=asyncio.FIRST_COMPLETED)
            if not episode.playing.done():
                return self._observed(episode, observing.result())
        finally:
            observing.cancel()
        if self._episode is episode:
            self._episode = None
        try:
            return StepResult(None, "", None, "", reward=episode.playing.result(), done=True)
        except asyncio.CancelledError:
            raise EpisodeFault("lost", "user", "the session was closed") from None

    def _observed(self, episode: _Episode, observation: SentObservation) -> StepResult:
        message = parse_observation(observation.text, observation.screenshot, observation.media_type)
        is_known, episode.tools = episode.tools == message.tools, message.tools
        text = render_observation(message, with_tools=not is_known)
        image = observation.screenshot if self._host.sends_images else None
        return StepResult(message, text, image, observation.media_type, reward=None, done=False)

    async def _leave(self, why: str) -> None:
        """Abandon the episode in progress, if there is one, and wait until its browser is free."""
        episode, self._episode = self._episode, None
        if episode is None:
            return
        episode.trainer.leave(why)
        await asyncio.wait({episode.playing}, timeout=_LEAVING_S)
        episode.playing.cancel()
        await asyncio.wait({episode.playing})

    def _ended(self, playing: asyncio.Task[float]) -> None:
        """An episode has ended. If no answer is due, its client was idle, and the session is closed."""
        if self._is_asked or self._closing is not None or self._episode is None or playing.cancelled():
            return
        fault = playing.exception()
        self._fault = fault if isinstance(fault, EpisodeFault) else None
        self._episode = None
        self._closing = asyncio.create_task(self._close("it was idle"))


def reply_text(reply: object) -> str:
    """Whatever a policy gave, as a participant's reply. An object is an action, as the protocol writes one."""
    if isinstance(reply, str):
        return reply
    try:
        text = json.dumps(dict(reply) if isinstance(reply, Mapping) else reply)
    # No JSON: then it cannot be an action either.
    except (TypeError, ValueError, RecursionError):
        return f"an object of type {type(reply).__name__}"
    # Tags in its strings must not be taken for those around it.
    text = text.replace("<", "\\u003c")
    return f"<json>{text}</json>" if isinstance(reply, Mapping) else text


def action_schema() -> dict[str, Any]:
    """The JSON schema of an action, with exactly one required key: clients put a reply there instead of an action."""
    return {
        # Not "Action", by which verifiers knows a server of MCP tools.
        "title": "BrowserAction",
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "A tool's name, as the first observation lists them"},
            "params": {"type": "object", "description": "The tool's parameters"},
            "thought": {"type": "string", "description": "Recorded, and never judged"},
        },
        "required": ["tool"],
    }
