"""Reads lists and JSON objects from judge models' replies: key points, rubric criteria. Pure; linear time."""

import json
import re
from typing import Any

from judge.parsing.agreement import StatedValue, agreed
from judge.parsing.sections import without_sections
from shared.reasoning import without_reasoning

MAX_POINTS = 40
MAX_POINT_CHARS = 600
# Items are only searched for in this many characters of a line.
_MAX_LINE_CHARS = 2_000
_LABEL = r"(?:(?:key\s)?(?:point|requirement|criterion|condition|step|item)|kp)\s?#?"
# "1. a", "(2) b", "3、c", "① d", "#1 e", "Step 1: f", "- g", "a) h"
_ITEM = re.compile(
    r"^(?P<indent>[ \t>]{0,16})(?:[*_#]{0,6}\s?)"
    r"(?:(?P<number>[(（\[]?\d{1,2}(?:\\?[.)．）\]]{1,2}|[:、])|\d{1,2}[ \t][–—-]|#\d{1,2}|\d\ufe0f?\u20e3|[①-⑳]"
    rf"|{_LABEL}\d{{1,2}}\s?[:.)–—-])|(?P<bullet>[-*+•·▪◦–—]|\(?[a-z]\)|[a-z]\.(?=\s)))"
    r"(?P<text>[*_]{0,3}\s+\S.*|(?<=[.)、．）])[^\W\d_].*|[*_]{0,3}\s*)$",
    re.IGNORECASE,
)
# Text that models put around a list: fences, tags, end-of-turn tokens.
_WRAPPING = re.compile(
    r"^\s{0,16}(?:`{3,9}\w{0,20}|</?\w{1,20}>)\s{0,16}$|^\s{0,16}<answer>|</answer>\s{0,16}$"
    r"|<\|\w{1,20}\|>\s{0,16}$|</s>\s{0,16}$",
    re.MULTILINE,
)
# "- [x] Filter"
_CHECKBOX = re.compile(r"^\s?\[[ xX]?\]\s")
_JSON_LIST = re.compile(r"^\s{0,16}\[", re.MULTILINE)
_TITLE = re.compile(r"(?i)^\W{0,12}(?:the\s)?key\s(?:points?|requirements?)\b[^:\n]{0,60}:?\W{0,6}$")
# "Key points: Only this", with no list at all
_INLINE_TITLE = re.compile(r"(?i)^\W{0,12}(?:the\s)?key\spoints?\b[^:\n]{0,60}:[*_\s]{0,6}(?=\S)")
# "Key points: 1. a 2. b", all on one line
_INLINE_NUMBER = re.compile(rf"(?:(?<=\s)|^)(?:\(?\d{{1,2}}[.)]\s|[①-⑳]\s?|{_LABEL}\d{{1,2}}[:.)]\s)", re.IGNORECASE)
_INLINE_BULLET = re.compile(r"(?:^|\s)[•▪◦]\s")
# Where a heading may end when the first item follows it on the same line.
_HEADING_END = re.compile(
    r"(?:\bkey\s(?:points?|requirements?)\b[*_]{0,3}[:：]?|[:：])[*_]{0,3}\s{0,3}(?:[–—-]\s(?=[*_#(\[]{0,4}\d))?",
    re.IGNORECASE,
)


def parse_key_points(text: str) -> tuple[str, ...]:
    """The key points of a reply: list items in order, sub-items and continuation lines joined to their item.

    Reads numbered and bulleted lists, `Key point 1: …` lines and headings, JSON arrays of strings, and lists run
    together on one line. `()` if the reply contains no list.
    """
    text = without_reasoning(text)
    points = _json_points(text)
    if not points:
        lines = _one_item_per_line(_WRAPPING.sub("", text).splitlines())
        start = next((number + 1 for number, line in enumerate(lines) if _TITLE.match(line)), 0)
        points = _list_items(lines[start:]) or _list_items(lines)
        if len(points) <= 1:
            points = _inline_items(text, len(points)) or points
    return tuple(" ".join(point.split())[:MAX_POINT_CHARS] for point in points[:MAX_POINTS] if point.strip())


def last_json_object(text: str) -> dict[str, Any] | None:
    """The last non-empty JSON object in a reply, fenced or bare; `None` when there is none.

    Also `None` when an earlier one has the same keys and another content, and is not withdrawn.
    """
    return _last_object(without_sections(without_reasoning(text)))


def _last_object(text: str) -> dict[str, Any] | None:
    objects: list[StatedValue[dict[str, Any]]] = []
    at = text.find("{")
    # Normal replies have a handful of braces before the object; a hostile one may have a million.
    for _ in range(50):
        if at < 0:
            break
        value, end = _json_at(text, at)
        if isinstance(value, dict) and value:
            objects.append(StatedValue(at, end, value))
        at = text.find("{", end)
    # Objects of another shape are about something else.
    return agreed(text, [each for each in objects if each.value.keys() & objects[-1].value.keys()])


