"""Regular expressions and texts from outside are matched by RE2, never by `re`.

Python's `re` backtracks, so a pattern such as `(a+)+$` runs for hours on a line of a few dozen characters. A time limit
would make the result depend on the machine, and a participant who can write the text could choose that result. RE2
needs time proportional to the text for every pattern it accepts; it has no look-around and no back-references. The only
file that imports `re2`.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import re2

from shared.fields import Invalid

MAX_PATTERN_CHARS = 1_000
MAX_MATCHES = 10_000
_REMEDY = "correct the regular expression"
# Look-around and back-references, which Python's `re` supports and RE2 does not.
_UNSUPPORTED = re.compile(r"\(\?<?[=!]|\\[1-9]")


class Pattern:
    """A compiled pattern. Raises `Invalid` with the column of the mistake."""

    def __init__(self, source: str, *, limit: int = MAX_PATTERN_CHARS) -> None:
        if len(source) > limit:
            raise Invalid(f"more than {limit} characters", "shorten it", column=limit + 1)
        options = re2.Options()
        # RE2 would also print each mistake to standard error.
        options.log_errors = False
        self.source = source
        try:
            self._compiled = re2.compile(source, options)
        except UnicodeEncodeError as error:
            raise Invalid("a character that is not text", _REMEDY, column=error.start + 1) from None
        except re2.error as error:
            raise _explained(source, error) from None

    @property
    def groups(self) -> int:
        """How many capturing groups the pattern has."""
        return int(self._compiled.groups)

    def search(self, text: str) -> tuple[int, int] | None:
        """Start and end of the first match."""
        match = self._compiled.search(_encodable(text))
        return None if match is None else (match.start(), match.end())

    def fullmatch(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._compiled.fullmatch(_encodable(text)) is not None

    def matches(self, text: str) -> Iterator[Any]:
        """At most `MAX_MATCHES` matches in order, with the methods of `re.Match`."""
        return itertools.islice(self._compiled.finditer(_encodable(text)), MAX_MATCHES)


def folded_pattern(source: str) -> str:
    """The pattern for texts that are folded (`shared.seen`)."""
    pattern = "".join(each if each.isascii() else re.escape(unicodedata.normalize("NFKC", each)) for each in source)
    return pattern if len(pattern) <= MAX_PATTERN_CHARS else source


def glob(text: str) -> Pattern:
    """A glob, in which `*` matches anything, as a pattern for `fullmatch`.

    >>> [glob("/items/*").fullmatch(path) for path in ("/items/7", "/items/", "/item/7")]
    [True, True, False]
    """
    pattern = "(?s)" + ".*".join(re.escape(part) for part in re.split(r"\*+", text))
    return Pattern(pattern, limit=len(pattern))


def _encodable(text: str) -> str:
    # RE2 matches UTF-8, which has no form for lone surrogates.
    return text.encode("utf-8", "replace").decode()


def _explained(source: str, error: Exception) -> Invalid:
    match = _UNSUPPORTED.search(source)
    if match:
        return Invalid("look-around and back-references are not supported", _REMEDY, column=match.start() + 1)
    raw = error.args[0] if error.args else b""
    problem, _, piece = (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)).partition(": ")
    # RE2 reports an unclosed group or class with all of its content, so the mistake is where that text begins.
    place = source.find(piece) if piece else -1
    try:
        # Only compiled, never matched: Python's error message has the position.
        re.compile(source)
    except re.error as same:
        place = same.pos if same.pos is not None else place
    return Invalid(problem or "not a regular expression", _REMEDY, column=max(place, 0) + 1)
