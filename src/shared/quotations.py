"""Finds what a text only quotes: quotation marks, code, block quotes and JSON. Pure; linear time.

Models quote what they were shown, such as a page's text. A pattern that has a meaning in a model's words has none
in a quotation.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

Span = tuple[int, int]


class Fence(NamedTuple):
    """A code fence with its marks; `info` is what stands behind the opening one."""

    start: int
    end: int
    info: str
    is_closed: bool


# `|(?!)` ends what is repeated possessively, for older Pythons: see `shared.snapshot`.
# Two marks of one kind in a line. Opening ones follow no word, closing ones precede none: `24" wide` opens nothing.
_QUOTED = re.compile(
    r"""(?<![\w\\])"(?:[^"\\\n]++|\\.)*+"(?!\w)|\\"[^"\\\n]*+\\"|&quot;(?:[^\n&]++|&(?!quot;)|(?!))*+&quot;"""
    r"""|(?<![\w'])'(?=\S)(?:[^'\n]++|(?<=\w)'(?=\w)|(?!))*+'(?!\w)"""
    r"|“[^“”\n]*+”|„[^„“\n]*+“|«[^«»\n]*+»|‹[^‹›\n]*+›|「[^「」\n]*+」|『[^『』\n]*+』|‘(?:[^‘’\n]++|(?<=\w)’(?=\w)|(?!))*+’"
)
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`)[^\n]+?(?<!`)\1(?!`)")
_BLOCK_QUOTE = re.compile(r"^[ \t]{0,8}>.*", re.MULTILINE)
_FENCE = re.compile(r"^[ \t>]{0,12}(?P<mark>`{3,16}+|~{3,16}+)(?P<info>[^\n`]*)$", re.MULTILINE)
JSON_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
# The longest text from a position that may be JSON.
JSON_RUN = re.compile(rf"(?:{JSON_STRING.pattern}|[][{{}}:,\s0-9.eE+\-truefalsnINity]++|(?!))*+", re.DOTALL)
_JSON_TOKEN = re.compile(rf"{JSON_STRING.pattern}|[][{{}}]", re.DOTALL)
_OPENING = re.compile(r"[\[{]")


def outside_quotations(pattern: re.Pattern[str], text: str, *, fenced: bool = False) -> list[re.Match[str]]:
    """The matches of `pattern` not in a quotation, in order; `fenced`: those in code fences as well."""
    matches = list(pattern.finditer(text))
    if not matches:
        return []
    within_lines = (quoted.span() for kind in (_QUOTED, _CODE, _BLOCK_QUOTE) for quoted in kind.finditer(text))
    spans = sorted([*within_lines, *_json(text), *(() if fenced else fences(text))])
    # The furthest end of all spans that begin at or before each one.
    ends = list(accumulate((end for _, end in spans), max))
    starts = [start for start, _ in spans]

    def is_quoted(match: re.Match[str]) -> bool:
        place = bisect_right(starts, match.start())
        return place > 0 and ends[place - 1] >= match.end()

    return [match for match in matches if not is_quoted(match)]


def quotation_at(text: str, start: int) -> int:
    """Where the quotation within a line ends that begins at `start`; `start` if there is none."""
    match = _QUOTED.match(text, start) or _CODE.match(text, start)
    return match.end() if match else start


def fences(text: str) -> Iterator[Span]:
    """The closed code fences, with their marks, except one around the whole text: that one quotes nothing."""
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    return (
        (fence.start, fence.end)
        for fence in all_fences(text)
        if fence.is_closed and (fence.start > first or fence.end < last)
    )


def all_fences(text: str) -> Iterator[Fence]:
    """All code fences; one that is never closed ends where the next one with an info string begins."""
    opened: re.Match[str] | None = None
    for mark in _FENCE.finditer(text):
        if opened is None:
            opened = mark
        elif mark["info"].strip() or not mark["mark"].startswith(opened["mark"]):
            # One with an info string only opens: the one before it was never closed.
            yield Fence(opened.start(), mark.start(), opened["info"].strip(), is_closed=False)
            opened = mark
        else:
            yield Fence(opened.start(), mark.end(), opened["info"].strip(), is_closed=True)
            opened = None
    if opened is not None:
        yield Fence(opened.start(), len(text), opened["info"].strip(), is_closed=False)


def _json(text: str) -> Iterator[Span]:
    """The complete JSON objects and lists. Trailing commas do not matter."""
    opening = _OPENING.search(text)
    while opening is not None:
        run = JSON_RUN.match(text, opening.start())
        end = max(run.end() if run else 0, opening.end())
        stack: list[Span] = []
        for token in _JSON_TOKEN.finditer(text, opening.start(), end):
            if token[0] in "{[":
                stack.append((token.start(), ord(token[0])))
            elif token[0] in "}]":
                # The closing bracket of each kind follows its opening one by two places in ASCII.
                if stack and stack[-1][1] + 2 == ord(token[0]):
                    yield stack.pop()[0], token.end()
                else:
                    stack.clear()
        opening = _OPENING.search(text, end)
