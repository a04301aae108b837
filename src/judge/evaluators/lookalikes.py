"""Says how a text differs from an expected one that looks the same. Pure; for findings only, so it may guess."""

import difflib
import unicodedata
from collections.abc import Iterable, Iterator
from types import MappingProxyType

from shared.text import plain

# Letters of other scripts and signs drawn like ASCII's.
_ALIKE_OF = {
    "A": "\u0391\u0410", "B": "\u0392\u0412", "C": "\u0421", "E": "\u0395\u0415", "H": "\u0397\u041d",
    "I": "\u0399\u0406", "J": "\u0408", "K": "\u039a\u041a", "M": "\u039c\u041c", "N": "\u039d", "O": "\u039f\u041e",
    "P": "\u03a1\u0420", "S": "\u0405", "T": "\u03a4\u0422", "X": "\u03a7\u0425", "Y": "\u03a5\u0423", "Z": "\u0396",
    "a": "\u03b1\u0430", "c": "\u0441", "e": "\u0435", "h": "\u04bb", "i": "\u0456", "j": "\u0458",
    "o": "\u03bf\u043e", "p": "\u0440", "q": "\u051b", "s": "\u0455", "v": "\u03bd", "w": "\u051d",
    "x": "\u0445\u00d7", "y": "\u0443", "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "'": "\u2018\u2019\u201b\u02bc\u2032\u00b4", '"': "\u201c\u201d\u201e\u201f\u2033", ".": "\u00b7\u2022",
    "/": "\u2044\u2215", ":": "\u0589\ua789",
}  # fmt: skip
_ALIKE = MappingProxyType({ord(other): char for char, others in _ALIKE_OF.items() for other in others})
_MAX_SHOWN = 3
# Of each text: more is not compared, because the comparison takes quadratic time.
_MAX_CHARS = 2_000
_NONE = "no character"


def unseen_difference(expected: str, texts: Iterable[str]) -> str:
    """What the first text that looks like the expected one has instead of it; empty if none does.

    A text may be longer than the expected one.
    """
    return next(filter(None, (_difference(expected, text) for text in texts)), "")


def with_difference(message: str, expected: str, texts: Iterable[str]) -> str:
    """A finding with the `unseen_difference` after it, if there is one."""
    difference = unseen_difference(expected, texts)
    return f"{message}; {difference}" if difference else message


def _difference(expected: str, text: str) -> str:
    expected, text = plain(expected)[:_MAX_CHARS], plain(text)[:_MAX_CHARS]
    # Two different texts in ASCII look different.
    if not expected or expected in text or (expected.isascii() and text.isascii()):
        return ""
    rendered, places = _rendered(text)
    looked_for = _rendered(expected)[0]
    begin = rendered.find(looked_for) if looked_for else -1
    if begin < 0:
        return ""
    last = begin + len(looked_for)
    end = places[last] if last < len(places) else len(text)
    differences = list(dict.fromkeys(_differences(expected, text[places[begin] : end])))
    more = len(differences) - _MAX_SHOWN
    texts = [*differences[:_MAX_SHOWN], *([f"{more} more"] if more > 0 else [])]
    return f"it looks the same, but has {'; '.join(texts)}" if texts else ""


def _rendered(text: str) -> tuple[str, list[int]]:
    """The text as it is drawn, and the place in it from which each character comes."""
    parts: list[str] = []
    places: list[int] = []
    for place, cluster in _clusters(text):
        # A letter with an accent looks different from one without, so they stay composed.
        alike = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", cluster).translate(_ALIKE))
        rendered = "".join(each for each in alike if unicodedata.category(each) not in ("Cf", "Co"))
        parts.append(rendered)
        places += [place] * len(rendered)
    return "".join(parts), places


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Each character with the accents that follow it, and its place."""
    begin = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or not unicodedata.combining(text[at]):
            yield begin, text[begin:at]
            begin = at


def _differences(expected: str, text: str) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, expected, text, autojunk=False)
    for kind, begin, end, start, stop in matcher.get_opcodes():
        if kind != "equal":
            yield f"{_character_names(text[start:stop])} instead of {_character_names(expected[begin:end])}"


def _character_names(text: str) -> str:
    names = [f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in text[:_MAX_SHOWN]]
    return " ".join([*names, *(["…"] if len(text) > _MAX_SHOWN else [])]) or _NONE
