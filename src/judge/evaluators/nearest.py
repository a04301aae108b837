"""Shared by kinds of checks: finds where an attempt came close to the expected result, such as a wrong but similar
element.

For reports only: no verdict depends on it, so it may guess.
"""

import difflib

from shared.text import clip, plain

# Roles of elements that have a state or value which a participant sets.
CONTROLS = frozenset(
    """checkbox combobox listbox menuitemcheckbox menuitemradio option radio searchbox slider spinbutton switch tab
    textbox""".split()
)
_SIMILAR = 0.6
_MAX_NAME_CHARS = 100


def is_similar(one: str, other: str) -> bool:
    """Whether one name could have been mistaken for the other."""
    first, second = (clip(plain(text).casefold(), _MAX_NAME_CHARS) for text in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= _SIMILAR
