"""The trainer as the participant of an attempt: its observations and its replies are in two queues of this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.errors import AttemptAbandoned, ParticipantError
from shared.protocol import Participant
from shared.text import without_surrogates


class SentObservation(NamedTuple):
    """What a participant is sent: the message's text, and the screenshot of its page."""

    text: str
    screenshot: bytes | None
    media_type: str


@dataclass
class Trainer:
    """The participant of one episode. An episode in which no reply comes for `idle_s` is abandoned.

    `has_observed`: an observation was sent, so that nothing may be played again.
    """

    idle_s: float
    max_reply_bytes: int
    has_observed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._observations: asyncio.Queue[SentObservation] = asyncio.Queue()
        self._replies: asyncio.Queue[str | None] = asyncio.Queue()
        self._gone: str | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Participant]:
        """The connection to this participant, for an attempt."""
        yield self

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        """Pass an observation on, and wait for the reply. Raises `AttemptAbandoned` if the trainer is gone or idle.

        Raises `ParticipantError` for too large a reply, as the connection to any participant does.
        """
        if self._gone is None:
            self.has_observed = True
            self._observations.put_nowait(SentObservation(text, image, media_type))
        try:
            async with asyncio.timeout(self.idle_s):
                reply = None if self._gone else await self._replies.get()
        except TimeoutError:
            raise AttemptAbandoned(f"no action came within {self.idle_s:g} s") from None
        if reply is None:
            raise AttemptAbandoned(self._gone or "")
        if len(reply.encode()) > self.max_reply_bytes:
            raise ParticipantError(f"the reply has more than {self.max_reply_bytes} bytes")
        return reply

    async def observation(self) -> SentObservation:
        """The next observation, as soon as there is one."""
        return await self._observations.get()

    def reply(self, text: str) -> None:
        """Reply to the last observation."""
        self._replies.put_nowait(without_surrogates(text))

    def leave(self, why: str) -> None:
        """Abandon the episode, at the latest when the step in progress has ended."""
        self._gone = why
        self._replies.put_nowait(None)
