"""Reads judge models' replies: screenshot scores, outcome statuses, key points. Pure; linear in the reply's length.

One principle for scores and statuses: only what is *labelled* as the score or the status counts, and of several labels
the last. A label stands on a line of its own, or opens a sentence behind one ("Actually … Revised score: 3"); inside a
sentence it counts where nothing better is found. A range ("1-5"), another scale ("7/10"), a template that was echoed
("success or failure") and a word inside quotation marks are none. What is not found is `None`, never a default.
"""

import re
from typing import Literal

from judge.parsing.points import parse_key_points as parse_key_points
from judge.parsing.text import plain_text

Status = Literal["success", "failure"]

_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_DECOR = r"[^\w\n>]"
_QUALIFIER = (
    r"(?:the|my|a|final|overall|total|relevance|relevancy|usefulness|image|screenshot|snapshot|assigned|given|numeric"
    r"|suggested|updated|revised|corrected|adjusted|evaluation|assessment|judge?ment|task|completion|success|execution"
    r"|agent|attempt)(?: \d{1,2})?"
)
_LINE = (
    rf"^{_DECOR}{{0,16}}(?:(?:\d{{1,2}}[.)]|(?:answer|output|line \d):){_DECOR}{{1,8}})?(?:{_QUALIFIER}[ _-]){{0,3}}"
)
_NOTE = (
    r"(?:[ \t]*[(\[][^)\]\n]{0,60}[)\]]|,?[ \t]*§{3,9}(?=[ \t]*[:=])"
    r"|[ \t]+(?:on|from|out of|in)\b[^:=\n\d]{0,40}(?=[:=])"
    r"|[ \t]+(?:of|for) (?:the|this) (?:image|screenshot|snapshot|task)\b)?"
)
_FOREIGN = r"[^\W\x00-\u036f]"  # a letter of a script that has no label of ours: a reply in another language
_QUOTE = "\"'“”‘’`«»"

# -- scores ------------------------------------------------------------------------------------------------------------

