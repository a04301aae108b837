"""Decides what a reply says that states something more than once. Pure; linear time.

Statements that differ decide nothing, because nobody knows which one is meant, unless the earlier one was withdrawn:
struck out (`judge.parsing.plain_text`), or followed by an explicit correction. A withdrawn one decides nothing either.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from shared.quotations import outside_quotations

T = TypeVar("T")
# The start of a sentence that takes back what stands before it. "Actually" within a sentence takes nothing back.
_CORRECTION = re.compile(
    r"(?:^|(?<=[.!?:;(—–]))[ \t*_#(\[-]{0,12}"
    r"(?:(?:but|no|oh|hmm),?\s)?"
    r"(?:wait|hold on|actually|correction|corrected|correcting"
    r"|on (?:second|further) (?:thought|reflection)|on reflection"
    r"|(?:up)?on (?:closer|further|re-?)\w{0,9}|scratch that|strike that|never ?mind|sorry|apologies|oops"
    r"|my (?:mistake|error|bad)|let me (?:correct|revise|reconsider|re-?check|re-?evaluate|re-?assess|fix|change)"
    r"|i (?:was|am) (?:wrong|mistaken)|i made an? (?:mistake|error)|i take (?:that|it) back"
    r"|i (?:(?:must|need to|have to|should|will|now|hereby) ){0,2}(?:correct|revise|reconsider|withdraw|retract|change)"
    r"|(?:that|this|the above) (?:is|was) (?:wrong|incorrect|an? mistake|an? error)|looking (?:again|closer)"
    r"|no[,.:!—–]|edit:|(?:re-?check|re-?evaluat|re-?consider|re-?assess)ing)(?!\w)"
    r"|\b(?:revised|corrected|updated|adjusted|amended)[ _](?:\w{1,12}[ _]){0,2}"
    r"(?:score|rating|status|verdict|decision|outcome|result|conclusion|answer)\b",
    re.IGNORECASE | re.MULTILINE,
)


class StatedValue(NamedTuple, Generic[T]):
    """A value that a reply states: where the value itself begins, and where the statement ends."""

    start: int
    end: int
    value: T


def agreed(text: str, statements: Sequence[StatedValue[T]]) -> T | None:
    """The value that the statements of a reply agree on, apart from withdrawn ones; `None` if there is none.

    `statements` are in the order of the text.
    """
    corrections = [match.start() for match in outside_quotations(_CORRECTION, text)]
    values: list[T] = []
    for place, statement in enumerate(statements):
        following = statements[place + 1] if place + 1 < len(statements) else None
        corrected = bisect_left(corrections, statement.end)
        until = len(text) if following is None else following.start
        is_corrected = corrected < len(corrections) and corrections[corrected] < until
        if is_corrected and (following is None or following.value != statement.value):
            values.clear()
        else:
            values.append(statement.value)
    return values[-1] if values and all(value == values[-1] for value in values) else None
