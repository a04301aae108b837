"""JSON that all parsers read in the same way. Pure."""

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from shared.text import excerpt

# Deeper than anything recorded, and far below Python's recursion limit.
MAX_DEPTH = 100
TOO_DEEP = "nested too deeply"


def parse_json(text: str) -> Any:
    """The value of a JSON text. Refuses input that other JSON readers read differently or reject.

    That is: repeated keys, NaN, numbers too large for a double, and nesting deeper than `MAX_DEPTH`. Raises
    `ValueError`.
    """
    try:
        value = json.loads(text, **STRICT)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    require_shallow(value)
    return value


def require_shallow(value: Any) -> None:
    """Raise a `ValueError` for a JSON value nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"has the JSON key {excerpt(key, 20)} twice")
            seen.add(key)
    return result


def _whole(digits: str) -> int:
    # An integer beyond the range of a double would be read as infinity elsewhere.
    _decimal(digits)
    return int(digits)


def _decimal(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"holds the number {excerpt(digits, 20)}, which is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is not a JSON number")


# Arguments that make Python's decoder refuse input that other JSON readers read differently or reject.
STRICT: Mapping[str, Any] = MappingProxyType(
    {"object_pairs_hook": _unique, "parse_int": _whole, "parse_float": _decimal, "parse_constant": _constant}
)
