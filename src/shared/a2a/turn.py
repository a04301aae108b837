"""What an agent of ours implements to be served over A2A, without a word of the protocol itself."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from shared.models import Record

_PROSE = re.compile(r"(?!(?:true|false|null|NaN|Infinity)\Z)[^\W\d_]")


class TurnFile(NamedTuple):
    """A file of a message, as the sender encoded it."""

    data: bytes
    media_type: str


class Turn(Record):
    """One message to an agent. `text` is its text parts, one below the other; links to files elsewhere are left out."""

    text: str
    context_id: str
    task_id: str
    files: tuple[TurnFile, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class Skill(Record):
    """One thing an agent can do, for its card. A2A asks for at least one."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]


class TaskSink(Protocol):
    """Where an agent says how its work goes. After an end (the last four) every further call is ignored."""

    async def annotate(self, metadata: Mapping[str, str]) -> None:
        """Add metadata to the task, sent with its next status and every later one."""
        ...

    async def update(self, text: str) -> None:
        """Progress, as prose. What comes faster than the sink sends is put together, one text below the other."""
        ...

    async def artifact(self, name: str, texts: list[str]) -> None:
        """A result, whole, one text part for each text."""
        ...

    async def complete(self, text: str | None = None) -> None:
        """End: done."""
        ...

    async def fail(self, text: str) -> None:
        """End: the work was begun and could not be done."""
        ...

    async def reject(self, text: str) -> None:
        """End: the request cannot be served."""
        ...

    async def reply(self, text: str) -> None:
        """End: answer with one message and no task, the cheapest way. Only as the first and only call."""
        ...


@runtime_checkable
class TextExecutor(Protocol):
    """An agent that works on a task. When the task is cancelled, `execute` is cancelled; it may clean up then."""

    async def execute(self, turn: Turn, sink: TaskSink) -> None:
        """Work on `turn` and end it at `sink`. An exception, or no end, makes the task failed."""
        ...


TextHandler = Callable[[Turn], Awaitable[str]]
"""An agent that answers each message with a text. A `WabeError` becomes a failed task that carries its message."""


def as_prose(text: str) -> str:
    """`text`, made so that no reader can take it for JSON: clients take every JSON text for a result.

    JSON begins with a bracket, a quote, a digit, a sign or one of five words. Anything else stays as it is.
    """
    return text if _PROSE.match(text) else f"Note: {text}"
