"""Foreign text inside action lines: names, values and addresses, bounded and free of what could break a line. Pure."""

import re
from collections.abc import Sequence

from shared.seen import as_seen, without_icons
from shared.text import clip

MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 200
MAX_SHOWN_URL_CHARS = 500
MAX_LISTED = 10

_BRACKETS = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})
# Control characters other than white space, and surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")


def one_line(text: str, limit: int) -> str:
    """Foreign text for use in a line, as people see it: white space collapsed, controls and pictures of icon fonts
    removed, angle brackets replaced.
    """
    # Cut twice: first to bound the work, then to the limit.
    short = clip(text, limit * 4)
    visible = without_icons(as_seen(_CONTROLS.sub("", short)))
    return clip(" ".join(visible.translate(_BRACKETS).split()), limit)


def value(text: str) -> str:
    """Text as the value of a line."""
    return one_line(text, MAX_VALUE_CHARS)


def quoted(text: str) -> str:
    """Text as one of several values."""
    return '"' + value(text).replace('"', "'") + '"'


def quoted_list(values: Sequence[str]) -> str:
    """Several values; a single one is not quoted."""
    if len(values) == 1:
        # Quotation marks are only around the values of a longer list.
        return value(values[0]).replace('"', "'")
    return ", ".join(map(quoted, values[:MAX_LISTED])) + rest(values)


def rest(values: Sequence[str], mark: str = "") -> str:
    """A note on the number of values that a line does not show."""
    more = len(values) - MAX_LISTED
    return f"{mark} and {more} more" if more > 0 else ""


def url(address: str) -> str:
    """The address as the browser encodes it: without spaces and angle brackets."""
    plain = address.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
    return one_line(plain, MAX_SHOWN_URL_CHARS)
