"""Foreign text made safe for one line: escaped reversibly, bounded. Pure."""

import re

# Control characters, line and paragraph separators, bidirectional controls, invisible formatters, surrogates and tag
# characters: all that can end a line, reorder it, or hide text in it. Not the joiners U+200C and U+200D, which scripts
# and emoji need.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef"
)
_HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")
# The backslash is escaped as well, so that escapes can be undone.
_UNSAFE_CHARACTER = re.compile(f"[{_HIDDEN}\\t\\n\\\\]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([nrt\\]))")
# What cannot be shown as it is in one line.
_UNSHOWN_CHARACTER = re.compile(f"[{_HIDDEN}\\t\\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
# `<subject> -> VERB (x, y): value`. No part contains angle brackets, so a page's text cannot imitate another part.
_ACTION_LINE = re.compile(r"<([^<>]+)> -> ([A-Z]+(?: [A-Z]+)*)(?: \(-?[0-9.]{1,20}, -?[0-9.]{1,20}\))?(?:: ([^<>]*))?")
# An action line up to and including the note that `judge.browser.action_lines.with_downloads` adds.
_DOWNLOADS = re.compile(r"(<[^<>]+> -> [A-Z]+(?: [A-Z]+)*(?: \([\d., -]*\))?) \(download: [^()<>]*\)")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_MARKS = (('"', '"'), ("'", "'"), ("`", "`"), ("«", "»"))
_UNNAMED = {escape[1]: character for character, escape in _ESCAPES.items()}


def escape_line(text: str) -> str:
    r"""The text in one line: line breaks, controls and invisible characters become ``\n``, ``\u202e`` and the like."""
    return _UNSAFE_CHARACTER.sub(lambda match: _ESCAPES.get(match[0]) or _code_of(match), text)


def unescape_line(line: str) -> str:
    """The inverse of `escape_line`. Leaves everything but escapes unchanged; never raises."""
    return _ESCAPE.sub(_unescape, line)


def show_hidden(text: str) -> str:
    r"""The text with controls and invisible characters as ``\u202e`` and the like; tabs and line feeds stay."""
    return _HIDDEN_CHARACTER.sub(_code_of, text)


def clip(text: str, limit: int) -> str:
    """The text, cut to at most `limit` characters (at least 1), with an ellipsis as the last one if it was cut.

    >>> clip("a long text", 7)
    'a long…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(text: str) -> str:
    """The text with white space collapsed to single spaces and stripped."""
    return " ".join(text.split())


def one_line(text: str, limit: int = 200) -> str:
    """The text in one line for people: breaks, controls and direction characters become spaces. Not reversible."""
    return clip(_BREAKS.sub(" ", text).strip(), limit)


def bounded_line(text: str, limit: int) -> str:
    """The text in one line as `escape_line` makes it, in at most `limit` characters including the escapes."""
    return clip(escape_line(clip(text, limit)), limit)


def excerpt(text: str, limit: int = 60) -> str:
    """A bounded piece of foreign text in one line, in quotation marks, for use inside a sentence.

    Only breaks and hidden characters are escaped. The marks are of a kind that the text does not contain, so that its
    own characters can be shown as they are.
    """
    escaped = _UNSHOWN_CHARACTER.sub(lambda match: _ESCAPES.get(match[0]) or _code_of(match), clip(text, limit))
    clipped = clip(escaped, limit)
    before, after = next((marks for marks in _MARKS if not set(marks) & set(clipped)), _MARKS[0])
    return before + (clipped if before not in clipped else clipped.replace('"', "'")) + after


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 task`, `2 tasks`; `plural` where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def without_surrogates(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be encoded as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def split_line(line: str) -> tuple[str, str, str | None] | None:
    """Subject, verb and value of an action line, without its downloads; `None` for any other text.

    Coordinates belong to no part, except behind a value, which they end: `<Map img> -> DRAG: to page (1, 2) to (3, 4)`.
    """
    match = _ACTION_LINE.fullmatch(without_downloads(line))
    return None if match is None else (match[1], match[2], match[3])


def without_downloads(line: str) -> str:
    """An action line without the note of the files that the page began to download."""
    match = _DOWNLOADS.match(line)
    return line if match is None else match[1] + line[match.end() :]


def _code_of(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unescape(match: re.Match[str]) -> str:
    short, long, name_escape = match.groups()
    if name_escape:
        return _UNNAMED[name_escape]
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def usd(value: float | None) -> str:
    """US dollars for people: `$1.42`, `$0.0007`, `cost unknown`."""
    if value is None:
        return "cost unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"