_NUMBER = r"(?P<value>\d+(?:[.,]\d+)?(?![A-Za-z0-9_])|\b(?:one|two|three|four|five)\b)"
_LINK = (
    r"(?:is|of|as|at|an?|would be|should be|equals|assigned|given|level|value|about|around|approximately|boxed"
    r"|(?:math|text)(?:bf|it|rm)?)"
)
# Any signs but those that end a clause or make another thing of the number behind them, and words that lead to it.
_GAP = rf"(?:[^\w.!?;%§]|\b{_LINK}\b){{0,40}}?"
_SCORE_LINE = re.compile(rf"{_LINE}scores?\b{_NOTE}{_GAP}{_NUMBER}", re.IGNORECASE | re.MULTILINE)
# "Score: Highly relevant (4)"
_SCORE_WORDED = re.compile(
    rf"{_LINE}scores?\b{_NOTE}[*\s]{{0,4}}:[* \t]{{0,4}}(?:[a-z]{{1,20}}[ \t]{{1,2}}){{1,5}}[(–—-][* \t]{{0,4}}"
    rf"{_NUMBER}",
    re.IGNORECASE | re.MULTILINE,
)
_SCORE_JSON = re.compile(
    rf"""(?i)["'](?!max|min)(?:\w{{1,20}}[ _-])?score\\?["']\s{{0,8}}:\s{{0,8}}\\?["']?{_NUMBER}"""
)
_SCORE_INLINE = re.compile(rf"(?i)\bscore\b{_NOTE}[*)\]\s]{{0,4}}[:=]{_GAP}{_NUMBER}")
_BEFORE_INLINE = re.compile(
    rf"(?i)(?:^|[^\w\s{_QUOTE}>][\s*_#(]{{0,6}}|{_FOREIGN}[\s*(]{{0,6}}"
    rf"|\b(?:{_QUALIFIER}|so|is|thus|give|assign)[ *_]+)$"
)
_SHOT = r"(?:(?:this|the)\s+(?:image|screenshot|snapshot|picture|page)|it|this)"
_SPAN = r"[^.!?\n\d]"
_SCORE_PROSE = re.compile(
    rf"(?i)(?:\b(?:I|we)\b{_SPAN}{{0,40}}?\b(?:rate|score|give|assign|award|grade|judge|choose|settle on|go with)\b"
    rf"|\b{_SHOT}\b{_SPAN}{{0,30}}?(?<![\w-])(?:deserves?|merits?|warrants?|earns?|gets?|receives?|scores?|rates?|rated|scored)\b"
    rf"|\b(?:the\s+score|(?:my|final|overall|relevance)\s+(?:score|rating))\s+(?:is|should be|would be)\b)"
    rf"{_SPAN}{{0,50}}?(?<![\w.-])(?P<value>[0-9]+(?:\.\d+)?)(?![\w])"
)
_SCORE_LAST_LINE = re.compile(rf"(?:{_LINE}rating\b{_NOTE}{_GAP}|[^\n]{{0,200}}\\boxed\{{){_NUMBER}", re.IGNORECASE)
_HEDGE = re.compile(
    r"(?i)\b(?:not|never|cannot|\w+n['’]t|rather than|instead of|less than|more than|at least|if|unless|whether|unclear"
    r"|might)\b"
)
_DIGIT = r"(?:\d|\b(?:one|two|three|four|five)\b)"
_RANGE = re.compile(
    rf"(?<![\d.,/]){_DIGIT}(?:/5)?(?:[-–—~]|\s?\.\.\.?\s?|\s?(?:→|[-=]{{1,2}}>)\s?|\s(?:to|through|or)\s"
    rf"|\s[-–]\s(?=\d\s{{0,2}}(?:[),.;:\]]|scale|$))|(?<=between\s\d)\sand\s){_DIGIT}(?!\d)",
    re.IGNORECASE | re.MULTILINE,
)
_TEMPLATE = re.compile(
    r"\d(?:\s{0,2},\s{0,2}\d){2,9}(?:\s{0,2},?\s{0,2}(?:or|and)\s{0,2}\d)?|\d(?:\s?/\s?\d){2,9}|\d(?:\s?\|\s?\d){2,9}"
)
_SCALE = re.compile(r"[*_`\"'”’)\]}\s]{0,6}(?:/|\bout of\b|\bof\b)\s{0,3}[*_`]{0,3}(\d+|the\b|all\b)", re.IGNORECASE)
_NO_SCORE = re.compile(
    r"\s{0,2}(?:%|:\d|stars?\b|★|upvotes?\b|(?:would|requires?|needs?|means)\b"
    r"|(?:→|[-=]{1,2}>)[^\n]{0,16}?[1-5])|[*]{0,3}\s?%",
    re.IGNORECASE,
)
_PROSE_CHARS = 8_000


def parse_score(text: str) -> int | None:
    """The relevance score (1-5) that a screenshot-scoring reply states, or `None` when it states none."""
    text = _mask(plain_text(text))
    found = [*_SCORE_LINE.finditer(text), *_SCORE_WORDED.finditer(text), *_SCORE_JSON.finditer(text)]
    found += [match for match in _SCORE_INLINE.finditer(text) if _stands_free(text, match.start())]
    if found:
        return _last_score(text, sorted(found, key=lambda match: match.start("value")))
    tail = text[-_PROSE_CHARS:]
    prose = [found for found in _SCORE_PROSE.finditer(tail) if not _hedged(tail, found)]
    if prose:
        return _last_score(tail, prose)
    last_line = text[_last_line(text) :]
    rating = _SCORE_LAST_LINE.match(last_line)
    return _score(last_line, rating) if rating else None


def _mask(text: str) -> str:
    """Blank ranges and enumerations of the scale out, keeping every position."""
    for pattern in (_TEMPLATE, _RANGE):
        text = pattern.sub(lambda found: "§" * len(found.group()), text)
    return text


def _last_line(text: str) -> int:
    """Where the last line begins that is not blank."""
    return text.rfind("\n", 0, len(text.rstrip())) + 1


def _last_score(text: str, found: list[re.Match[str]]) -> int | None:
    scores = [score for score in (_score(text, match) for match in found) if score is not None]
    return scores[-1] if scores else None


def _score(text: str, found: re.Match[str]) -> int | None:
    """The labelled number as a score; `None` for signs, fractions, percentages, other scales and list numbers."""
    start, end = found.span("value")
    raw = found.group("value").lower()
    after = text[end : end + 24]
    scale = _SCALE.match(after)
    if (
        text[start - 1 : start] in ("-", "+", ">", "≥", "≤")
        or (scale and scale.group(1) != "5")
        or _NO_SCORE.match(after)
    ):
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


