"""Leaves out what a judge model's reply sets apart from itself, whatever its marks are called. Pure; linear time.

Models think in marks of their own: `<details type="reasoning">`, `[cot]`, a fence with a name, "Here is my thought
process:". A verdict in there is a draft if the reply goes on behind it, or ends inside. Marks of form (`<p>`, `<li>`)
and of the reply itself (`<answer>`) set nothing apart.
"""

import re
from collections import Counter
from collections.abc import Iterator

from shared.quotations import Span, all_fences, outside_quotations

# A tag of a verdict, which `plain_text` reads as a label.
LABEL = r"(?:final_?|overall_?)?(?:score|status|answer)"
_REPLY = (
    rf"{LABEL}|(?:final_?|overall_?)?(?:verdict|decision|conclusion|response|reply|output|result|rating|judge?ment)"
    "|box|solution"
)
# Elements of form: without attributes, they say nothing about what they enclose.
_FORM = (
    r"a|b|big|body|br|center|code|d[dlt]|del|div|em|font|h[1-6]|hr|html|i|li|main|ol|p|s|small|span|strike|strong|su[bp]"
    rf"|table|tbody|td|tfoot|th|thead|tr|u|ul|{_REPLY}"
)
_IS_FORM = re.compile(_FORM, re.IGNORECASE)
_NAME = r"[A-Za-z][\w:.-]{0,40}"
# `<cot>`, `</cot>`, `<think budget="low">`
_ELEMENT = rf"<(?P<end>/)?(?P<name>{_NAME})(?P<attributes>\s[^<>\n]{{0,200}})?(?P<empty>/)?>"
# One whose other half may be missing. An action line, `<Search textbox> -> CLICK`, is none.
HALF = rf"<(?!/?(?:{_FORM})>)/?{_NAME}(?:\s[^<>\n=]{{0,80}}=[^<>\n]{{0,200}})?>(?!\s{{0,3}}(?:->|→))"
_HALF = re.compile(HALF, re.IGNORECASE)
# `[cot]`, `◁cot▷`, `<|cot|>`, `<|end_of_cot|>`
_TAG = re.compile(
    rf"{_ELEMENT}|(?P<token><\||\[|◁)(?P<token_end>/|end_(?:of_)?)?(?:(?:begin|start)_(?:of_)?)?(?P<token_name>{_NAME})(?:\|>|\]|▷)",
    re.IGNORECASE,
)
_TAG_OR_WORD = re.compile(rf"{_TAG.pattern}|(?P<word>[^\W_]+)", re.IGNORECASE)
_JSON_FENCE = re.compile(r"[^\n]*+\n\s*+[\[{]")
# How much beside a tag tells whether it is only mentioned.
_BESIDE_CHARS = 80
_LABEL_NEXT = re.compile(r"[*_#]{0,8}(?:\w{1,12}[ _]){0,2}(?:score|status|verdict)\b", re.IGNORECASE)
# "Here is my thought process:"
_SAID = re.compile(r"\bhere(?:['’]s|\sis|\sare)\s(?:my|the|a)\s(?P<title>[\w /-]{1,40}):", re.IGNORECASE)
# "## Reasoning", "### Score: 3", "**Notes**", "My thoughts:"
_HEADING = re.compile(
    r"^[ \t]{0,8}(?:#{1,6}[*_ \t]{1,8}(?=[^:\n]{1,50}:)"
    r"|(?=[#*_]|[^\n]{1,60}:[ \t]{0,8}$)[#*_ \t]{0,8}(?=[^:\n]{1,50}[:*_# \t]{0,8}$))"
    r"(?P<title>[^\W\d_][\w '’/-]{0,48})",
    re.IGNORECASE | re.MULTILINE,
)
_OF_REPLY = re.compile(
    r"\b(?:final|response|reply|answer|verdict|conclusion|decision|output|result|status|score|rating|assessment"
    r"|evaluation|judge?ment)\b",
    re.IGNORECASE,
)


def without_sections(text: str) -> str:
    """The reply without the elements, fences and titled parts that it goes on behind, or that it ends in."""
    parts, end = [], 0
    for start, stop in sorted([*_elements(text), *_fences(text), *_titled(text, _SAID), *_titled(text, _HEADING)]):
        if stop > end:
            parts += [text[end : max(start, end)], "\n"]
            end = stop
    return "".join((*parts, text[end:]))


def _last_word(text: str) -> int:
    """Where the last word ends that is not part of a tag: behind it, the reply does not go on."""
    end = 0
    for word in _TAG_OR_WORD.finditer(text):
        end = word.end("word") if word["word"] else end
    return end


def _fences(text: str) -> Iterator[Span]:
    last = _last_word(text)
    for fence in all_fences(text):
        # JSON is the form of an answer, wherever it stands.
        is_json = fence.info.lower() in ("", "json", "json5", "jsonc") and _JSON_FENCE.match(text, fence.start)
        if not is_json and (not fence.is_closed or fence.end < last):
            yield fence.start, fence.end


def _titled(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    """From a title such as "Reasoning" to the next one such as "Response"."""
    opened: int | None = None
    for title in outside_quotations(pattern, text):
        if not _OF_REPLY.search(title["title"]):
            opened = title.start() if opened is None else opened
        elif opened is not None:
            yield opened, title.start()
            opened = None


def _elements(text: str) -> Iterator[Span]:
    last = _last_word(text)
    opened: list[tuple[str, re.Match[str]]] = []
    open_names: Counter[str] = Counter()
    for tag in outside_quotations(_TAG, text):
        name = (tag["name"] or tag["token_name"]).lower()
        if tag["empty"] or not (tag["attributes"] or open_names[name] or not _IS_FORM.fullmatch(name)):
            continue
        if not (tag["end"] or tag["token_end"]):
            opened.append((name, tag))
            open_names[name] += 1
        elif open_names[name]:
            while True:
                inner_name, inner = opened.pop()
                open_names[inner_name] -= 1
                if inner_name == name:
                    break
                if _sets_apart(text, inner):
                    yield inner.start(), tag.start()
            if tag.end() < last:
                yield inner.start(), tag.end()
        elif _sets_apart(text, tag) and tag.end() < last:
            # The opening tag is missing if the prompt ended with it.
            yield 0, tag.end()
    yield from ((tag.start(), len(text)) for _, tag in opened if _sets_apart(text, tag))


def _sets_apart(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag without its other half is more than a mention: "the <button> was not there"."""
    if _HALF.match(text, tag.start()) is None:
        return False
    before = text[max(0, tag.start() - _BESIDE_CHARS) : tag.start()].rpartition("\n")[2].strip(" \t*_#>-")
    after = text[tag.end() : tag.end() + _BESIDE_CHARS].partition("\n")[0].strip()
    return not (before and after) or _LABEL_NEXT.match(after) is not None
