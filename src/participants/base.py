"""A participant (purple agent) from one function: `decide(observation) -> Action`, served over A2A.

async def decide(observation: Observation) -> Action:
    return Action(tool="finish", params={"answer": f"My task was {observation.instruction}"})

serve(decide, name="my-agent", host="127.0.0.1", port=9019, card_url=None)
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from shared import models, protocol
from shared.a2a.extensions import ATTEMPT_END
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, run_server
from shared.a2a.tasks import AgentMessage
from shared.errors import ObservationError
from shared.llm import attempts
from shared.models import Action, Record
from shared.settings import Settings

__all__ = ["Action", "Decide", "Observation", "ParticipantOptions", "build_participant", "per_attempt", "serve"]

# Not every judge announces the end of an attempt, so old attempts are dropped when there are too many.
MAX_ATTEMPTS = 256
_DESCRIPTION = "Performs web tasks for a WABE judge."
_T = TypeVar("_T")


class Observation(models.ObservationMessage):
    """The judge's message, with the instruction and the website in every step.

    `step` counts the messages from 0; `feedback` says why the last reply failed, if it did. `message` is the original
    message, of which only the first one of an attempt has the instruction.
    """

    context_id: str
    step: int
    instruction: str
    message: models.ObservationMessage

    @property
    def text(self) -> str:
        """The judge's message as text for a model: the page, the tools and the reply format."""
        return protocol.render_observation(self.message)


Reply = Action | list[Action] | str
"""What `decide` returns: an action, up to `observation.max_actions` of them, or text that is sent unchanged."""


def one_or_all(actions: list[Action]) -> Action | list[Action]:
    """What to reply: a judge that takes one action per reply takes no list."""
    return actions[0] if len(actions) == 1 else actions


Decide = Callable[[Observation], Awaitable[Reply]]
"""If it raises, the judge receives the error as the participant's failure. One with `aclose` is closed at the end."""

OnEnd = Callable[[str], Awaitable[None]]
"""Called with the `context_id` of an attempt that has ended, by judges that announce it."""


class ParticipantOptions(Record):
    """The options for creating a participant; each participant uses those it needs."""

    model: str | None = None
    script: str | None = None
    close: tuple[str, ...] = ()
    reload: bool = False
    seed: int = 0
    note: str = ""
    command: str | None = None
    dialect: str | None = None
    sandbox: bool = False
    fresh: Literal["attempt", "run"] = "attempt"
    logs: Path | None = None
    # The day of the run; without it, the present day counts.
    today: date | None = None
    settings: Settings = Settings()


def serve(
    decide: Decide,
    *,
    name: str,
    host: str = "127.0.0.1",
    port: int = 9019,
    card_url: str | None = None,
    description: str = _DESCRIPTION,
    version: str | None = None,
    routes: Sequence[BaseRoute] = (),
    on_end: OnEnd | None = None,
) -> None:
    """Serve `decide` over A2A until SIGTERM or SIGINT. `card_url` is the address in the agent card.

    `version` tells the agent's versions apart in reports and tables; without it, the card has WABE's. `routes`
    are pages of the agent's own. `on_end` is called with the `context_id` of an attempt that has ended.

    Raises `ConfigError` when the port is taken.
    """
    address = card_url or address_of(host, port)
    app = build_participant(
        decide, name=name, card_url=address, description=description, version=version, routes=routes, on_end=on_end
    )
    run_server(app, host, port, before_shutdown=app.state.stop)


def build_participant(
    decide: Decide,
    *,
    name: str,
    card_url: str,
    description: str = _DESCRIPTION,
    version: str | None = None,
    routes: Sequence[BaseRoute] = (),
    on_end: OnEnd | None = None,
) -> Starlette:
    """The ASGI application that `serve` serves."""

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        try:
            yield
        finally:
            if (close := getattr(decide, "aclose", None)) is not None:
                await close()

    skill = Skill(
        id="web-task", name="Web task", description="Chooses the next action on a page.", tags=("web", "browser")
    )
    return build_app(
        _Participant(decide, on_end),
        name=name,
        description=description,
        version=version or metadata.version("wabe"),
        card_url=card_url,
        skills=[skill],
        extra_routes=routes,
        extensions={ATTEMPT_END: {}, **getattr(decide, "extensions", {})},
        serving=serving,
    )


class per_attempt:  # called like a function
    """A `Decide` from one agent per attempt: `create` is called with an attempt's first observation."""

    def __init__(self, create: Callable[[Observation], Decide]) -> None:
        self._create = create
        self._agents: dict[str, Decide] = {}

    async def __call__(self, observation: Observation) -> Reply:
        """The reply of the attempt's agent."""
        # A first step in a known context begins a new attempt.
        agent = self._agents.get(observation.context_id) if observation.step else None
        agent = agent or self._create(observation)
        _keep_newest(self._agents, observation.context_id, agent)
        return await agent(observation)

    async def on_end(self, context_id: str) -> None:
        """Forget the attempt's agent."""
        self._agents.pop(context_id, None)


def _keep_newest(entries: dict[str, _T], key: str, value: _T) -> None:
    # Re-inserted at the end, so that the first entry is the least recently used.
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > MAX_ATTEMPTS:
        del entries[next(iter(entries))]


class _Conversation(NamedTuple):
    """The constant data of one conversation, and its number of observations so far."""

    instruction: str
    website: str | None
    steps: int = 0


class _Participant:
    """Reads each message, remembers the task of each conversation, and renders the reply."""

    def __init__(self, decide: Decide, on_end: OnEnd | None = None) -> None:
        self._decide = decide
        self._on_end = on_end or getattr(decide, "on_end", None)
        self._attempts: dict[str, _Conversation] = {}

    async def __call__(self, turn: AgentMessage) -> str:
        """The reply to one message. Raises `ObservationError` for a message not from a judge."""
        if ATTEMPT_END in turn.metadata:
            if self._attempts.pop(turn.context_id, None) is not None and self._on_end is not None:
                await self._on_end(turn.context_id)
            return ""
        # The judge sends one screenshot, or none.
        images = [(file.data, file.media_type) for file in turn.files if file.media_type.startswith("image/")]
        screenshot = images[0] if images else ()
        message = protocol.parse_observation(turn.text, *screenshot)
        if message.instruction is not None:
            attempt = _Conversation(message.instruction, message.website)
        elif turn.context_id in self._attempts:
            attempt = self._attempts[turn.context_id]
        else:
            raise ObservationError(
                "the task of this conversation is unknown: it began before this participant was started, or too many"
                " others have begun since",
                remedy="begin a new attempt",
            )
        _keep_newest(self._attempts, turn.context_id, attempt._replace(steps=attempt.steps + 1))
        constant = {"instruction": attempt.instruction, "website": attempt.website}
        fields = dict(message) | constant | {"context_id": turn.context_id, "step": attempt.steps, "message": message}
        attempts.attempt.set(turn.context_id)
        reply = await self._decide(Observation(**fields))
        if isinstance(reply, str):
            return reply
        return protocol.render_reply(one_or_all(reply) if isinstance(reply, list) else reply)
