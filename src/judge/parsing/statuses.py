"""Reads the verdict from an outcome reply. Pure; linear in the reply's length.

As with scores, only words *labelled* as the status count, and labels that disagree count for nothing. An echoed
template ("success or failure"), a success rate or message, and quoted text are not statuses. There is no default.
"""

import re
from collections.abc import Iterable
from typing import Literal

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

Status = Literal["success", "failure"]

_DENIAL = r"(?:not|no|never|cannot|without|far from|\w{1,8}n['’]t)"
_BETWEEN = r"(?:a|an|as|yet|the|fully|entirely|completely|successfully|completed?|considered|deemed|been|be)"
# "completed" and "met" count only after "not": a completed run may still have failed.
_OUTCOME = (
    rf"(?P<denied>\b{_DENIAL}\b(?:[ \t]+{_BETWEEN}\b){{0,3}}[ \t]+|\bun|\bnon-?)?"
    r"(?P<value>(?:(?<=un)|(?<=non)|(?<=-)|\b)(?:success(?:ful(?:ly)?)?|succeed(?:ed|s)?|fail(?:ure|ed|s)?|incomplete"
    r"|(?<=not )(?:completed?|met|achieved)|pass(?:ed)?))(?!\w)"
)
# The words between "status" and its outcome: "the task was completed successfully".
_LINK = (
    r"(?:is|was|has|have|been|be|did|does|should|as|an?|the|therefore|thus|considered|deemed|marked|to|agent|task|attempt"
    r"|clear(?:ly)?|overall|total|definite(?:ly)?|i|conclude|yes|decision|completed?|boxed|text)"
)
_GAP = rf"(?:[^\w.!?]|\b{_LINK}\b){{0,40}}?"
_LINE_STATUS = re.compile(rf"(?P<head>{LINE})status\b{NOTE}{_GAP}{_OUTCOME}", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(rf"(?P<head>{LINE})status\b{NOTE}[*\s]{{0,4}}[:=]", re.IGNORECASE | re.MULTILINE)
_JSON_STATUS = re.compile(
    rf"""(?i)["'](?:\w{{1,20}}[ _-])?status\\?["']\s{{0,8}}:\s{{0,8}}\\?["']{_OUTCOME}(?=\\?["'])"""
)
# "The task is done. Status: success"
_INLINE_STATUS = re.compile(rf"(?i)\bstatus\b{NOTE}[*)\]\s]{{0,4}}[:=]{_GAP}{_OUTCOME}")
_BEFORE_INLINE = re.compile(
    rf"(?:^|[.!?;)\]*—–/\n,]|{FOREIGN})[ \t*#(]{{0,6}}(?:(?:so|thus|hence|therefore),?[ ])?"
    rf"(?:{QUALIFIER}[ *]{{1,3}}){{0,3}}$",
    re.IGNORECASE,
)
# "…, though the banner reads, Status: success"
_BEFORE_QUOTED = re.compile(rf"[,—–][ \t*#(]{{0,6}}(?:{QUALIFIER}[ *]{{1,3}}){{0,3}}$", re.IGNORECASE)
# "Therefore the status of the task is failure."
_PROSE_STATUS = re.compile(
    rf"(?i)\b(?:the|final|overall|task|therefore) status\b{SPAN}{{0,40}}?\b(?:is|as|be)\b"
    rf"[\s*\"'“”:]{{1,4}}(?:(?:an?|therefore|thus)\s+)?[\"'“*]{{0,3}}{_OUTCOME}"
)
# The reply's last words: "Therefore, the task was not completed successfully."
_TASK_PROSE = re.compile(rf"\b(?:the|this) (?:task|attempt)\b{_GAP}{_OUTCOME}(?=\W{{0,6}}$)", re.IGNORECASE)
# "Verdict: failure", "Final Answer: success"
_OTHER_LABEL = re.compile(
    rf"(?P<head>{LINE})(?:verdict|decision|outcome|result|conclusion|evaluation|judge?ment|answer){_GAP}{_OUTCOME}(?=\W{{0,6}}$)",
    re.IGNORECASE | re.MULTILINE,
)
# "success or failure", "success → failure", "success?": nothing is decided.
_ALTERNATIVE = re.compile(
    r"[\"'”’*`\s]{0,6}(?:\?|(?:[/|→]|[-=]{1,2}>|\bor\b)[\"'“‘*`\s]{0,6}(?:success|fail|not|un)"
    r"|(?:,|\band\b)[\"'“‘*`\s]{0,6}(?:success|fail))",
    re.IGNORECASE,
)
# "success message": the word describes something else.
_OTHER_NOUN = re.compile(
    r"\s+(?:rate|messages?|criteria|criterion|page|banner|notification|alert|toast|code|state|conditions?)\b",
    re.IGNORECASE,
)
# "success was not achieved", "success: false"
_DENIED_AFTER = re.compile(
    r"\s+(?:(?:is|was|has|been|be|could|can)\s+){0,3}(?:not|never|cannot)\b|\s?[:=]\s?(?:false|no)\b", re.IGNORECASE
)
# "success (partial)" is neither.
_PARTIAL_AFTER = re.compile(r"\W{1,4}partial", re.IGNORECASE)
# `{"success": false}`, "Success: yes"
_YES_OR_NO = re.compile(
    rf"""(?:{LINE}|["'])success(?:ful)?["'*]{{0,3}}\s?[:=][*\s]{{0,4}}["']?(?P<value>true|yes|false|no)\b""",
    re.IGNORECASE | re.MULTILINE,
)
# "**SUCCESS**" or "\boxed{failure}" as the last line
_ALONE = re.compile(rf"(?:\W|boxed|text){{0,16}}{_OUTCOME}(?=\W{{0,6}}$)", re.IGNORECASE)
# An item of a list usually states the status of one step or key point.
_LIST_MARK = re.compile(r"\s*(?:[-*+•·](?!\*)|\d{1,2}[.)])\s")


def parse_status(text: str) -> Status | None:
    """The verdict that an outcome reply states, or `None`. "unsuccessful" and "not successful" are failures.

    Statuses in list items do not count if they disagree or if there is a status outside the list.
    """
    text = plain_text(text)
    labelled = [*_matches(_LINE_STATUS, text), *_matches(_JSON_STATUS, text)]
    labelled += _inline(text, is_only=not labelled)
    if labelled:
        return _agreed_status(text, labelled)
    tail = text[-PROSE_CHARS:]
    prose = [match for match in _matches(_PROSE_STATUS, tail) if not _is_hedged(tail, match)]
    if prose:
        return _agreed_status(tail, prose)
    others = _matches(_OTHER_LABEL, text)
    if others:
        return _agreed_status(text, others)
    answers = [StatedValue(match.start("value"), match.end(), _answer(match)) for match in _YES_OR_NO.finditer(text)]
    if answers:
        return agreed(text, answers)
    last_line = text[last_line_start(text) :][-PROSE_CHARS:]
    closing = _ALONE.match(last_line) or _TASK_PROSE.search(last_line)
    stated = closing and _stated([closing], last_line) and not _is_hedged(last_line, closing)
    return _status(last_line, closing) if closing and stated else None


def _matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return _stated(pattern.finditer(text), text)


def _stated(matches: Iterable[re.Match[str]], text: str) -> list[re.Match[str]]:
    """The matches that state an outcome, as opposed to quoting, listing alternatives or naming a "success message"."""
    return [
        match
        for match in matches
        if not is_quoted(text, match)
        and not (_ALTERNATIVE.match(after := text[match.end() : match.end() + 40]) or _OTHER_NOUN.match(after))
    ]


def _inline(text: str, *, is_only: bool) -> list[re.Match[str]]:
    """The judge's statuses in the last line: each begins a sentence, is unquoted and in no list item.

    If there are others before it, one after a comma or a dash may be a quotation and does not count.
    """
    start = last_line_start(text)
    if _LIST_MARK.match(text[start : start + 12]):
        return []
    inline, stated = [], _stated(outside_quotations(_INLINE_STATUS, text, fenced=True), text)
    is_only = is_only and all(match.start() >= start for match in stated)
    for match in stated:
        if match.start() < start:
            continue
        before = text[max(start, match.start() - 40) : match.start()]
        if _BEFORE_INLINE.search(before) and (is_only or not _BEFORE_QUOTED.search(before)):
            inline.append(match)
    return inline


def _status(text: str, match: re.Match[str]) -> Status | None:
    after = text[match.end() : match.end() + 40]
    failed = match.group("value").lower().startswith(("fail", "incomplete"))
    denied = match.group("denied") or _DENIED_AFTER.match(after)
    if (failed and denied) or (not failed and _PARTIAL_AFTER.match(after)):
        return None
    return "failure" if failed or denied else "success"


def _agreed_status(text: str, matches: list[re.Match[str]]) -> Status | None:
    """The status that all of them state; `None` if the last one states none."""
    matches = sorted(matches, key=lambda match: match.start("value"))
    plain = [match for match in matches if not _LIST_MARK.match(match.groupdict().get("head") or "")]
    if plain:
        stated = [StatedValue(match.start("value"), match.end(), _status(text, match)) for match in plain]
        return agreed(text, [each for each in stated if each.value or each is stated[-1]])
    if any(not _LIST_MARK.match(label["head"]) for label in _LABEL.finditer(text)):
        # The status that counts says neither.
        return None
    statuses = {_status(text, match) for match in matches}
    return statuses.pop() if len(statuses) == 1 else None


def _answer(match: re.Match[str]) -> Status:
    return "success" if match["value"].lower() in ("true", "yes") else "failure"


def _is_hedged(text: str, match: re.Match[str]) -> bool:
    clause = last_clause(text, match.start(), match.start("value"))
    return HEDGE.search(clause.removesuffix(match.group("denied") or "")) is not None
