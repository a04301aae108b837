"""A purple agent from one function: `decide(observation) -> Action`, served over A2A.

async def decide(observation: Observation) -> Action:
    return Action(tool="finish", params={"answer": f"I was asked to {observation.instruction}"})

serve(decide, name="my-agent", host="127.0.0.1", port=9019, card_url=None)
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from importlib import metadata
from typing import Generic, TypeVar

from starlette.applications import Starlette

from shared import models, protocol
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, run_server
from shared.a2a.tasks import Turn
from shared.errors import ObservationError
from shared.models import Action, Page, Record, ToolSpec
from shared.settings import Settings

__all__ = ["Action", "Decide", "Observation", "ParticipantOptions", "build_participant", "per_episode", "serve"]

MAX_EPISODES = 256
_T = TypeVar("_T")


class Observation(Record):
    """What a participant knows when it decides: the judge's message, and what stays true through the episode.

    `step` counts from 0; `feedback` says why the last reply failed, when it did. `message` is the judge's message
    alone, which holds the instruction in the first step only.
    """

    context_id: str
    step: int
    instruction: str
    website: str | None
    feedback: str | None
    tools: tuple[ToolSpec, ...]
    page: Page
    message: models.Observation


Reply = Action | str
"""What `decide` returns: an action, or text that is sent as it is."""

Decide = Callable[[Observation], Awaitable[Reply]]
"""May raise: the judge is then told that the participant failed, and why."""


class ParticipantOptions(Record):
    """What a participant is made with; each reads what it needs."""

    model: str | None = None
    script: str | None = None
    seed: int = 0
    settings: Settings = Settings()


def serve(
    decide: Decide,
    *,
    name: str,
    host: str = "127.0.0.1",
    port: int = 9019,
    card_url: str | None = None,
    description: str = "Plays web tasks for a WABE judge.",
) -> None:
    """Serve `decide` over A2A until SIGTERM or SIGINT. `card_url` is the address that the agent card names.

    Raises `ConfigError` when the port is taken.
    """
    url = card_url or address_of(host, port)
    app = build_participant(decide, name=name, card_url=url, description=description)
    run_server(app, host, port, before_shutdown=app.state.stop)


def build_participant(
    decide: Decide,
    *,
    name: str,
    card_url: str,
    description: str = "Plays web tasks for a WABE judge.",
) -> Starlette:
    """What `serve` serves, as an ASGI application."""
    skill = Skill(
        id="web-task", name="Web task", description="Sees a page and says what to do next.", tags=("web", "browser")
    )
    version = metadata.version("wabe")
    return build_app(
        _Player(decide),
        name=name,
        description=description,
        version=version,
        card_url=card_url,
        skills=[skill],
    )


def per_episode(create: Callable[[], Callable[[models.Observation], Awaitable[Reply]]]) -> Decide:
    """A `Decide` from agents that play one episode each: `create()` makes one, which is given every message of it."""
    episodes: _Newest[Callable[[models.Observation], Awaitable[Reply]]] = _Newest(MAX_EPISODES)

    async def decide(observation: Observation) -> Reply:
        play = episodes.get(observation.context_id) if observation.step else None
        if play is None:
            play = create()
        episodes.put(observation.context_id, play)
        return await play(observation.message)

    return decide


class _Newest(Generic[_T]):
    """A mapping that keeps the `limit` entries used last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, _T] = OrderedDict()

    def get(self, key: str) -> _T | None:
        return self._entries.get(key)

    def put(self, key: str, value: _T) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)


class _Episode(Record):
    """What stays true in one conversation, and how many observations it has had."""

    instruction: str
    website: str | None
    steps: int = 0


class _Player:
    """Reads each message, remembers each conversation's task, and renders the reply."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._episodes: _Newest[_Episode] = _Newest(MAX_EPISODES)

    async def __call__(self, turn: Turn) -> str:
        """The reply to one message. Raises `ObservationError` for a message that is not a judge's."""
        image = next((file for file in turn.files if file.media_type.startswith("image/")), None)
        if image is None:
            message = protocol.parse_observation(turn.text)
        else:
            message = protocol.parse_observation(turn.text, image.data, image.media_type)
        episode = self._episodes.get(turn.context_id)
        if message.instruction is not None:
            episode = _Episode(instruction=message.instruction, website=message.website)
        if episode is None:
            raise ObservationError(
                "this conversation began before this participant did, or too many began since: its task is not known",
                remedy="begin the episode again",
            )
        self._episodes.put(turn.context_id, episode.model_copy(update={"steps": episode.steps + 1}))
        observation = Observation(
            context_id=turn.context_id,
            step=episode.steps,
            instruction=episode.instruction,
            website=episode.website,
            feedback=message.feedback,
            tools=message.tools,
            page=message.page,
            message=message,
        )
        reply = await self._decide(observation)
        return reply if isinstance(reply, str) else protocol.render_reply(reply)