def _stands_free(text: str, start: int) -> bool:
    """Whether a label inside a sentence is the judge's own: not quoted, not some other thing's score."""
    return _BEFORE_INLINE.search(text[max(0, start - 40) : start]) is not None


def _hedged(text: str, found: re.Match[str]) -> bool:
    """Whether a prose statement is denied or only supposed ("I cannot give it a 5", "if …, I would rate it 5")."""
    begin = max(0, found.start() - 80)
    clause = re.split(r"[.!?\n;]", text[begin : found.start()])[-1]
    return _HEDGE.search(clause + found.group()) is not None


# -- statuses ----------------------------------------------------------------------------------------------------------

_DENIAL = r"(?:not|no|never|cannot|without|far from|\w{1,8}n['’]t)"
_BETWEEN = r"(?:a|an|as|yet|the|fully|entirely|completely|successfully|completed?|considered|deemed|been|be)"
_OUTCOME = (
    rf"(?P<denied>\b{_DENIAL}\b(?:[ \t]+{_BETWEEN}\b){{0,3}}[ \t]+|\bun|\bnon-?)?"
    r"(?P<value>(?:(?<=un)|(?<=non)|(?<=-)|\b)(?:success(?:ful(?:ly)?)?|succeed(?:ed|s)?|fail(?:ure|ed|s)?|incomplete"
    r"|(?<=not )(?:completed?|met|achieved)|pass(?:ed)?))(?!\w)"
)
# The words by which a sentence gets from "status" to its outcome: "the task was completed successfully".
_STATUS_LINK = (
    r"(?:is|was|has|have|been|be|did|does|should|as|an?|the|therefore|thus|considered|deemed|marked|to|agent|task|attempt"
    r"|clear(?:ly)?|overall|total|definite(?:ly)?|i|conclude|yes|decision|completed?|boxed|text)"
)
_STATUS_GAP = rf"(?:[^\w.!?]|\b{_STATUS_LINK}\b){{0,40}}?"
_STATUS_LINE = re.compile(rf"(?P<head>{_LINE})status\b{_NOTE}{_STATUS_GAP}{_OUTCOME}", re.IGNORECASE | re.MULTILINE)
_STATUS_JSON = re.compile(
    rf"""(?i)["'](?:\w{{1,20}}[ _-])?status\\?["']\s{{0,8}}:\s{{0,8}}\\?["']{_OUTCOME}(?=\\?["'])"""
)
_STATUS_INLINE = re.compile(rf"(?i)\bstatus\b{_NOTE}[*)\]\s]{{0,4}}[:=]{_STATUS_GAP}{_OUTCOME}")
_BEFORE_STATUS = re.compile(
    rf"(?:^|[.!?;)\]*—–/\n,]|{_FOREIGN})[ \t*#(]{{0,6}}(?:(?:so|thus|hence|therefore),?[ ])?"
    rf"(?:{_QUALIFIER}[ *]{{1,3}}){{0,3}}$",
    re.IGNORECASE,
)
_STATUS_PROSE = re.compile(
    rf"(?i)\b(?:the|final|overall|task|therefore) status\b{_SPAN}{{0,40}}?\b(?:is|as|be)\b"
    rf"[\s*\"'“”:]{{1,4}}(?:(?:an?|therefore|thus)\s+)?[\"'“*]{{0,3}}{_OUTCOME}"
)
# The reply's last words: "Therefore, the task was not completed successfully."
_TASK_PROSE = re.compile(rf"\b(?:the|this) (?:task|attempt)\b{_STATUS_GAP}{_OUTCOME}(?=\W{{0,6}}$)", re.IGNORECASE)
_OTHER_LABEL = re.compile(
    rf"(?P<head>{_LINE})(?:verdict|decision|outcome|result|conclusion|evaluation|judge?ment|answer){_STATUS_GAP}{_OUTCOME}(?=\W{{0,6}}$)",
    re.IGNORECASE | re.MULTILINE,
)
_ALTERNATIVE = re.compile(
    r"[\"'”’*`\s]{0,6}(?:\?|(?:[/|→]|[-=]{1,2}>|\bor\b)[\"'“‘*`\s]{0,6}(?:success|fail|not|un)"
    r"|(?:,|\band\b)[\"'“‘*`\s]{0,6}(?:success|fail))",
    re.IGNORECASE,
)
_OTHER_NOUN = re.compile(
    r"\s+(?:rate|messages?|criteria|criterion|page|banner|notification|alert|toast|code|state|conditions?)\b",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\s+(?:(?:is|was|has|been|be|could|can)\s+){0,3}(?:not|never|cannot)\b|\s?[:=]\s?(?:false|no)\b", re.IGNORECASE
)
_PARTIAL_AFTER = re.compile(r"\W{1,4}partial", re.IGNORECASE)
# `{"success": false}`, "Success: yes"
_YES_OR_NO = re.compile(
    rf"""(?:{_LINE}|["'])success(?:ful)?["'*]{{0,3}}\s?[:=][*\s]{{0,4}}["']?(?P<value>true|yes|false|no)\b""",
    re.IGNORECASE | re.MULTILINE,
)
_ALONE = re.compile(rf"(?:\W|boxed|text){{0,16}}{_OUTCOME}\W{{0,6}}$", re.IGNORECASE)
_LIST_MARK = re.compile(r"\s*(?:[-*+•·](?!\*)|\d{1,2}[.)])\s")


