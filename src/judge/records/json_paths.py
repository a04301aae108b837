"""Paths into JSON values, such as `items[0].sku`: a small part of JSONPath (RFC 9535). Pure.

Names are separated by dots; `[0]` and `[*]` are one item and every item of a list, `["a.b"]` is a name with special
characters. A leading `$.` may be left out. Names of form fields (`user[name]`, `tags[]`) are paths as well.
"""

import re
from typing import Any

from shared.fields import Invalid

Path = tuple[str | int, ...]
# In a path: every item of a list.
EVERY = -1
_PART = re.compile(
    r"""\.?(?P<name>[^.\[\]"'\s]+) | \[(?P<item>\d{1,6}|\*?)\] | \[(?P<quote>["'])(?P<quoted>.*?)(?P=quote)\]
    | \[(?P<bare>[^\[\]"'\s]+)\]""",
    re.VERBOSE | re.DOTALL,
)


def parse_path(text: str) -> Path:
    """The names and positions of a path. Raises `Invalid` with the column of the mistake."""
    at = 1 if text.startswith("$") else 0
    parts: list[str | int] = []
    while at < len(text):
        match = _PART.match(text, at)
        # After the first part, a name needs its dot: `items[0]sku` is a mistake.
        if match is None or (at and match["name"] and text[at] != "."):
            raise Invalid("not a path into JSON", "write it like items[0].sku", column=at + 1)
        item = match["item"]
        if item is None:
            parts.append(match["quoted"] if match["quote"] else match["name"] or match["bare"])
        else:
            parts.append(int(item) if item.isdecimal() else EVERY)
        at = match.end()
    return tuple(parts)


def values_at(value: Any, path: Path) -> list[Any]:
    """Every value at the path; none if part of the path is missing."""
    values = [value]
    for part in path:
        inner: list[Any] = []
        for each in values:
            if isinstance(part, str):
                inner += [each[part]] if isinstance(each, dict) and part in each else []
            elif isinstance(each, list):
                inner += each if part == EVERY else each[part : part + 1]
        values = inner
    return values


def names_in(path: Path) -> list[str]:
    """The names in a path."""
    return [part for part in path if isinstance(part, str)]
