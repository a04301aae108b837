"""One client's conversation with its session: a frame in, a frame out. Knows nothing of sockets."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from judge.environment.errors import EpisodeFault, SessionMisused
from judge.environment.session import SessionState, StepResult
from judge.plugins.openenv.frames import (
    Ask,
    Picture,
    PolicyReply,
    Refused,
    Reset,
    Rpc,
    error_frame,
    observation_frame,
    read_frame,
    rpc_frame,
    state_frame,
)
from judge.plugins.openenv.offers import Offers
from shared.errors import ConfigError
from shared.models import ObservationMessage, Record, ToolSpec

_log = logging.getLogger(__name__)


class WireSession(Protocol):
    """An attempt that a client plays: `judge.environment.session.EnvironmentSession`, here or in another process."""

    async def reset(
        self, task_id: str | None = None, *, seed: int | None = None, episode_id: str | None = None
    ) -> StepResult: ...

    async def step(self, reply: str | Mapping[str, Any]) -> StepResult: ...

    def state(self) -> SessionState: ...

    async def close(self) -> None: ...


class View(Record):
    """How observations are sent: as the text of a participant's message or as its values, and with screenshots."""

    as_message: bool = False
    has_pictures: bool = False


@dataclass
class ClientConversation:
    """Answers the frames of one client, one after another."""

    session: WireSession
    offers: Offers
    view: View
    _tools: tuple[ToolSpec, ...] | None = None

    async def answer(self, text: str) -> str | None:
        """The answer to a frame; `None` if the client has taken its leave."""
        frame = read_frame(text)
        if isinstance(frame, Refused):
            return frame.answer
        if isinstance(frame, Rpc):
            return rpc_frame(frame.request)
        if frame == Ask("close"):
            return None
        try:
            return await self._done(frame)
        except ConfigError as error:
            errors = [{"type": "value_error", "loc": ["data"], "msg": str(error)}]
            return error_frame("VALIDATION_ERROR", str(error), errors=errors)
        except (EpisodeFault, SessionMisused) as error:
            return error_frame("EXECUTION_ERROR", str(error))
        # Isolation boundary: an internal error fails only this episode. Its text may quote the task's checks.
        except Exception as error:  # noqa: BLE001
            _log.exception("a session failed")
            return error_frame("EXECUTION_ERROR", f"aborted: internal: {type(error).__name__}; see the server's log")

    async def _done(self, request: Reset | PolicyReply | Ask) -> str:
        if isinstance(request, Ask):
            return state_frame(self.session.state())
        if isinstance(request, Reset):
            task_id = self.offers.chosen(request)
            self._tools = None
            return self._seen(await self.session.reset(task_id, seed=request.seed, episode_id=request.episode_id))
        return self._seen(await self.session.step(request.reply))

    def _seen(self, result: StepResult) -> str:
        """The observation. A reward is a number exactly where the episode is done, whatever a session returns."""
        if (result.reward is None) is result.done or (result.reward is not None and not math.isfinite(result.reward)):
            return error_frame("EXECUTION_ERROR", "unscored: internal: the judge gave no reward for this episode")
        picture = None
        if self.view.has_pictures and result.screenshot is not None:
            picture = Picture(result.screenshot, result.media_type)
        fields = {"message": self._message(result.message)} if self.view.as_message else {"text": result.text}
        return observation_frame(fields, reward=result.reward, done=result.done, picture=picture)

    def _message(self, message: ObservationMessage | None) -> dict[str, Any] | None:
        """The values of a participant's message; the tools in the first one only, unless they change."""
        if message is None:
            return None
        values = message.model_dump(mode="json", exclude_defaults=True, exclude={"page": {"screenshot"}})
        if message.tools == self._tools:
            del values["tools"]
        self._tools = message.tools
        return values
