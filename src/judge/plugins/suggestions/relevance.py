"""How a text is recognised as part of a task: values that the task quotes, what was typed or pressed, the task's words.

It only orders and shortens proposals of checks (`judge.plugins.suggestions.suggesting`), so it may guess.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from functools import cached_property

from judge.evaluators.normalise import dates_in
from shared.text import plain, split_line

# Words without significance, even if they are in a task and on a page.
_FUNCTION_WORDS = frozenset(
    """a about after all also an and any are as at be been before but by can do does done each every first for from has
    have he her here him his how i if in into is it its last more most no not now of off on once one only or other our
    out own she so some such than that the their them then there these they this those to two under up was we were what
    when where which who whose will with you your""".split()
)
# Common names of buttons.
_BUTTON_WORDS = frozenset(
    """add change click create delete edit enter find get give go make new open page press put remove save select set
    show submit use used using""".split()
)
_QUOTED = re.compile(r"(?<!\w)'([^'\n]{2,200})'(?!\w)|\"([^\"\n]{2,200})\"|[“„]([^”“\n]{2,200})[”“]|‘([^’\n]{2,200})’")
# As in "so that its text is only: The ferry leaves at noon."
_AFTER_COLON = re.compile(r":\s+(\S[^\n:]{3,200})$")
_WORD = re.compile(r"\w+")
_MIN_WORD_CHARS = 3
_MIN_DIGITS = 2
_VALUES = ("TYPE", "SELECT")
_MAX_VALUES = 50
_MAX_AROUND_CHARS = 10
# Other than midnight, which forms and calendars add to a date.
_TIME_OF_DAY = re.compile(r"(?<!\d)(?!00:00)\d{1,2}:\d{2}")
# A task that asks for an answer.
_ASKING = re.compile(
    r"\?|\b(?:answer|reply|report|tell|say|state|give|return|what|which|who|whose|whom|when|where|why|how|find|name|"
    r"count|compute|look up|identify|determine|list|compare|summari[sz]e)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:i(?: a|'|’)m )?(?:all |task |it is )?(?:done|ok|okay|finished|complete|completed)\W*", re.IGNORECASE
)


class Specificity(IntEnum):
    """How specific a text is to a task, from least to most."""

    NOTHING = 0
    # One word that the website uses before anything was done.
    COMMON_WORD = 1
    WORD = 2
    WORDS = 3
    VALUE = 4


@dataclass(frozen=True)
class Relevance:
    """What makes a text relevant to an attempt: its task, the lines of its actions, and the text of its first page."""

    task: str
    lines: tuple[str, ...] = ()
    start: str = field(default="", repr=False)

    @cached_property
    def typed(self) -> tuple[str, ...]:
        """What was typed and chosen."""
        parts = [parts_of_line for line in self.lines if (parts_of_line := split_line(line)) is not None]
        return tuple(plain(value) for _, verb, value in parts if verb in _VALUES and value and plain(value))[
            :_MAX_VALUES
        ]

    @cached_property
    def pressed(self) -> frozenset[str]:
        """The names of clicked elements: forms send them too."""
        parts = [parts_of_line for line in self.lines if (parts_of_line := split_line(line)) is not None]
        return frozenset(
            subject.rpartition(" ")[0].casefold() for subject, verb, _ in parts if verb.startswith("CLICK")
        )

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Quoted and typed values: where these appear, the task had an effect."""
        quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(self.task)]
        quoted += _AFTER_COLON.findall(self.task.strip())
        return tuple(
            dict.fromkeys(value.casefold() for each in (*quoted, *self.typed) if len(value := plain(each)) > 1)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """The task's words, without common ones."""
        return frozenset(_words(self.task))

    @cached_property
    def _common(self) -> frozenset[str]:
        return frozenset(_words(self.start))

    def specificity(self, text: str) -> Specificity:
        """How specific a text is to the task."""
        text = text.casefold()
        if any(_holds(text, value) for value in self.values):
            return Specificity.VALUE
        shared = self.words & _words(text)
        if len(shared) > 1:
            return Specificity.WORDS
        if not shared:
            return Specificity.NOTHING
        return Specificity.COMMON_WORD if shared <= self._common else Specificity.WORD

    def found_in(self, text: str) -> frozenset[str]:
        """The values in a text."""
        text = text.casefold()
        return frozenset(value for value in self.values if _holds(text, value))

    def is_about_value(self, text: str) -> bool:
        """Whether a text consists of little more than a value."""
        return any(len(text) <= 2 * len(value) + _MAX_AROUND_CHARS for value in self.found_in(text))

    def names(self, value: str) -> bool:
        """Whether a value (of a field or parameter) is in the task, was typed, or is the name of a clicked element."""
        value = plain(value).casefold()
        if not value or value in _FUNCTION_WORDS:
            return False
        is_said = value in self.values or value in self.pressed or _holds(self.task.casefold(), value)
        return is_said or self._is_chosen(value)

    def are_about(self, name: str) -> bool:
        """Whether the participant clicked or chose something of this name, or the task says it."""
        return self.names(name) or self.specificity(name) is not Specificity.NOTHING

    @cached_property
    def dates(self) -> frozenset[date]:
        """The dates in the task, in what was typed or chosen, and in the names of clicked elements."""
        parts = [
            part
            for line in self.lines
            if (parts_of_line := split_line(line))
            for part in (parts_of_line[0], parts_of_line[2] or "")
        ]
        return frozenset(each for text in (self.task, *parts) for each in dates_in(text))

    def _is_chosen(self, text: str) -> bool:
        """Whether a text is a date that the participant chose, perhaps by its day in a calendar, without a time."""
        dates = frozenset(dates_in(text))
        if not dates or _TIME_OF_DAY.search(text):
            return False
        return dates <= self.dates or any(str(each.day) in self.pressed for each in dates)

    def varying(self, text: str, generated: Iterable[str] = ()) -> list[tuple[int, int]]:
        """The pieces of a text that differ in every attempt: times, identifiers, and the numbers in `generated`.

        What the task or the participant says does not vary.
        """
        instruction = " ".join((self.task, *self.typed))
        return [span for span in varying(text, generated, instruction) if not self._is_chosen(text[slice(*span)])]

    @property
    def asks(self) -> bool:
        """Whether the task asks for an answer."""
        return bool(_ASKING.search(self.task))


def is_filler(answer: str) -> bool:
    """Whether an answer only says that the work is done."""
    return bool(_FILLER.fullmatch(plain(answer)))


def _words(text: str) -> set[str]:
    return {
        _stem(word)
        for word in _WORD.findall(text.casefold())
        if word not in _FUNCTION_WORDS | _BUTTON_WORDS
        and len(word) >= (_MIN_DIGITS if word.isdigit() else _MIN_WORD_CHARS)
    }


def _stem(word: str) -> str:
    # Plurals only: a task says "tickets" where a page says "ticket".
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > _MIN_WORD_CHARS else word


def _holds(text: str, value: str) -> bool:
    """Whether a text has a value as whole words."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


# A time, a date, an identifier or a long number differs from attempt to attempt.
_VARYING = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b\.?)?"
    r"|\b(?:\d+|an?|a few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b|\bjust now\b"
    r"|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s\d{1,2},?\s\d{4}\b"
    r"|(?-i:\b(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{5,}\b)"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}(?:-[0-9a-f]{4,})*|\b[0-9a-f]{16,}\b|\d{5,}",
    re.IGNORECASE,
)


def varying(text: str, generated: Iterable[str] = (), instruction: str = "") -> list[tuple[int, int]]:
    """The pieces of a text that differ in every attempt: times, identifiers, and the numbers in `generated`.

    Text in the task itself (`instruction`) does not vary.
    """
    numbers = "|".join(re.escape(number) for number in generated)
    pattern = re.compile(rf"(?:{_VARYING.pattern})|(?<!\d)(?:{numbers})(?!\d)" if numbers else _VARYING.pattern, re.I)
    instruction = instruction.casefold()
    return [match.span() for match in pattern.finditer(text) if not _holds(instruction, match[0].casefold())]
