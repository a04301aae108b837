"""The fields of recorded requests that proposed checks may compare (`judge.results.suggestions`).

It only chooses what to propose, so it may guess.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judge.results.clues import Clues
from judge.results.suggested_content import MAX_TEXT_CHARS
from judge.trajectory.forms import is_json
from judge.trajectory.network import Entry
from judge.trajectory.redaction import REDACTED
from shared.strict_json import parse_json
from shared.text import one_line

FieldPairs = Sequence[tuple[str, Any]]
_NAME = re.compile(r"[\w-]+")
_MAX_DEPTH = 6
_MAX_ITEMS = 20
_MAX_VALUES = 500
# The words of `lastModifiedAt` and `last_modified_at`.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Names of values by which a server tells its own states apart.
_OF_SERVER = frozenset({"version", "ver", "revision", "rev", "etag", "timestamp", "mtime", "ctime", "seq", "nonce"})
# Names of times at which a server did something, if the last word is one of these.
_TIMES = frozenset({"at", "on", "time", "date", "modified", "updated", "created", "changed"})
_DONE = frozenset({"modified", "updated", "created", "changed", "edited", "saved", "accessed", "seen", "synced"})


class Fields(NamedTuple):
    """The comparable fields of a body, by name or JSON path, and the names of those that vary or are secret."""

    pairs: FieldPairs = ()
    varies: Sequence[str] = ()


def fields_of(entry: Entry, clues: Clues) -> Fields:
    """The fields of a request's body; a date is comparable if the participant chose it."""
    pairs: list[tuple[str, Any]] = []
    varies: list[str] = []
    for name, value in _values_of(entry):
        text = str(value)
        if REDACTED in text or clues.varying(text) or len(text) > MAX_TEXT_CHARS:
            varies.append(one_line(name, 40))
        else:
            pairs.append((name, value))
    return Fields(pairs, varies)


def is_of_server(name: str, value: Any, clues: Clues) -> bool:
    """Whether a field only tells the server's states apart, and nobody chose its value."""
    if str(value).casefold() in clues.values:
        return False
    words = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2])]
    is_time = bool(words) and words[-1] in _TIMES and not _DONE.isdisjoint(words)
    return is_time or not _OF_SERVER.isdisjoint(words)


def _values_of(entry: Entry) -> Iterator[tuple[str, Any]]:
    """The single values in a body, each with its name or path."""
    body = entry.request.body
    if body is None or body.is_cut:
        return
    if body.params:
        counts = Counter(pair.name for pair in body.params)
        single_fields = ((pair.name, pair.value) for pair in body.params if counts[pair.name] == 1)
        yield from ((name, value) for name, value in single_fields if value and _NAME.fullmatch(name))
    elif body.text and body.encoding is None and is_json(body.mime_type, body.text):
        try:
            content = parse_json(body.text)
        except ValueError:
            return
        for count, leaf in enumerate(_leaves("", content, 0)):
            if count >= _MAX_VALUES:
                return
            yield leaf


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The values in JSON by path: fields of the outermost table by their names, others like `$.devices[0].name`."""
    match value:
        case Mapping() if depth < _MAX_DEPTH:
            for name, inner in value.items():
                if _NAME.fullmatch(name):
                    # A single name needs no path.
                    is_plain = depth == 0 and not isinstance(inner, Mapping | list)
                    yield from _leaves(name if is_plain else f"{path or '$'}.{name}", inner, depth + 1)
        case list() if depth < _MAX_DEPTH:
            for at, inner in enumerate(value[:_MAX_ITEMS]):
                yield from _leaves(f"{path or '$'}[{at}]", inner, depth + 1)
        case str() | int() | float() if path and value != "":
            yield path, value
