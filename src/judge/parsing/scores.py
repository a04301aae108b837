"""Reads the score and the reason from a screenshot-scoring reply. Pure; linear in the reply's length.

Only a number *labelled* as the score counts, outside of the model's reasoning (`shared.reasoning`); labels that
disagree count for nothing (`judge.parsing.agreement`). A label begins a line or a sentence ("Actually …
Revised score: 3"); one within a sentence counts only if there is no better one. A range ("1-5"), another scale
("7/10"), an echoed template and quoted text are not scores. There is no default.
"""

import re

from judge.parsing.agreement import StatedValue, agreed
from judge.parsing.labels import (
    FOREIGN,
    HEDGE,
    LINE,
    NOTE,
    PROSE_CHARS,
    QUALIFIER,
    SPAN,
    is_quoted,
    last_clause,
    last_line_start,
)
from judge.parsing.plain_text import plain_text
from shared.quotations import outside_quotations
from shared.reasoning import without_reasoning

_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_QUOTE = "\"'“”‘’`«»"
_NUMBER = r"(?P<value>\d+(?:[.,]\d+)?(?![A-Za-z0-9_])|\b(?:one|two|three|four|five)\b)"
_LINK = (
    r"(?:is|of|as|at|an?|would be|should be|equals|assigned|given|level|value|about|around|approximately|boxed"
    r"|(?:math|text)(?:bf|it|rm)?)"
)
# Between label and number: linking words, and any punctuation that neither ends the clause nor changes the number.
_GAP = rf"(?:[^\w.!?;%§]|\b{_LINK}\b){{0,40}}?"
# "**Final Score:** **5**", "1. Score (1-5): 3"
_LINE_SCORE = re.compile(rf"{LINE}scores?\b{NOTE}{_GAP}{_NUMBER}", re.IGNORECASE | re.MULTILINE)
# "Score: Highly relevant (4)"
_WORDED_SCORE = re.compile(
    rf"{LINE}scores?\b{NOTE}[*\s]{{0,4}}:[* \t]{{0,4}}(?:[a-z]{{1,20}}[ \t]{{1,2}}){{1,5}}[(–—-][* \t]{{0,4}}{_NUMBER}",
    re.IGNORECASE | re.MULTILINE,
)
# `{"final_score": 3, "max_score": 5}` is 3: the maximum is not the score.
_JSON_SCORE = re.compile(
    rf"""(?i)["'](?!max|min)(?:\w{{1,20}}[ _-])?score\\?["']\s{{0,8}}:\s{{0,8}}\\?["']?{_NUMBER}"""
)
# "Reasoning: partial. Score: 3"
_INLINE_SCORE = re.compile(rf"(?i)\bscore\b{NOTE}[*)\]\s]{{0,4}}[:=]{_GAP}{_NUMBER}")
# Text allowed before an inline label for it to be the judge's: no quotation mark, not another thing's name.
_BEFORE_INLINE = re.compile(
    rf"(?i)(?:^|[^\w\s{_QUOTE}>][\s*_#(]{{0,6}}|{FOREIGN}[\s*(]{{0,6}}"
    rf"|\b(?:{QUALIFIER}|so|is|thus|give|assign)[ *_]+)$"
)
_SHOT = r"(?:(?:this|the)\s+(?:image|screenshot|snapshot|picture|page)|it|this)"
# "The image deserves a 3.", "I would give this image a score of 4."
_PROSE_SCORE = re.compile(
    rf"(?i)(?:\b(?:I|we)\b{SPAN}{{0,40}}?\b(?:rate|score|give|assign|award|grade|judge|choose|settle on|go with)\b"
    rf"|\b{_SHOT}\b{SPAN}{{0,30}}?(?<![\w{_QUOTE}-])(?:deserves?|merits?|warrants?|earns?|gets?|receives?|scores?|rates?|rated|scored)\b"
    rf"|\b(?:the\s+score|(?:my|final|overall|relevance)\s+(?:score|rating))\s+(?:is|should be|would be)\b)"
    rf"{SPAN}{{0,50}}?(?<![\w./-])(?P<value>[0-9]+(?:[.,]\d+)?)(?![\w])"
)
# "Rating: 4" or "The answer is \boxed{3}" as the last line
_LAST_LINE_SCORE = re.compile(rf"(?:{LINE}rating\b{NOTE}{_GAP}|[^\n]{{0,200}}\\boxed\{{){_NUMBER}", re.IGNORECASE)
_DIGIT = r"(?:\d|\b(?:one|two|three|four|five)\b)"
# "1-5", "2 to 3", "4 → 3": the scale, or an undecided reply.
_RANGE = re.compile(
    rf"(?<![\d.,/]){_DIGIT}(?:/5)?(?:[-–—~]|\s?\.\.\.?\s?|\s?(?:→|[-=]{{1,2}}>)\s?|\s(?:to|through|or)\s"
    rf"|\s[-–]\s(?=\d\s{{0,2}}(?:[),.;:\]]|scale|$))|(?<=between\s\d)\sand\s){_DIGIT}(?!\d)",
    re.IGNORECASE | re.MULTILINE,
)
# "1, 2, 3, 4 or 5"
_ENUMERATION = re.compile(
    r"\d(?:\s{0,2},\s{0,2}\d){2,9}(?:\s{0,2},?\s{0,2}(?:or|and)\s{0,2}\d)?|\d(?:\s?/\s?\d){2,9}|\d(?:\s?\|\s?\d){2,9}"
)
# "4 / 5" and "3 out of 5" are scores, "8/10" and "5 of the 6 points" are not.
_SCALE = re.compile(r"[*_`\"'”’)\]}\s]{0,6}(?:/|\bout of\b|\bof\b)\s{0,3}[*_`]{0,3}(\d+|the\b|all\b)", re.IGNORECASE)
# "80%", "4 upvotes", "Score: 3 would need the price"
_NOT_A_SCORE = re.compile(
    r"[^\S\n]{0,2}(?:%|:\d|stars?\b|★|upvotes?\b|(?:would|requires?|needs?|means)\b"
    r"|(?:→|[-=]{1,2}>)[^\n]{0,16}?[1-5])|[*]{0,3}\s?%",
    re.IGNORECASE,
)
_SCORE_LINE = re.compile(r"[^\w\n]{0,16}(?:\d[.)][^\w\n]{0,8})?(?:(?:final|relevance)[ _])?scores?\b", re.IGNORECASE)
_REASON_LABEL = re.compile(r"[^\w\n]{0,16}(?:\d[.)][^\w\n]{0,8})?reason(?:ing)?[*_]{0,3}\s?:[*_\s]{0,6}", re.IGNORECASE)


