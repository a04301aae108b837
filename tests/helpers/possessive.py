"""Which possessive groups of regular expressions are right on every Python that we promise.

Before 3.11.5, Python goes on where the last repetition of such a group failed, not where it began. A group is right if
nothing in it moves on before it fails: it has only series of single characters, or repeats one. Others need a last
alternative that never matches, `|(?!)`, because trying it restores the place. Groups that capture in a possessive group
are wrong on later Pythons as well.
"""

import re
from collections.abc import Iterator

_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_CHARACTER = rf"(?:\\.|{_CLASS}|[^\[\]\\(){{}}|*+?\x00])"
_SIMPLE = rf"(?:{_CHARACTER}[*+]\+|{_CHARACTER}+)"
_RIGHT = re.compile(rf"\(\?:{_SIMPLE}(?:\|{_SIMPLE})*\)", re.DOTALL)
_CAPTURES = re.compile(r"(?<!\\)\((?:(?!\?)|\?P<)")
_TOKEN = re.compile(
    rf"\\.|{_CLASS}|\((?:\?(?:P?<\w+>|<?[=!]|[:>]))?|(?P<possessive>(?:[*+?]|\{{\d*,?\d*\}})\+)|\S", re.DOTALL
)


def doubtful_groups(pattern: str) -> Iterator[str]:
    """The possessive groups of `pattern` that may be wrong; a NUL stands for a part that is not known."""
    opened: list[int] = []
    group = ""
    for token in _TOKEN.finditer(pattern):
        ended, group = group, ""
        if token["possessive"]:
            if ended and (_CAPTURES.search(ended) or not (ended.endswith("|(?!))") or _RIGHT.fullmatch(ended))):
                yield ended + token[0]
        elif token[0].startswith("("):
            opened.append(token.start())
        elif token[0] == ")":
            group = pattern[opened.pop() if opened else 0 : token.end()]
        elif token[0] == "\0":
            group = token[0]
