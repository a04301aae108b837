"""Whether the values of an answer were on a page that the participant observed, before it entered them itself. Pure.

Observed is what the participant was sent: snapshots, as far as they were sent, without what vanished, titles, pictures
and answers of tools. Of them only what the task's site wrote counts, as for every check. A text that the
participant has entered (typed, chosen, in an address, for a tool of the page) proves nothing from then on, because a
page may repeat it, in parts and in another form.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence, require_recording
from judge.evaluators.normalise import ValueType, is_same, string, values_in
from judge.records.tools import TARGETS, texts_of, tool_of, tools
from shared.files import read_text, reason_of
from shared.text import plain

_WORD = re.compile(r"\w+")
# What describes an element to the judge, and reaches no page.
_DESCRIBES = (*TARGETS, "ref", "element", "startElement", "endElement", "startRef", "endRef")
_MAX_LEAVES = 200
_MAX_UNQUOTED = 3


@dataclass(frozen=True)
class Leaf:
    """One value: a text, or a number, an amount or a date, which pages may write in any way."""

    kind: ValueType
    value: Any

    def stands_in(self, text: str) -> bool:
        """Whether a page's text has the value, as a whole."""
        if self.kind != "string":
            return any(is_same(value, self.value, self.kind) for value in values_in(text, self.kind))
        expected = string(self.value)
        begin, end = (r"\b" if expected and re.match(r"\w", edge) else "" for edge in (expected[:1], expected[-1:]))
        return bool(expected) and re.search(begin + re.escape(expected) + end, plain(text).casefold()) is not None

    def is_entered(self, entered: "EnteredText") -> bool:
        """Whether a page could have the value from what was entered: as it is, in parts, or in another form."""
        if self.kind == "date":
            day: date = self.value
            parts = {Decimal(day.year), Decimal(day.day)}
            months = {f"{day:%B}".casefold(), f"{day:%b}".casefold()}
            has_month = Decimal(day.month) in entered.numbers or not months.isdisjoint(entered.words)
            return any(map(self.stands_in, entered.joined)) or (entered.numbers >= parts and has_month)
        if self.kind == "string":
            value_text = string(self.value)
            words = _WORD.findall(value_text)
            is_whole = any(map(self.stands_in, entered.joined)) or (bool(words) and entered.words.issuperset(words))
        else:
            amount = self.value[0] if self.kind == "currency" else self.value
            value_text, is_whole = str(amount), amount in entered.numbers
        return is_whole or entered.can_be_pressed(value_text)


