"""How large the records in a run folder may become.

Files must stay small enough to be read, so all text from a participant, a page or a judge model goes through `bounded`
before it is stored. A limit is a field's size in bytes as written, in which one character takes up to six; it stands on
the field (`shared.models.RecordedLimit`).
"""

import bisect
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic.fields import FieldInfo

from judge.records.steps import MAX_STEPS
from shared.files import MAX_FILE_BYTES
from shared.models import Record, RecordedLimit
from shared.text import without_surrogates

# Space in a file for data independent of the number of steps or tasks: the task, answer, key points, reason,
# and what the judge fetched.
_REST_BYTES = 6_000_000
# The limit for a step in `result.json`, including its repeated thought and action line and its screenshot's score.
MAX_STEP_BYTES = (MAX_FILE_BYTES - _REST_BYTES) // MAX_STEPS
# A submission is one JSON object, and leaderboard pages read objects of at most 16 MiB (DuckDB's default).
MAX_ENTRIES_BYTES = 15_000_000
# The limit of a field that declares none.
_DEFAULT_LIMIT = 2_000
# The nesting depth of an action's `params` in `result.json`, by which each of their lines is indented.
_DEPTH = 4
# Characters that `steps.jsonl` writes as an escape of six bytes, and how many bytes that adds to their UTF-8.
_ESCAPED_IN_LINES = (("\x85", 4), ("\u2028", 3), ("\u2029", 3))

R = TypeVar("R", bound=Record)


def bounded(record: R) -> R:
    """The record with every field cut to its limit; equal to the argument if all are within their limits.

    A field without its own limit may take 2,000 bytes, so that fields added later are bounded as well.
    """
    cut = {
        name: bounded_value
        for name, field in type(record).model_fields.items()
        if (bounded_value := _bounded(value := getattr(record, name), _limit_of(field))) is not value
    }
    # The judge's description is in every verdict; a copy for each task would use too much memory.
    return record.model_copy(update=cut) if cut else record


def _limit_of(field: FieldInfo) -> int:
    return next((each.max_bytes for each in field.metadata if isinstance(each, RecordedLimit)), _DEFAULT_LIMIT)


def written_bytes(value: Any) -> int:
    """An upper bound for a JSON value's bytes in `result.json`, `steps.jsonl` or a verdict's file."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    escapes = sum(added * text.count(character) for character, added in _ESCAPED_IN_LINES)
    return len(text.encode("utf-8", "backslashreplace")) + escapes + 2 * _DEPTH * text.count("\n")


def clip_text(text: str, limit: int) -> str:
    """`text` cut to at most `limit` written bytes; if cut, it ends with a note of its original length."""
    text = without_surrogates(text)
    # A character takes at most six bytes, so most texts need not be written to be measured.
    if 6 * len(text) + 2 <= limit or (len(text) <= limit and written_bytes(text) <= limit):
        return text
    mark = f"… ({len(text)} characters)"
    room = limit - written_bytes(mark)
    size_left = bisect.bisect_right(range(max(room, 0) + 1), room + 2, key=lambda size: written_bytes(text[:size])) - 1
    return text[: max(size_left, 0)] + mark


def fit(value: Any, limit: int) -> Any:
    """A JSON value in at most `limit` written bytes: its longest strings are cut, all to the same length.

    If even cutting them is not enough, the value is replaced by an object with the beginning of its JSON.
    """
    clipped, longest = value, limit
    while written_bytes(clipped) > limit:
        longest //= 4
        if longest < 50:
            return {"…": clip_text(json.dumps(value, ensure_ascii=False), limit - 100)}
        clipped = _clipped(value, longest)
    return clipped


def first_of(texts: Sequence[str], limit: int, *, note: bool = True) -> tuple[str, ...]:
    """As many of the first texts as fit into `limit` written bytes, then (with `note`) how many are missing."""
    if written_bytes(texts) <= limit:
        return tuple(texts)
    texts_kept: list[str] = []
    # 100 bytes are kept for the note.
    bytes_left = limit - 100
    for text in texts:
        short = clip_text(text, limit // 4)
        bytes_left -= written_bytes([short])
        if bytes_left < 0:
            break
        texts_kept.append(short)
    missing = len(texts) - len(texts_kept)
    return (*texts_kept, f"… {missing} more") if note and missing else tuple(texts_kept)


def _bounded(value: Any, limit: int) -> Any:
    match value:
        case str():
            return clip_text(value, limit)
        case Record():
            return bounded(value)
        case dict():
            return fit(value, limit)
        case tuple() if all(isinstance(item, str) for item in value):
            return first_of(value, limit)
        case tuple():
            return tuple(_bounded(item, limit) for item in value)
    return value


def _clipped(value: Any, longest: int) -> Any:
    match value:
        case str():
            return clip_text(value, longest)
        case Mapping():
            return {clip_text(str(key), longest): _clipped(item, longest) for key, item in value.items()}
        case list() | tuple():
            return [_clipped(item, longest) for item in value]
    return value
