"""The attempts that wait for a person, one of which is in front of them."""

import asyncio
from concurrent.futures import Future
from typing import Any, NamedTuple

from pydantic import Field

from judge.plugins.play_page.gestures import AimPlace, Gesture, action_of, aim_at
from judge.plugins.play_page.views import element_view, view_of
from participants.base import Observation
from shared.errors import ConfigError
from shared.models import Action, Record
from shared.replies import ENDING_TOOLS
from shared.snapshot import Snapshot, parse_snapshot

# Recorded with each action that a browser sent which says of itself that a program drives it.
BY_PROGRAM = "Sent by a program that drives the page for people, not by a person."
_GONE = "reload the page, and look at it again"


class Move(Record):
    """What the page sends: a gesture on the observation with this number. `by_program` is `navigator.webdriver`."""

    turn: int
    do: Gesture = Field(discriminator="kind")
    by_program: bool = False


class Pass(Record):
    """The person goes on with another task that waits, because the judge has ended this one."""

    turn: int


class _Turn(NamedTuple):
    """An observation that waits for an action."""

    number: int
    observation: Observation
    snapshot: Snapshot
    done: "asyncio.Future[Action]"


class Desk:
    """Shows one attempt after the other, and takes what the person does for it.

    Judges do not announce that an attempt is over. Only the one in front is answered, so a new one means that the judge
    has ended it.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Turn] = {}
        self._front: str | None = None
        self._turns = 0
        self._version = 0
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, observation: Observation) -> Action:
        """What the person does on this observation, whenever they do it."""
        self._loop = asyncio.get_running_loop()
        key = observation.context_id
        if observation.step == 0 and self._front not in self._waiting:
            self._front = None
        self._turns += 1
        snapshot = parse_snapshot(observation.page.snapshot)
        turn = self._waiting[key] = _Turn(self._turns, observation, snapshot, self._loop.create_future())
        self._tell()
        try:
            return await turn.done
        finally:
            if self._waiting.get(key) is turn:
                del self._waiting[key]
            if not turn.done.done() or turn.done.cancelled():
                # The judge has given up, so the attempt is over.
                self._front = None if self._front == key else self._front
            self._tell()

    async def state(self, last_seen: int, wait_s: float) -> dict[str, Any]:
        """What the page shows, once it is another one than version `last_seen`, or after `wait_s`."""
        if last_seen == self._version:
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                pass
        front = self.front
        others = len(self._waiting) - (front is not None)
        state_table = {"version": self._version, "others": others, "turns": self._turns}
        if front is None:
            return state_table | {"phase": "sent" if self._front else "idle"}
        view = view_of(front.observation, front.snapshot)
        return state_table | {"phase": "play", "turn": front.number, "view": view}

    @property
    def front(self) -> _Turn | None:
        """The observation in front of the person; `None` while the judge acts, and without any."""
        if self._front is None:
            self._front = next(iter(self._waiting), None)
        return self._waiting.get(self._front) if self._front else None

    def aim(self, turn: int, place: AimPlace) -> dict[str, Any] | None:
        """The element that a gesture at this place is for, if it has one. Raises `ConfigError`."""
        front = self._front_turn(turn)
        node = aim_at(place, front.snapshot)
        return None if node is None else element_view(node, front.snapshot)

    def screenshot(self, turn: int) -> tuple[bytes, str] | None:
        """The screenshot of an observation in front, with its type."""
        front = self.front
        if front is None or front.number != turn or front.observation.page.screenshot is None:
            return None
        return front.observation.page.screenshot, front.observation.page.media_type

    def take(self, change: Move | Pass) -> dict[str, Any]:
        """Take what the page sends; called outside of the event loop. Raises `ConfigError`."""
        if self._loop is None:
            raise ConfigError("no task is waiting", remedy=_GONE)
        future: Future[dict[str, Any]] = asyncio.run_coroutine_threadsafe(self._take(change), self._loop)
        return future.result()

    async def _take(self, change: Move | Pass) -> dict[str, Any]:
        if isinstance(change, Pass):
            if self.front is None:
                self._front = None
                self._tell()
            return {}
        front = self._front_turn(change.turn)
        action = action_of(change.do, front.snapshot, front.observation.tools)
        if change.by_program:
            action = action.model_copy(update={"thought": BY_PROGRAM})
        if action.tool in ENDING_TOOLS:
            self._front = None
        del self._waiting[front.observation.context_id]
        front.done.set_result(action)
        self._tell()
        return {"tool": action.tool}

    def _front_turn(self, number: int) -> _Turn:
        front = self.front
        if front is None or front.number != number:
            raise ConfigError("this is not the current page any more", remedy=_GONE)
        return front

    def _tell(self) -> None:
        self._version += 1
        self._news.set()
        self._news = asyncio.Event()