@dataclass
class EnteredText:
    """Everything that a participant has entered so far: texts, and what was pressed key by key.

    `is_edited`: keys without a letter may have moved or deleted letters.
    """

    texts: Sequence[str]
    keys: str = ""
    is_edited: bool = False

    def can_be_pressed(self, text: str) -> bool:
        """Whether the letters of a text were pressed, or entered where keys could change them, in any order."""
        letters = self.keys + ("".join(self.texts) if self.is_edited else "")
        letter_counts = Counter("".join(_WORD.findall(text)))
        return bool(letter_counts) and letter_counts <= Counter(letters.casefold())

    @property
    def joined(self) -> tuple[str, ...]:
        """The texts, each alone and all together, as one page may show them."""
        return (*self.texts, self.keys, "".join(self.texts), " ".join(self.texts))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words, in lower case."""
        return frozenset(word for text in self.joined for word in _WORD.findall(plain(text).casefold()))

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        """The numbers."""
        return frozenset(number for text in self.joined for number in values_in(text, "number"))


class Sighting(NamedTuple):
    """Where a value was first observed, and where it was first entered; indices of steps, `None` for never."""

    leaf: Leaf
    first_seen: int | None
    entered: int | None

    @property
    def counts(self) -> bool:
        """Whether it was observed before it was entered."""
        return self.first_seen is not None


def leaves_of(value: Any, kind: ValueType) -> list[Leaf]:
    """The values of an expected one: every entry of a list, every leaf of a table."""
    if kind in ("number", "currency", "date", "string"):
        return [Leaf(kind, value)]
    return list(dict.fromkeys(_leaves(value)))[:_MAX_LEAVES]


def _leaves(value: Any) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        yield Leaf("number", Decimal(str(value)))
    elif isinstance(value, str) and value.strip():
        yield Leaf("string", value)


def sightings(recording: TrajectoryEvidence, leaves: Sequence[Leaf]) -> list[Sighting]:
    """Where each value was observed. Raises `MissingEvidence` for a recording that does not say who wrote what."""
    if not recording.is_marked:
        raise MissingEvidence("recorded without who wrote what, so that nobody knows what was seen")
    steps = list(_observed_looks(recording))
    entered = _first_entered(recording, leaves)
    places: list[Sighting] = []
    texts: dict[int, str] = {}
    for leaf, at in zip(leaves, entered, strict=True):
        seen_at = None
        for look in steps:
            # The page of this step was observed before its action was decided.
            if at is not None and look.step.index > at:
                break
            if look.step.index not in texts:
                texts[look.step.index] = observed_text(look)
            if leaf.stands_in(texts[look.step.index]):
                seen_at = look.step.index
                break
        places.append(Sighting(leaf, seen_at, at))
    return places


def _observed_looks(recording: TrajectoryEvidence) -> Iterator[Look]:
    """The looks that the participant was sent: without the final one, and those between the actions of a reply."""
    replies = set[int]()
    for look in recording.looks:
        if look.step is recording.trajectory.attempt.final_look or look.step.of_reply in replies:
            continue
        replies.add(look.step.of_reply)
        yield look


def observed_text(look: Look) -> str:
    """The text of the task's site in the snapshot of a step, as it was sent."""
    if look.step.dialog is not None or not look.is_own:
        return ""
    if look.step.sent_lines is not None and look.path is not None:
        try:
            lines = read_text(look.path).split("\n")
        except (OSError, ValueError) as error:
            require_recording(look.path.parent.parent)
            raise MissingEvidence(f"{look.path.name}: {reason_of(error)}") from None
        # Parsed again, because names may come from content not sent.
        look = replace(look, earlier="\n".join(lines[: look.step.sent_lines]))
    page = look.evidence()
    return look.texts(page, None, False)


def _first_entered(recording: TrajectoryEvidence, leaves: Sequence[Leaf]) -> list[int | None]:
    """The index of the step with which each value had been entered; `None` for never."""
    first_places: list[int | None] = [None] * len(leaves)
    texts, keys, is_edited = list[str](), "", False
    for step in recording.trajectory.steps:
        if step.action is None:
            continue
        if step.action.tool in tools() and "key" in tool_of(step.action.tool).own_text:
            pressed = list(texts_of(step.action.tool, step.action.params))
            is_edited = is_edited or None in pressed or not pressed
            keys += "".join(filter(None, pressed))
        else:
            is_pages = step.action.tool not in tools() or tool_of(step.action.tool).given is not None
            new = _strings(step.action.params, with_numbers=is_pages)
            texts += [form for text in new for form in _forms(str(recording.as_compared(text)))]
        entered = EnteredText(texts, keys, is_edited)
        for place, leaf in enumerate(leaves):
            if first_places[place] is None and leaf.is_entered(entered):
                first_places[place] = step.index
    return first_places


def _strings(value: object, *, with_numbers: bool) -> Iterator[str]:
    """The texts that an action may bring into a page; also of one that failed, which may have done half of it.

    Numbers are coordinates, except in what a page's tool is given.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool) and with_numbers:
        yield str(value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key not in _DESCRIBES:
                yield from _strings(each, with_numbers=with_numbers)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, with_numbers=with_numbers)


def _forms(text: str) -> Iterator[str]:
    """The text, and what it is in an address, also if encoded again."""
    for _ in range(_MAX_UNQUOTED):
        yield text
        plainer = unquote_plus(text)
        if plainer == text:
            return
        text = plainer
    yield text
