"""Findings of checks, as data and in words. Recorded with the verdict, so that no reader has to parse the words."""

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field

from shared.models import Record, omit_default
from shared.text import clip, excerpt, plain

if TYPE_CHECKING:
    from shared.snapshot import Node, Snapshot

_MAX_URL_CHARS = 500
_MAX_TITLE_CHARS = 500
_MAX_NUMBERS = 20
# A verdict file has lists, which strict validation accepts for lists only.
FromList = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
_STATES = ("checked", "disabled", "expanded", "pressed", "selected")


class NumbersFound(Record):
    """The numbers that a text check compared, as they are written on the page; the first 20."""

    kind: Literal["numbers"] = "numbers"
    written: Annotated[tuple[str, ...], FromList]

    @classmethod
    def of(cls, numbers: list[str]) -> "NumbersFound":
        """The numbers on a page."""
        return cls(written=tuple(numbers[:_MAX_NUMBERS]))

    def __str__(self) -> str:
        return ", ".join(self.written)


class NodeFound(Record):
    """An element of a page; `states` are those that a check can ask for."""

    role: str
    name: str = ""
    level: int | None = None
    states: dict[str, str] = Field(default_factory=dict)
    value: str = ""

    @classmethod
    def of(cls, page: "Snapshot", node: "Node", value: str) -> "NodeFound":
        """The element, bounded."""
        return cls(
            role=node.role,
            name=clip(plain(page.name_of(node)), 100),
            level=node.level,
            states={key: state for key, state in node.states.items() if key in _STATES},
            value=clip(value, 60),
        )

    def __str__(self) -> str:
        """The element in the notation of checks."""
        parts = [
            self.role,
            f'"{self.name}"' if self.name else "",
            f"[level={self.level}]" if self.level is not None else "",
            *(f"[{key}]" if state == "true" else f"[{key}={state}]" for key, state in self.states.items()),
        ]
        return " ".join(filter(None, parts)) + (f": {self.value}" if self.value and self.value != self.name else "")


class NodesFound(Record):
    """The elements that a check asks for, or those closest to it. If there are none, `role` is what was looked for."""

    kind: Literal["nodes"] = "nodes"
    nodes: Annotated[tuple[NodeFound, ...], FromList] = ()
    role: str | None = None

    def __str__(self) -> str:
        return "; ".join(map(str, self.nodes)) or f"no {self.role or 'element with a name'} at all"


class AddressFound(Record):
    """The address of a page, its title where that decided, and whether it is on the task's site."""

    kind: Literal["address"] = "address"
    url: str
    is_own: bool
    title: str | None = None

    @classmethod
    def of(cls, url: str, *, is_own: bool, title: str | None = None) -> "AddressFound":
        """The address, bounded."""
        title = None if title is None else clip(title, _MAX_TITLE_CHARS)
        return cls(url=clip(url, _MAX_URL_CHARS), is_own=is_own, title=title)

    def __str__(self) -> str:
        there = excerpt(self.url, 200) + ("" if self.is_own else ", which is not the task's site")
        return there if self.title is None else f"{there}, titled {excerpt(self.title, 200)}"


class ValueFound(Record):
    """A value of a request or an answer that is not the expected one; `None` if there is no such value.

    `part` is the key of the check, such as `query`; `name` is the name or the JSON path in it. `difference` is what it
    has instead of the expected characters if it looks the same.
    """

    kind: Literal["value"] = "value"
    part: str
    name: str
    value: str | None
    difference: str = omit_default("")

    @classmethod
    def of(cls, part: str, name: str, values: list[Any], difference: str = "") -> "ValueFound":
        """The first of the values, as bounded JSON."""
        value = clip(plain(json.dumps(values[0], ensure_ascii=False)), 100) if values else None
        return cls(part=part, name=name, value=value, difference=difference)

    def __str__(self) -> str:
        if self.value is None:
            return f"no {self.part} {self.name}"
        more = f" ({self.difference})" if self.difference else ""
        return f"{self.part} {self.name} is {self.value}{more}"


class AnswerSeen(Record):
    """Whether the values of an answer were on a page that the participant observed before it entered them.

    `step` is the index of the step by which all had been observed, `None` if one never was; `entered` the step at
    which it was entered. `value` is the first value not observed.
    """

    kind: Literal["answer_seen"] = "answer_seen"
    step: int | None
    entered: int | None = omit_default(None)
    value: str = omit_default("")

    def __str__(self) -> str:
        if self.step is not None:
            return f"seen at step {self.step + 1}"
        if self.entered is not None:
            return f"{self.value} was on no page before it was entered at step {self.entered + 1}"
        return f"{self.value} was on no page that was observed"


Fact = Annotated[NumbersFound | NodesFound | AddressFound | ValueFound | AnswerSeen, Discriminator("kind")]


def in_words(value: Any) -> str:
    """A normalised value for a reader."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Decimal):
        return f"{value[0]} {value[1]}" if value[1] else str(value[0])
    if isinstance(value, tuple):
        return "[" + ", ".join(map(in_words, value)) + "]"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
