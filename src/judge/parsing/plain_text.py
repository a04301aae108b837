"""Normalises a judge model's reply, so that a label reads the same however it was formatted. Pure; linear time."""

import html
import re
import unicodedata

# Characters that NFKC does not change: minus and hyphens, the asterisk operator, the fraction slash.
_FOLD = str.maketrans("−‐‑∗⁄", "---*/")
# Soft hyphens, zero-width characters, variation selectors, and the keycap around an emoji's digit.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\u20e3\ufeff]")
_THINKING = re.compile(r"\s*<(think|thinking|thought)>(?:.*?</\1>|.*)", re.IGNORECASE | re.DOTALL)
# "Score: ~~4~~ 3": the model has withdrawn the 4.
_STRUCK = re.compile(r"~~[^~\n]{1,80}~~|<(s|del|strike)>[^<\n]{1,80}</\1>", re.IGNORECASE)
_LABEL_TAG = re.compile(r"<((?:final_?|overall_?)?(?:score|status))>", re.IGNORECASE)
_LINE_TAG = re.compile(r"</(?:final_?|overall_?)?(?:score|status)>|<br\s?/?>|</?(?:p|div|li|h[1-6])>", re.IGNORECASE)
_WORD_TAG = re.compile(r"</?(?:b|strong|em|i|u|span|code)>", re.IGNORECASE)
# "__Score__" is emphasis; "final_score" is a name and stays.
_UNDERSCORES = re.compile(r"(?<!\w)_+|(?<!_)_++(?!\w)")


def without_thinking(text: str) -> str:
    """The reply without its leading thinking section; empty if that section is never closed."""
    thinking = _THINKING.match(text)
    return text[thinking.end() :] if thinking else text


def plain_text(text: str) -> str:
    """The reply without thinking, struck-out words, markup tags, invisible characters and full-width letters.

    A tag `<score>` or `<status>` becomes a label on a line of its own; underscores around words become asterisks.
    """
    text = without_thinking(_INVISIBLE.sub("", html.unescape(text)))
    text = unicodedata.normalize("NFKC", text).translate(_FOLD)
    text = _LABEL_TAG.sub(r"\n\1: ", _STRUCK.sub("", text))
    text = _WORD_TAG.sub("", _LINE_TAG.sub("\n", text))
    return _UNDERSCORES.sub(lambda found: "*" * len(found.group()), text)
