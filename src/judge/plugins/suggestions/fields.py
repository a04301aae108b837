"""The fields of recorded requests that proposed checks may compare (`judge.plugins.suggestions.suggesting`).

It only chooses what to propose, so it may guess.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from judge.plugins.suggestions.content import MAX_TEXT_CHARS
from judge.plugins.suggestions.relevance import Relevance
from judge.records.json_paths import parse_path
from judge.trajectory.forms import inner_json
from judge.trajectory.json_bodies import is_json
from judge.trajectory.network import Entry
from judge.trajectory.redaction import REDACTED
from shared.fields import Invalid
from shared.strict_json import parse_json
from shared.text import one_line

FieldPairs = Sequence[tuple[str, Any]]
_NAME = re.compile(r"[\w-]+")
_OK = 200
_MAX_DEPTH = 6
_MAX_ITEMS = 20
_MAX_VALUES = 500
# The words of `lastModifiedAt` and `last_modified_at`.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Names of values by which a server tells its states apart.
_OF_SERVER = frozenset({"version", "ver", "revision", "rev", "etag", "timestamp", "mtime", "ctime", "seq", "nonce"})
# Names of times at which a server did something, if the last word is one of these.
_TIMES = frozenset({"at", "on", "time", "date", "modified", "updated", "created", "changed"})
_DONE = frozenset({"modified", "updated", "created", "changed", "edited", "saved", "accessed", "seen", "synced"})


# A value of the query that names what is asked for, as in `action=save` and `id=7`, not a random one.
_STEADY = re.compile(r"[A-Za-z]+(?:[._/ -][A-Za-z]+)*|\d{1,4}")
_TICKED = frozenset({"on", "true", "1", "yes"})


class Fields(NamedTuple):
    """The comparable fields of a body, by name or JSON path, and the names of those that vary or are secret.

    `unnamed` are those whose names no check can write.
    """

    pairs: FieldPairs = ()
    varies: Sequence[str] = ()
    unnamed: Sequence[str] = ()


def fields_of(entry: Entry, relevance: Relevance) -> Fields:
    """The fields of a request's body; a date is comparable if the participant chose it."""
    pairs: list[tuple[str, Any]] = []
    varies: list[str] = []
    unnamed: list[str] = []
    for name, value in _values_of(entry):
        text = str(value)
        if not _can_be_named(name):
            unnamed.append(one_line(name, 40))
        elif REDACTED in text or relevance.varying(text) or len(text) > MAX_TEXT_CHARS:
            varies.append(one_line(name, 40))
        else:
            pairs.append((name, value))
    return Fields(pairs, varies, unnamed)


def query_of(entry: Entry, relevance: Relevance) -> FieldPairs:
    """The parameters that say what a request is, as behind a front controller (`/index.php?action=save`)."""
    pairs = parse_qsl(urlsplit(entry.request.url).query, keep_blank_values=True)
    counts = Counter(name for name, _ in pairs)
    return [
        (name, value)
        for name, value in pairs
        if counts[name] == 1
        and REDACTED not in value
        and len(value) <= MAX_TEXT_CHARS
        and not relevance.varying(value)
        and (_STEADY.fullmatch(value) or relevance.names(value))
    ]


def is_chosen(name: str, value: Any, relevance: Relevance) -> bool:
    """Whether the task or the participant says the value: also one of several, or a box whose name the task uses."""
    if isinstance(value, list):
        return True
    is_ticked = str(value).casefold() in _TICKED and is_meant(name, relevance)
    return is_ticked or relevance.names(str(value))


def is_meant(name: str, relevance: Relevance) -> bool:
    """Whether the task uses a field's name, as in "grouped by" for `group`."""
    words = re.findall(r"[a-z]+", name.casefold())
    return any(each.startswith(word) for each in relevance.words for word in words if len(word) > 2)


def _can_be_named(name: str) -> bool:
    try:
        return bool(name) and bool(parse_path(name))
    except Invalid:
        return False


def is_of_server(name: str, value: Any, relevance: Relevance) -> bool:
    """Whether a field only tells the server's states apart, and nobody chose its value."""
    if str(value).casefold() in relevance.values:
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
        values_by_name: dict[str, list[str]] = {}
        for pair in body.params:
            values_by_name.setdefault(pair.name, []).append(pair.value)
        yield from ((name, values[0] if len(values) == 1 else values) for name, values in values_by_name.items())
    elif body.text and body.encoding is None and is_json(body.mime_type, body.text):
        try:
            content = parse_json(body.text)
        except ValueError:
            return
        for count, leaf in enumerate(_leaves("", content, 0)):
            if count >= _MAX_VALUES:
                return
            yield leaf


def answer_fields(entry: Entry) -> FieldPairs:
    """The values in an answer, if it is JSON, by path."""
    body = entry.response.body
    return message_fields(body.text or "") if entry.response.status == _OK and not body.is_cut else []


def message_fields(text: str) -> FieldPairs:
    """The values in a message of a web socket, if it is JSON, by path."""
    _, inner = inner_json(text)
    if inner.lstrip()[:1] not in ("{", "["):
        return []
    try:
        return list(islice(_leaves("", parse_json(inner), 0), _MAX_VALUES))
    except ValueError:
        return []


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The values in JSON by path: fields of the outermost table by their names, others like `$.devices[0].name`."""
    match value:
        case Mapping() if depth < _MAX_DEPTH:
            for name, inner in value.items():
                # A single name needs no path.
                is_plain = depth == 0 and not isinstance(inner, Mapping | list) and _NAME.fullmatch(name)
                here = f".{name}" if _NAME.fullmatch(name) else f'["{name}"]'
                yield from _leaves(name if is_plain else f"{path or '$'}{here}", inner, depth + 1)
        case list() if depth < _MAX_DEPTH:
            for at, inner in enumerate(value[:_MAX_ITEMS]):
                yield from _leaves(f"{path or '$'}[{at}]", inner, depth + 1)
        case str() | int() | float() if path:
            yield path, value
