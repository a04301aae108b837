"""Normalises a judge model's reply, so that a label reads the same however it was formatted. Pure; linear time."""

import html
import re
import unicodedata

from judge.parsing.sections import HALF, LABEL, without_sections
from shared.quotations import outside_quotations
from shared.reasoning import escape_marks, without_reasoning

# Characters that NFKC does not change: minus and hyphens, the asterisk operator, the fraction slash.
_FOLD = str.maketrans("−‐‑∗⁄", "---*/")
# Soft hyphens, zero-width characters, variation selectors, and the keycap around an emoji's digit.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\u20e3\ufeff]")
# "Score: ~~4~~ 3": the model has withdrawn the 4.
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(s|del|strike)>[^\n]{1,200}?</\1>", re.IGNORECASE)
# Tags that begin or end a line, and control tokens such as `<|return|>` or `<|begin_of_box|>`.
_TAG = re.compile(
    rf"<(?P<label>{LABEL})>|</{LABEL}>|<\|\w{{1,30}}\|>|</s>|<br\s?/?>|</?(?:p|div|li|h[1-6])>", re.IGNORECASE
)
# The first character of what means something in a reply.
_MARK = re.compile(rf"(?={_TAG.pattern}|~~|{HALF}).", re.IGNORECASE)
_ENTITY = re.compile(r"&[#\w]{1,32};?")
_WORD_TAG = re.compile(r"</?(?:b|strong|em|i|u|span|code)>", re.IGNORECASE)
# "__Score__" is emphasis; "final_score" is a name and stays.
_UNDERSCORES = re.compile(r"(?<!\w)_+|(?<!_)_++(?!\w)")


def without_marks(text: str) -> str:
    r"""A text shown to a judge model, in which nothing has a meaning if a reply repeats it: `\u003cstatus>`."""
    return _MARK.sub(lambda mark: f"\\u{ord(mark[0]):04x}", escape_marks(text))


def plain_text(text: str) -> str:
    """The reply without reasoning, excerpts, struck-out words, tags, invisible characters and full-width letters.

    Outside of quotations, a tag `<score>`, `<status>` or `<answer>` becomes a label on a separate line. Underscores
    around words become asterisks.
    """
    text = _ENTITY.sub(_character, without_reasoning(text))
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_FOLD)
    text = _WORD_TAG.sub("", _with_lines(_STRUCK.sub("", without_sections(text))))
    return _UNDERSCORES.sub(lambda match: "*" * len(match.group()), text)


def _character(entity: re.Match[str]) -> str:
    # Not a line feed, which would begin a line in the middle of a quotation.
    return html.unescape(entity[0]).replace("\n", " ")


def _with_lines(text: str) -> str:
    """The text with a line break for each tag that begins or ends a line, and its label."""
    parts, end = [], 0
    for tag in outside_quotations(_TAG, text, fenced=True):
        parts += [text[end : tag.start()], f"\n{tag['label']}: " if tag["label"] else "\n"]
        end = tag.end()
    return "".join((*parts, text[end:]))
