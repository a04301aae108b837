"""Texts as snapshots write them: in YAML's quotes where they would be ambiguous. Pure."""

import re

# A key in YAML's single quotes, in which two of them stand for one.
YAML_QUOTED = re.compile(r"'((?:[^']|'')*+)'(:?)(?: (.*+))?", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def scalar(value: str) -> str:
    """The decoded value: YAML quotes it where it would be ambiguous."""
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        return _ESCAPE.sub(_unescape, value[1:-1])
    return value


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])