def parse_score(text: str) -> int | None:
    """The relevance score (1-5) that a screenshot-scoring reply states, or `None` when it states none."""
    text = plain_text(text)
    # Masked, not removed, so that positions do not change.
    for pattern in (_ENUMERATION, _RANGE):
        text = pattern.sub(lambda match: "§" * len(match.group()), text)
    patterns = (_LINE_SCORE, _WORDED_SCORE, _JSON_SCORE)
    matches = [match for pattern in patterns for match in pattern.finditer(text) if not is_quoted(text, match)]
    matches += [
        match
        for match in outside_quotations(_INLINE_SCORE, text, fenced=True)
        if _BEFORE_INLINE.search(text[max(0, match.start() - 40) : match.start()])
    ]
    if matches:
        return _agreed_score(text, sorted(matches, key=lambda match: match.start("value")))
    tail = text[-PROSE_CHARS:]
    prose = [match for match in outside_quotations(_PROSE_SCORE, tail) if not _is_hedged(tail, match)]
    if prose:
        return _agreed_score(tail, prose)
    last_line = text[last_line_start(text) :]
    rating = _LAST_LINE_SCORE.match(last_line)
    return _score(last_line, rating) if rating else None


def _agreed_score(text: str, matches: list[re.Match[str]]) -> int | None:
    scores = ((match, _score(text, match)) for match in matches)
    return agreed(
        text, [StatedValue(match.start("value"), match.end(), score) for match, score in scores if score is not None]
    )


def _score(text: str, match: re.Match[str]) -> int | None:
    """The labelled number as a score; `None` for signs, fractions, percentages, other scales and list numbers."""
    start, end = match.span("value")
    raw = match.group("value").lower()
    after = text[end : end + 24]
    scale = _SCALE.match(after)
    has_sign = text[start - 1 : start] in ("-", "+", ">", "≥", "≤")
    if has_sign or (scale and scale.group(1) != "5") or _NOT_A_SCORE.match(after):
        return None
    number = float(_WORDS[raw] if raw in _WORDS else raw.replace(",", "."))
    if not number.is_integer() or not 1 <= number <= 5 or _is_list(text, start, end, int(number)):
        return None
    return int(number)


def _is_list(text: str, start: int, end: int, number: int) -> bool:
    """Whether the number opens a numbered list ("1. … 2. …") rather than states a score."""
    at_line_start = not text[max(0, start - 4) : start].rpartition("\n")[2].strip()
    if not (at_line_start and re.match(r"[.)]\s+\S", text[end : end + 8])):
        return False
    return re.search(rf"(?m)^\s{{0,8}}{number + 1}[.)]\s", text[end : end + 2_000]) is not None


def _is_hedged(text: str, match: re.Match[str]) -> bool:
    """Whether a prose statement is denied or hypothetical ("I cannot give it a 5", "if …, I would rate it 5")."""
    return HEDGE.search(last_clause(text, match.start(), match.start()) + match.group()) is not None


def parse_reason(text: str) -> str:
    """The text of a screenshot-scoring reply apart from its score, in one line; may be empty."""
    lines = [line for line in without_reasoning(text).splitlines() if not _SCORE_LINE.match(line)]
    return " ".join(_REASON_LABEL.sub("", "\n".join(lines), count=1).split())
