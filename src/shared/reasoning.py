"""Splits what a model writes into its reasoning and its reply. The only place that knows how reasoning is marked.

Servers separate a model's reasoning from its reply, or leave it in the text with marks: `<think>…</think>`,
`[THINK]…[/THINK]`, `<|begin_of_thought|>…`, or harmony's channels, also with their marks stripped
(`analysis…assistantfinal…`). The opening mark is missing if the prompt ended with it.

The reply is what follows the last section. So there is none if a section is never closed, and text before a section is
part of the reasoning. A section is closed by a mark of its own family; other closing marks inside it are text. A mark
in a quotation is text as well: a page or a participant may contain it, and a judge model may quote that.
Pure; linear time.
"""

import re

from shared.quotations import outside_quotations

_NAME = r"think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis|monologue"
_LESS, _GREATER = "(?:<|&lt;)", "(?:>|&gt;)"
# `<think>`, `</seed:think>`, `<thought_process>`, `[THINK]`, `◁/think▷`,
# `<|END_THINKING|>`. In square brackets, words in lower case are headings, except `[think]`.
_SECTION = (
    rf"(?:{_LESS}\|?|◁|\[(?=/?(?:think|(?-i:[A-Z]{{5,9}}\]))))\s{{0,3}}(?P<end>/|end_(?:of_)?)?\s{{0,3}}"
    rf"(?:[a-z]\w{{0,15}}[:_-])?(?P<name>{_NAME})(?:[_-](?:process|content|block))?"
    rf"\s{{0,3}}(?P<empty>/)?(?:\|?{_GREATER}|▷|\])"
    rf"|{_LESS}\|inner_(?P<inner>prefix|suffix)\|{_GREATER}"
    # The mark of the reply closes the section before it.
    rf"|{_LESS}\|(?:begin|start)_(?:of_)?(?P<reply>solution|response)\|{_GREATER}"
)
# `<|channel|>analysis<|message|>`, `<|channel>thought`, `<channel|>`, `<|start|>assistant<|message|>`, and
# `assistantfinal`, which is left of `<|start|>assistant<|channel|>final<|message|>` by a server that drops marks.
_CHANNEL = (
    rf"{_LESS}\|channel\|?{_GREATER}\s{{0,3}}(?P<channel>\w{{1,20}})"
    rf"(?:[^<\n]{{0,80}}(?:{_LESS}\|constrain\|{_GREATER}[^<\n]{{0,20}})?{_LESS}\|message\|{_GREATER})?"
    rf"|(?P<channel_end>{_LESS}channel\|{_GREATER}|{_LESS}\|start\|{_GREATER}assistant{_LESS}\|message\|{_GREATER})"
    r"|(?-i:assistant(?P<stripped>analysis|commentary|final))"
)
# The first of these has no `assistant` before it.
_FIRST_CHANNEL = (
    r"(?-i:\A\s*(?:(?P<first>analysis|commentary)(?=[A-Z\d\"'“‘*_#<\[{(]|[a-z]{2})|(?P<final>final)(?=[A-Z\d*#<\[{])))"
)
_MARK = re.compile(f"{_SECTION}|{_CHANNEL}|{_FIRST_CHANNEL}", re.IGNORECASE)
# The first character of a mark. Control tokens of chat templates as well: a server could read one as such.
_ESCAPED = re.compile(rf"(?={_SECTION}|{_CHANNEL}|{_LESS}\|).", re.IGNORECASE)
# A mark in square brackets whose first character is escaped, up to the last one.
_ESCAPED_BRACKET = re.compile(r"(\\u005b[^\[\]<>]{1,60})\]")
_CLOSED_BY_REPLY = {"solution": "thoug", "response": "think"}


def end_of_reasoning(text: str) -> tuple[int, str | None]:
    """Where the reply begins (0 if there is no reasoning), and the mark of a section never closed."""
    sections: list[str] = []
    mark: str | None = None
    end = 0
    for match in outside_quotations(_MARK, text):
        family, is_opening = _read(match)
        if is_opening:
            # A section within one of the same family is not known: its model writes about the mark.
            if family not in sections:
                mark = mark if sections else match[0]
                sections.append(family)
        elif family in sections:
            del sections[sections.index(family) :]
        end = match.end()
    return (len(text), mark) if sections else (end, None)


def without_reasoning(text: str) -> str:
    """The reply; empty if the text ends inside of its reasoning."""
    return text[end_of_reasoning(text)[0] :]


def escape_marks(text: str) -> str:
    r"""The text with the first character of every mark as `\u003c` or the like, for texts shown to a model.

    Of a mark in square brackets also the last one: what follows a bracket could be read as a new statement.
    """
    escaped = _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _ESCAPED_BRACKET.sub(r"\1\\u005d", escaped)


def find_mark(text: str) -> re.Match[str] | None:
    """The first mark of reasoning, also in a quotation."""
    return _MARK.search(text)


def _read(match: re.Match[str]) -> tuple[str, bool]:
    """The family of a mark, and whether it opens a section."""
    if match["name"]:
        # `thinking` and `think` are one family.
        return match["name"][:5].lower(), not (match["end"] or match["empty"])
    if match["inner"]:
        return "inner", match["inner"].lower() == "prefix"
    if match["reply"]:
        return _CLOSED_BY_REPLY[match["reply"].lower()], False
    channel = match["channel"] or match["stripped"] or match["first"]
    return "channel", channel is not None and channel.lower() != "final"
