"""Reads the reason out of a screenshot-scoring reply. Pure; linear in the reply's length."""

import re

from judge.parsing.plain_text import without_thinking

_SCORE_LINE = re.compile(r"[^\w\n]{0,16}(?:\d[.)][^\w\n]{0,8})?(?:(?:final|relevance)[ _])?scores?\b", re.IGNORECASE)
_LABEL = re.compile(r"[^\w\n]{0,16}(?:\d[.)][^\w\n]{0,8})?reason(?:ing)?[*_]{0,3}\s?:[*_\s]{0,6}", re.IGNORECASE)


def parse_reason(text: str) -> str:
    """What a screenshot-scoring reply says beside its score, in one line; empty when it says nothing."""
    lines = [line for line in without_thinking(text).splitlines() if not _SCORE_LINE.match(line)]
    return " ".join(_LABEL.sub("", "\n".join(lines), count=1).split())
