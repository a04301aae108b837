"""All the ways in which some server could read a path or a query. Pure.

Servers differ in whether they fold case, decode once or several times, resolve dot segments before or after decoding,
collapse doubled slashes, take backslashes for slashes, drop parameters (`;x`), or stop at a NUL. The judge does not
know which of them a server does, so an address *could reach* whatever any of its readings names.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

# Ordinary addresses have one or two readings. More than these are taken for any address.
MAX_READINGS = 500
MAX_PAIRS = 1_000

_PARAMETERS = re.compile(r";[^/]*")
_SLASHES = re.compile(r"[/\\]+")
_TRAILING = re.compile(r"[ .\x00-\x1f]+(?=/|\Z)")
_END = re.compile(r"[\x00?#]")


class Readings(NamedTuple):
    """The readings of a text, in lower case and without slashes at the end. `is_cut`: there are more of them."""

    texts: frozenset[str]
    is_cut: bool

    def of_pattern(self) -> Iterator[str]:
        """The readings of a pattern; `/dir/*` matches `/dir` too."""
        for text in self.texts:
            yield text
            if text.endswith("/*"):
                yield text[:-2] or "/"


def readings(text: str) -> Readings:
    """The readings of a path, a fragment or a pattern of either.

    >>> sorted(readings("/shop/../a%2Fb").texts)
    ['/a%2fb', '/a/b', '/shop/../a%2fb', '/shop/../a/b']
    """
    forms = {_folded(text)}
    waiting = list(forms)
    while waiting:
        each = waiting.pop()
        for step in _STEPS:
            after = _folded(step(each))
            if after not in forms:
                if len(forms) >= MAX_READINGS:
                    return Readings(frozenset(map(_trimmed, forms)), is_cut=True)
                forms.add(after)
                waiting.append(after)
    return Readings(frozenset(map(_trimmed, forms)), is_cut=False)


def decoded(text: str) -> tuple[str, ...]:
    """A query or a part of one, decoded not at all, once, and so on; in lower case.

    >>> decoded("q=50%2525+off")
    ('q=50%2525+off', 'q=50%25 off', 'q=50% off')
    """
    forms = [_folded(text)]
    while (after := _folded(unquote(forms[-1].replace("+", " "), errors="replace"))) not in forms:
        forms.append(after)
    return tuple(forms)


def pairs(query: str) -> frozenset[tuple[str, str]] | None:
    """Every name and value that some server could read in a query; `None` if there are too many to tell.

    Several servers take the first of several values, others the last one or all of them.

    >>> sorted(pairs("id=1&id=2;x") or ())
    [('id', '1'), ('id', '2'), ('x', '')]
    """
    all_pairs: set[tuple[str, str]] = set()
    for part in re.split("[&;]", query):
        if len(all_pairs) > MAX_PAIRS:
            return None
        if part:
            all_pairs |= {each.partition("=")[::2] for each in decoded(part)}
    return frozenset(all_pairs)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _trimmed(path: str) -> str:
    return "/" + path.strip("/")


def _is_dots(text: str, match: re.Match[str]) -> bool:
    return match.start() == 0 or text[match.start() - 1] == "/"


def _without_dots(path: str) -> str:
    pieces: list[str] = []
    for segment in path.split("/"):
        name = segment.strip(" ")
        if name == "..":
            if len(pieces) > 1:
                pieces.pop()
        elif name != ".":
            pieces.append(segment)
    return "/".join(pieces)


_STEPS: tuple[Callable[[str], str], ...] = (
    lambda text: unquote(text, errors="replace"),
    lambda text: _PARAMETERS.sub("", text),
    lambda text: _SLASHES.sub("/", text),
    lambda text: _END.split(text, maxsplit=1)[0],
    _without_dots,
    # As Windows does; a segment of dots alone is one for `_without_dots`.
    lambda text: _TRAILING.sub(lambda match: match[0] if _is_dots(text, match) else "", text),
)
