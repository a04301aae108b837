"""Text as people see it: two texts that look the same on a screen are the same text. Pure.

A page may write `ü` as one character or as two, and put characters into a name that nobody can see: direction marks,
soft hyphens, zero-width spaces. Whoever writes a check, a script or an answer cannot know that. So both sides of a
comparison are composed (Unicode's form NFC) and taken without invisible characters. What is recorded stays as it was.

The joiners U+200C and U+200D stay, because words and emoji differ by them.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

TextForm = Callable[[str], str]

# What Unicode tells programs not to draw: format characters, the combining grapheme joiner, selectors of a character's
# variant, and code points reserved for more of them. Neither letters that only fill a place (U+3164 and others),
# which are wide, nor drawn format characters, such as the number signs of Arabic.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff]"
)
# Tags are not drawn either, except that a black flag with them is the flag of England, Scotland or Wales.
_FLAGS = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_TAGS = re.compile(rf"({_FLAGS})|[\U000e0020-\U000e007f]")
# Characters for private use: the pictures of icon fonts.
ICON = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
# In an address: the UTF-8 of characters outside of ASCII.
_ENCODED = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")


def as_seen(text: str) -> str:
    """The text as people see it."""
    # Most texts, and the quickest test.
    if text.isascii():
        return text
    visible = _TAGS.sub(lambda match: match[1] or "", _UNSEEN.sub("", text))
    return unicodedata.normalize("NFC", visible)


def folded(text: str) -> str:
    """The text as some program or reader could take it: `ｐａｙ` and `pay` are the same (Unicode's form NFKC)."""
    return unicodedata.normalize("NFKC", as_seen(text))


def without_icons(text: str) -> str:
    """The text without the pictures of icon fonts."""
    return text if text.isascii() else ICON.sub("", text)


def name_as_seen(name: str) -> str:
    """A name as people read it: without pictures, unless it has nothing else."""
    name = as_seen(name)
    plain = without_icons(name)
    return plain if plain.strip() else name


def address_as_seen(url: str) -> str:
    """The address as people see it: characters outside of ASCII are decoded, all others stay as they are written."""
    return as_seen(_ENCODED.sub(_decoded, url))


def _decoded(match: re.Match[str]) -> str:
    try:
        return unquote_to_bytes(match[0]).decode()
    except UnicodeDecodeError:
        return match[0]


def values_as_seen(value: Any, form: TextForm = as_seen) -> Any:
    """The value with every text and key in it as people see it, or in another form of texts.

    Any type but lists, tuples and tables stays itself.
    """
    match value:
        case str():
            return form(value)
        case list():
            return [values_as_seen(item, form) for item in value]
        # Not named tuples, which have fields.
        case tuple() if type(value) is tuple:
            return tuple(values_as_seen(item, form) for item in value)
        case dict():
            return {values_as_seen(key, form): values_as_seen(item, form) for key, item in value.items()}
    return value
