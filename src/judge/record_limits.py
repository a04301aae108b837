"""How large a record may become: what is written must stay readable (`judge.files.MAX_FILE_BYTES`). Pure.

Everything that a participant, a page or a judge model wrote passes `bounded` before it is stored. A limit is the size
of a field in bytes as it is written, where one character takes up to six. `result.json` holds each step with its
thought and action line repeated, and the score of its screenshot; `MAX_STEPS` of the largest steps fit
(`tests/adversarial/test_oversized_records.py`).
"""

import bisect
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from judge.files import MAX_FILE_BYTES
from shared.models import Record
from shared.text import without_surrogates

MAX_STEPS = 1000
# Of a file, for what does not grow with the number of steps or tasks: the task, the answer, key points, the reason.
_REST_BYTES = 4_000_000
MAX_STEP_BYTES = (MAX_FILE_BYTES - _REST_BYTES) // MAX_STEPS
MAX_ENTRIES_BYTES = MAX_FILE_BYTES - _REST_BYTES
MAX_SNAPSHOT_CHARS = 4_000_000

_DEFAULT = 2_000
_LIMITS: Mapping[str, int] = MappingProxyType(
    {
        # Step
        "url": 3_000,
        "title": 1_000,
        "dialog": 1_500,
        "reply": 10_000,
        "feedback": 3_000,
        "refused": 2_500,
        "flags": 500,
        # Action and Outcome
        "tool": 200,
        "params": 6_000,
        "thought": 4_000,
        "message": 3_000,
        "line": 3_000,
        # EpisodeEnd
        "final_answer": 120_000,
        "error": 12_000,
        # Verdict
        "reason": 12_000,
        "key_points": 200_000,
        "Response": 4_000,
        "evidence": 40_000_000,
    }
)
# `params` of an action lie this deep in `result.json`; every line of theirs is indented by as much.
_DEPTH = 4
# Characters that `steps.jsonl` writes as an escape of six bytes, and how many bytes that adds to their UTF-8.
_ESCAPED_IN_LINES = (("\x85", 4), ("\u2028", 3), ("\u2029", 3))

R = TypeVar("R", bound=Record)


def bounded(record: R) -> R:
    """The record with every field cut to its limit; one that is within its limits comes back equal.

    A field without a limit of its own may take 2,000 bytes, so one that is added later is bounded as well.
    """
    changes = {name: _bounded(getattr(record, name), _LIMITS.get(name, _DEFAULT)) for name in type(record).model_fields}
    return record.model_copy(update=changes)


def written_bytes(value: Any) -> int:
    """At most how many bytes a JSON value takes in `result.json`, `steps.jsonl` or a verdict's file."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    escapes = sum(added * text.count(character) for character, added in _ESCAPED_IN_LINES)
    return len(text.encode("utf-8", "backslashreplace")) + escapes + 2 * _DEPTH * text.count("\n")


def clip_text(text: str, limit: int) -> str:
    """`text` in at most `limit` written bytes; where it is cut it ends with its original length."""
    text = without_surrogates(text)
    if 6 * len(text) + 2 <= limit or (len(text) <= limit and written_bytes(text) <= limit):
        return text
    mark = f"… ({len(text)} characters)"
    room = limit - written_bytes(mark)
    kept = bisect.bisect_right(range(max(room, 0) + 1), room + 2, key=lambda size: written_bytes(text[:size])) - 1
    return text[: max(kept, 0)] + mark


def fit(value: Any, limit: int) -> Any:
    """A JSON value in at most `limit` written bytes: its longest texts are cut, all to the same length.

    Where even short texts are too many, an object with the beginning of the value's JSON takes its place.
    """
    made, longest = value, limit
    while written_bytes(made) > limit:
        longest //= 4
        if longest < 50:
            return {"…": clip_text(json.dumps(value, ensure_ascii=False), limit - 100)}
        made = _clipped(value, longest)
    return made


def first_of(texts: Sequence[str], limit: int, *, note: bool = True) -> tuple[str, ...]:
    """The first texts, as many as are written in `limit` bytes, then (`note`) a line with how many are missing."""
    if written_bytes(texts) <= limit:
        return tuple(texts)
    kept: list[str] = []
    left = limit - 100
    for text in texts:
        short = clip_text(text, limit // 4)
        left -= written_bytes([short])
        if left < 0:
            break
        kept.append(short)
    missing = len(texts) - len(kept)
    return (*kept, f"… {missing} more") if note and missing else tuple(kept)


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
