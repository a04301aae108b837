"""Models that operate a browser by their provider's computer-use tool: what they are shown, and what they do.

The providers' own names and units are translated to gestures in pixels of the screenshot, so that nobody else has to
know them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar

from shared.models import Record
from shared.text import clip

M = TypeVar("M")
# To the right and down.
DIRECTIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
)
Button = Literal["left", "right", "middle"]


class Click(Record):
    """One or more clicks at a point."""

    x: int
    y: int
    button: Button = "left"
    count: int = 1


class Move(Record):
    """The mouse goes to a point."""

    x: int
    y: int


class Drag(Record):
    """From a point to another, with the left button held."""

    x: int
    y: int
    to_x: int
    to_y: int


class Scroll(Record):
    """The wheel turns over a point, by pixels to the right and down."""

    x: int
    y: int
    right: int = 0
    down: int = 0


class Type(Record):
    """Text into the focused element."""

    text: str


class Press(Record):
    """Keys pressed together, in the provider's spelling."""

    keys: tuple[str, ...]


class Wait(Record):
    """A pause."""

    seconds: float


class Visit(Record):
    """An address is opened."""

    url: str


class Go(Record):
    """One page back or forward."""

    direction: Literal["back", "forward"]


class Look(Record):
    """Nothing but another screenshot."""


class Unusable(Record):
    """An action that is unknown or malformed; `why` is for the model."""

    why: str


Gesture = Click | Move | Drag | Scroll | Type | Press | Wait | Visit | Go | Look | Unusable
Gestures = tuple[Gesture, ...]


def meaning_of(action: str, known: Mapping[str, M], carry_out: Callable[[M], Gestures]) -> Gestures:
    """What an action of a model means: `carry_out` gets what is `known` under its name.

    It raises `ValueError` for an action that is malformed.
    """
    shown = repr(clip(action, 40))
    if action not in known:
        return (Unusable(why=f"unknown action {shown}"),)
    try:
        return carry_out(known[action])
    except ValueError as error:
        # Pydantic's message has a line for each mistake.
        return (Unusable(why=f"the action {shown} is malformed: {clip(' '.join(str(error).split()), 200)}"),)


class View(Record):
    """What the model is shown: a screenshot with its size in pixels. `note` is what else it has to know."""

    url: str
    screenshot: bytes
    media_type: str
    width: int
    height: int
    note: str = ""


class Turn(Record):
    """A model's reply. Without gestures, `text` is its answer.

    `confirmation` says why the provider wants a person to confirm what the gestures do.
    """

    gestures: tuple[Gesture, ...] = ()
    text: str = ""
    confirmation: str | None = None


class Conversation(Protocol):
    """One attempt at a task."""

    async def ask(self, view: View) -> Turn:
        """Show what the last gestures led to. Raises a `ModelError`; asking again is then possible."""
        ...


class ComputerModel(Protocol):
    """A model with a computer-use tool."""

    @property
    def name(self) -> str:
        """`provider:model`, as in a scenario."""
        ...

    def converse(self, system: str, task: str) -> Conversation:
        """A new conversation."""
        ...

    async def aclose(self) -> None: ...
