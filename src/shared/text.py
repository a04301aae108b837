"""Foreign text made safe to stand in one line: escaped so that it can be read back, and bounded. Pure."""

import re

# Control characters, line and paragraph separators, bidirectional controls, invisible formatters, surrogates and tag
# characters: what could end a line, reorder it, or hide text in it. The joiners U+200C and U+200D stay: scripts and
# emoji need them. The backslash is escaped so that the escape can be undone.
_UNSAFE = re.compile(
    "[\\\\\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([nrt\\]))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ACTION_LINE = re.compile(r"<([^<>]+)> -> ([A-Z]+(?: [A-Z]+)*)(?:: ([^<>]*))?")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_UNNAMED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}


def escape_line(text: str) -> str:
    r"""The text in one line: line breaks, controls and invisible characters become ``\n``, ``\u202e`` and the like."""
    return _UNSAFE.sub(_escape_one, text)


def unescape_line(line: str) -> str:
    """The inverse of `escape_line`. What is no escape stays as it is; never raises."""
    return _ESCAPE.sub(_unescape_one, line)


def one_line(text: str, limit: int = 200) -> str:
    """`text` on one line for display: control and direction characters become blanks, at most `limit` characters."""
    return clip(_BREAKS.sub(" ", text).strip(), limit)


def clip(text: str, limit: int) -> str:
    """The text, cut to at most `limit` characters (at least 1), the last one an ellipsis when something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt(text: str, limit: int = 60) -> str:
    """A bounded, escaped, quoted piece of foreign text for use inside a sentence."""
    return '"' + clip(escape_line(clip(text, limit)), limit).replace('"', "'") + '"'


def without_surrogates(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be encoded as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def split_line(line: str) -> tuple[str, str, str | None] | None:
    """Subject, verb and value of an action line; `None` for any other text."""
    match = _ACTION_LINE.fullmatch(line)
    return None if match is None else (match[1], match[2], match[3])


def _escape_one(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _NAMED.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def _unescape_one(match: re.Match[str]) -> str:
    short, long, named = match.groups()
    if named:
        return _UNNAMED[named]
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF else match.group()