def _json_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends; `None` for anything else."""
    try:
        # Not strict: raw line breaks inside strings are common and harmless.
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1


def _json_points(text: str) -> list[str]:
    values: Any = None
    start = _JSON_LIST.search(text)
    if start and "{" not in text[: start.start()]:
        values, _ = _json_at(text, start.end() - 1)
    elif "{" in text[:2_000]:
        last_object = _last_object(text) or {}
        values = next((value for key, value in last_object.items() if "point" in key.lower()), None)
    if isinstance(values, dict):
        values = list(values.values())
    return [point for value in values if (point := _json_point(value))] if isinstance(values, list) else []


def _json_point(value: Any) -> str:
    """A point given as a string, or as an object whose longest string is the point ("id" and "type" are short)."""
    if isinstance(value, dict):
        value = max((item for item in value.values() if isinstance(item, str)), key=len, default="")
    return value.strip() if isinstance(value, str) else ""


def _item(line: str) -> re.Match[str] | None:
    return _ITEM.match(line[:_MAX_LINE_CHARS])


def _number(mark: str) -> int:
    """The number in an item's marker."""
    digits = re.search(r"\d{1,2}", mark)
    return int(digits[0]) if digits else ord(mark.strip()[0]) - ord("①") + 1


def _one_item_per_line(lines: list[str]) -> list[str]:
    """The lines, with every item that shares a line with its heading or another item moved to a separate line."""
    parted: list[str] = []
    following: re.Match[str] | None = None
    for line in reversed(lines):
        item = _item(line)
        at = 0 if item else _heading_end(line[:_MAX_LINE_CHARS], following)
        following = item or (_ITEM.match(line[at:_MAX_LINE_CHARS]) if at else None) or following
        parted += [line[at:], line[:at]] if at else [line]
    return _split_at_missing_numbers(parted[::-1])


def _heading_end(line: str, following: re.Match[str] | None) -> int:
    """Where the first item of a list begins after its heading; 0 if there is none.

    After words other than a title, the item must precede `following`, the next item in the lines below.
    """
    for end in _HEADING_END.finditer(line):
        item = _ITEM.match(line[end.end() :])
        if item is None or not item["text"].strip(" *_") or (item["number"] and _number(item["number"]) != 1):
            continue
        if _TITLE.match(line[: end.end()]):
            return end.end()
        is_like = following is not None and (item["bullet"] or "") == (following["bullet"] or "")
        if following is not None and is_like and (item["bullet"] or _number(following["number"]) == 2):
            return end.end()
    return 0


def _split_at_missing_numbers(lines: list[str]) -> list[str]:
    """Split lines between two items at the numbers missing from the sequence: `1. a 2. b`, then `3. c`."""
    result: list[str] = []
    begin = last = 0
    was_split = False
    for line in [*lines, None]:
        item = _item(line) if line is not None else None
        number = _number(item["number"]) if item and item["number"] else None
        # At the end of a list that needed splitting, the last line may contain any number of further items.
        missing = (
            range(last + 1, number) if number else range(last + 1, last + 100 if line is None and was_split else 0)
        )
        if missing:
            parts, split_count = _split(result[begin:], missing)
            if split_count == len(missing) or line is None:
                result[begin:] = parts
                was_split = True
        if number:
            begin, last = len(result), number
        if line is not None:
            result.append(line)
    return result


def _split(lines: list[str], numbers: range) -> tuple[list[str], int]:
    """The lines, split before each of `numbers` as long as they appear in order, and how many were found."""
    parts: list[str] = []
    split_count = 0
    for line in lines:
        begin = 0
        for mark in _INLINE_NUMBER.finditer(line[:_MAX_LINE_CHARS]):
            if split_count < len(numbers) and _number(mark[0]) == numbers[split_count]:
                parts.append(line[begin : mark.start()])
                begin, split_count = mark.start(), split_count + 1
        parts.append(line[begin:])
    return parts, split_count


def _list_items(lines: list[str]) -> list[str]:
    """Items with the indent and kind of the first one. If there are numbered items, bullets are sub-items."""
    matches = [_item(line) for line in lines]
    heads = [item for item in matches if item]
    if not heads:
        return []
    numbered = any(item["number"] for item in heads)
    top = min(len(item["indent"].expandtabs(4)) for item in heads if not numbered or item["number"])
    items: list[list[str]] = []
    after_blank = False
    for line, item in zip(lines, matches, strict=True):
        if item and (not numbered or item["number"]) and len(item["indent"].expandtabs(4)) <= top + 1:
            items.append([item["text"]])
        elif not line.strip():
            after_blank = True
            continue
        elif items and (item or line[:1].isspace() or not after_blank):
            items[-1].append(item["text"] if item else line)
        elif items:
            break  # A paragraph after the list is a remark, not a point.
        after_blank = False
    return [joined for parts in items if (joined := _clean(" ".join(parts)))]


def _inline_items(text: str, already: int) -> list[str]:
    """A list on one line: `1. first 2. second`. The numbers must run 1, 2, 3, …"""
    for line in text.splitlines():
        marks: list[re.Match[str]] = []
        for mark in _INLINE_NUMBER.finditer(line):
            if _number(mark[0]) == len(marks) + 1:
                marks.append(mark)
        if len(marks) > max(1, already):
            ends = [mark.start() for mark in marks[1:]] + [len(line)]
            return [_clean(line[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
        bullets = _INLINE_BULLET.split(line)
        if len(bullets) > 2:
            return [_clean(part) for part in bullets[1:]]
        title = _INLINE_TITLE.match(line)
        if title and not already and len(line) - title.end() > 3:
            return [_clean(line[title.end() :])]
    return []


def _clean(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", _CHECKBOX.sub("", text)).replace("**", "").replace("__", "")
    return text.strip(" \t*_").strip()