def parse_status(text: str) -> Status | None:
    """The verdict that an outcome reply states, or `None`. "unsuccessful" and "not successful" are failures.

    Statuses given item by item (in a list) are no verdict when they disagree or when a status stands outside the list.
    """
    text = plain_text(text)
    lines = [found for found in _STATUS_LINE.finditer(text) if _is_status(text, found)]
    lines += [found for found in _STATUS_JSON.finditer(text) if _is_status(text, found)]
    inline = [found for found in _STATUS_INLINE.finditer(text, _last_line(text)) if _is_status(text, found)]
    inline = [found for found in inline if _stands_last(text, found)]
    if lines or inline:
        return _last_status(text, lines + inline)
    tail = text[-_PROSE_CHARS:]
    prose = [
        found for found in _STATUS_PROSE.finditer(tail) if _is_status(tail, found) and not _hedged_status(tail, found)
    ]
    if prose:
        return _status(tail, prose[-1])
    others = [found for found in _OTHER_LABEL.finditer(text) if _is_status(text, found)]
    if others:
        return _last_status(text, others)
    answers = [found["value"].lower() for found in _YES_OR_NO.finditer(text)]
    if answers:
        return "success" if answers[-1] in ("true", "yes") else "failure"
    last_line = text[_last_line(text) :][-_PROSE_CHARS:]
    closing = _ALONE.match(last_line) or _TASK_PROSE.search(last_line)
    return _status(last_line, closing) if closing and not _hedged_status(last_line, closing) else None


def _is_status(text: str, found: re.Match[str]) -> bool:
    after = text[found.end() : found.end() + 40]
    return not (_ALTERNATIVE.match(after) or _OTHER_NOUN.match(after))


def _status(text: str, found: re.Match[str]) -> Status | None:
    after = text[found.end() : found.end() + 40]
    failed = found.group("value").lower().startswith(("fail", "incomplete"))
    denied = found.group("denied") or _DENIED_AFTER.match(after)
    if (failed and denied) or (not failed and _PARTIAL_AFTER.match(after)):
        return None
    return "failure" if failed or denied else "success"


def _last_status(text: str, found: list[re.Match[str]]) -> Status | None:
    plain = [match for match in found if not _LIST_MARK.match(match.groupdict().get("head") or "")]
    if plain:
        return _status(text, max(plain, key=lambda match: match.start("value")))
    listed = {_status(text, match) for match in found}
    return listed.pop() if len(listed) == 1 else None


def _stands_last(text: str, found: re.Match[str]) -> bool:
    """Whether a status in the last line is the judge's own: opens a sentence there, not quoted, not a list item's."""
    start = found.pos
    if _LIST_MARK.match(text[start : start + 12]):
        return False
    return _BEFORE_STATUS.search(text[max(start, found.start() - 40) : found.start()]) is not None


def _hedged_status(text: str, found: re.Match[str]) -> bool:
    begin = max(0, found.start() - 80)
    clause = re.split(r"[.!?\n;]", text[begin : found.start("value")])[-1]
    return _HEDGE.search(clause.removesuffix(found.group("denied") or "")) is not None
