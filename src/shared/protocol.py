"""The text protocol between judge and participant: observations to messages, replies to actions, and back. Pure.

A judge's message in order (the first four lines where they apply)::

    Task: …             once, in the first message of an attempt
    Website: …
    Executed: 2 of 4    if the last reply had several actions
    Feedback: …         if the last reply failed; or `Result: …`, its output apart from the page
    Notice: …           if the page cannot be shown, or not as usual
    Tools:
    - browser_click: …
    Reply format: …
    Page: <url>
    Title: …
    Dialog: …           if one is open
    Vanished: ["…"]     texts that appeared and vanished again, such as a notification
    Tabs:               if more than one is open
    - 0 (current): <url> | <title>
    Site tools:         that the page itself registers, if they are offered; in the form of `Tools:`
    - add_to_cart: …
    Snapshot:
    …to the end of the message

Every value before the snapshot is one line, escaped by `shared.text.escape_line`, and text from pages is cut to the
limits below, so no page can imitate another line of the message. The screenshot is a separate part of the message.

A reply is what follows the participant's reasoning (`shared.reasoning`); a mark inside a JSON object is part of the
action. It is read leniently in form and strictly in meaning. Candidates, in this order: `<json>` blocks,
`THOUGHT:`/`ACTION:`/`PARAMS:` lines, JSON objects in a code fence, and the only JSON object that begins a line (also
behind a backtick, `JSON:` or a tag such as `<answer>`). Of several blocks the last one counts: earlier ones are
drafts. If the last block is unreadable the reply is refused; an earlier block is never executed instead.
Accepted: code fences, a missing closing tag, tags in any case, surrounding text, trailing commas, raw line breaks in
strings. Refused, because a guess could change the meaning: repeated keys, NaN and infinities, integers beyond 2^53,
NUL characters, parameters under another name or beside `params`, an end of the attempt with an answer elsewhere, two
objects in one block, more than `MAX_BLOCKS` blocks or `MAX_VALUES`
values. Each block is decoded at most twice, so the time is linear in the text.
"""

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from shared.claims import ClaimedTrace, ClaimedUsage
from shared.errors import ObservationError
from shared.models import Action, ObservationMessage, Page, ParsedReply, Tab, ToolSpec
from shared.quotations import JSON_RUN, JSON_STRING, outside_quotations
from shared.reasoning import end_of_reasoning
from shared.replies import ENDING_TOOLS, FINISH
from shared.strict_json import STRICT
from shared.text import clip, escape_line, excerpt, unescape_line, without_surrogates

# Prefix of feedback on an action that succeeded, such as the matches of `browser_find`.
RESULT = "Result: "

MAX_URL_CHARS = 2_048
MAX_TITLE_CHARS = 300
MAX_DIALOG_CHARS = 1_000
MAX_FEEDBACK_CHARS = 2_000
MAX_NOTICE_CHARS = 500
MAX_TABS = 20
MAX_REPLY_CHARS = 200_000
MAX_THOUGHT_CHARS = 4_000
MAX_DEPTH = 16
MAX_BLOCKS = 10
MAX_VALUES = 20_000

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
# No page has a reference `<ref>`, so echoing the example has no effect.
REPLY_EXAMPLE = '<json>{"thought": "…", "tool": "browser_click", "params": {"target": "<ref>"}}</json>'
_FORMS = "one tool call, {}, or three lines THOUGHT: …, ACTION: <tool>, PARAMS: <JSON object>. "
_ENDING = f"{FINISH} ends the task with your answer."
_REF_PLACEHOLDERS = "<ref> stands for an element's ref, which the snapshot gives as [ref=…]. "
# Where no tool takes references (`actions = "coordinates"`).
POINT_EXAMPLE = '<json>{"thought": "…", "tool": "browser_mouse_click_xy", "params": {"x": "<x>", "y": "<y>"}}</json>'
_POINT_PLACEHOLDERS = "<x> and <y> stand for a point of the screenshot, in pixels. "
# Where a reply may have several actions.
_SEVERAL = (
    "1 to {} tool calls: one as {}, several as {}, or as lines: THOUGHT: …, then ACTION: <tool> and PARAMS: <JSON"
    " object> for each. They are executed in order, until one fails, the page is replaced, or the element of the next"
    f" one is no longer the same. {FINISH} can only be the last one. "
)
_THOUGHT = '"thought": "…", '

# --- Observations ---

_TAB = re.compile(r"- (\d{1,9})( \(current\))?: ([^|\n]*) \| (.*)\n")
_TOOL = re.compile(r"- ([^\s:]+): (.*)\n((?:  .*\n)*)")
_MESSAGE = re.compile(
    r"(?:Task: (?P<task>.*)\n)?(?:Website: (?P<website>.*)\n)?(?:Executed: (?P<executed>\d{1,4} of \d{1,4})\n)?"
    r"(?:Feedback: (?P<feedback>.*)\n)?"
    rf"(?:Notice: (?P<notice>.*)\n)?Tools:\n(?P<tools>(?:{_TOOL.pattern})*)"
    r"Reply format: (?:1 to (?P<most>\d{1,4}) )?.*\nPage: (?P<url>.*)\nTitle: (?P<title>.*)\n"
    r"(?:Dialog: (?P<dialog>.*)\n)?(?:Vanished: (?P<vanished>.*)\n)?"
    rf"(?:Tabs:\n(?P<tabs>(?:{_TAB.pattern})*))?"
    rf"(?:Site tools(?: \((?P<left_out>\d{{1,9}}) more are not listed\))?:\n(?P<page_tools>(?:{_TOOL.pattern})*))?"
    r"Snapshot:\n(?P<snapshot>(?s:.*))"
)


@runtime_checkable
class ReportsItsWork(Protocol):
    """A participant whose replies may say what its model used and what it did."""

    def claimed(self, context_id: str) -> ClaimedUsage | None:
        """What its replies in a conversation have reported; `None` if none has."""
        ...

    def trace(self, context_id: str) -> ClaimedTrace | None:
        """What its last reply in a conversation says that it did."""
        ...


@runtime_checkable
class HearsTheEnd(Protocol):
    """A participant that can be told that an attempt has ended."""

    async def end(self, context_id: str) -> None:
        """Announce the end of a conversation. Never raises."""
        ...


class Participant(Protocol):
    """The judge's connection to the participant; raises `ParticipantError` if no reply comes."""

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str: ...


def render_observation(observation: ObservationMessage, *, with_tools: bool = True) -> str:
    """The text part of a judge's message, laid out as in this module's docstring.

    Without the tools, for readers that have seen them, it is shorter by about 3,000 characters and cannot be parsed.

    URLs are cut at `MAX_URL_CHARS`, titles at `MAX_TITLE_CHARS`, a dialog at `MAX_DIALOG_CHARS`, feedback at
    `MAX_FEEDBACK_CHARS`, a notice at `MAX_NOTICE_CHARS`; of more than `MAX_TABS` tabs the current one and the last
    ones are listed. The snapshot is included whole: cut it before (`shared.snapshot.cut_snapshot`).
    """
    page = observation.page
    lines = [
        _render_value("Task", observation.instruction),
        _render_value("Website", observation.website),
        _render_value("Executed", "{} of {}".format(*observation.executed) if observation.executed else None),
        _render_value("Feedback", observation.feedback, MAX_FEEDBACK_CHARS),
        _render_value("Notice", observation.notice, MAX_NOTICE_CHARS),
        *(_rendered_tools(observation) if with_tools else ()),
        _render_value("Page", page.url, MAX_URL_CHARS),
        _render_value("Title", page.title, MAX_TITLE_CHARS),
        _render_value("Dialog", page.dialog, MAX_DIALOG_CHARS),
        _render_value("Vanished", json.dumps(page.vanished, ensure_ascii=False) if page.vanished else None),
        *_render_tabs(page.tabs),
        *_render_page_tools(page),
        "Snapshot:",
        without_surrogates(page.snapshot),
    ]
    return "\n".join(line for line in lines if line is not None)


def _rendered_tools(observation: ObservationMessage) -> tuple[str | None, ...]:
    tools = observation.tools
    format_line = f"Reply format: {reply_format(tools, observation.max_actions)}"
    return "Tools:", render_tools(tools) or None, format_line


def reply_format(tools: Sequence[ToolSpec], max_actions: int = 1) -> str:
    """The line on the reply format, with an example of the first tool that clicks."""
    clicking = next((tool.name for tool in tools if tool.name in ("browser_click", "browser_mouse_click_xy")), None)
    example, placeholders = (REPLY_EXAMPLE, _REF_PLACEHOLDERS)
    if clicking == "browser_mouse_click_xy":
        example, placeholders = (POINT_EXAMPLE, _POINT_PLACEHOLDERS)
    forms = _FORMS.format(example)
    if max_actions > 1:
        forms = _SEVERAL.format(max_actions, example, list_example(example))
    return forms + placeholders + _ENDING


def list_example(example: str) -> str:
    """The example of one call as one of several."""
    call = example.removeprefix("<json>").removesuffix("</json>")
    return f"<json>[{call}, {call.replace(_THOUGHT, '')}]</json>"


def is_result(feedback: str) -> bool:
    """Whether feedback reports an action's output rather than a failure."""
    return feedback.startswith(RESULT)


def parse_observation(text: str, screenshot: bytes | None = None, media_type: str = "image/jpeg") -> ObservationMessage:
    """The inverse of `render_observation`, for participants written in Python.

    Cut values stay cut, and a single tab comes back as no tabs because it is not listed. Raises `ObservationError` for
    text that is not a judge's message.
    """
    match = _MESSAGE.fullmatch(text)
    if match is None:
        raise _not_an_observation("its lines are not those of a judge's message")
    try:
        tools = _parse_tools(match["tools"])
        page_tools = _parse_tools(match["page_tools"] or "")
    except (ValueError, RecursionError) as error:
        raise _not_an_observation(str(error)) from None
    tabs = tuple(
        Tab(index=int(index), title=unescape_line(title), url=unescape_line(url), current=bool(current))
        for index, current, url, title in _TAB.findall(match["tabs"] or "")
    )
    done, _, total = (match["executed"] or "").partition(" of ")
    names = ("task", "website", "feedback", "notice", "url", "title", "dialog", "vanished")
    values = {name: match[name] and unescape_line(match[name]) for name in names}
    page = Page(
        url=values["url"],
        title=values["title"],
        snapshot=match["snapshot"],
        screenshot=screenshot,
        media_type=media_type,
        tabs=tabs,
        dialog=values["dialog"],
        vanished=_parse_vanished(values["vanished"]),
        page_tools=page_tools,
        page_tools_left_out=int(match["left_out"] or 0),
    )
    return ObservationMessage(
        page=page,
        tools=tools,
        instruction=values["task"],
        website=values["website"],
        feedback=values["feedback"],
        notice=values["notice"],
        executed=(int(done), int(total)) if total else None,
        max_actions=int(match["most"] or 1),
    )


def _render_value(name: str, value: str | None, max_chars: int = sys.maxsize) -> str | None:
    return None if value is None else f"{name}: {escape_line(clip(value, max_chars))}"


def _parse_vanished(text: str | None) -> tuple[str, ...]:
    try:
        texts = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise _not_an_observation("its line of vanished texts is not a list") from None
    return tuple(map(str, texts)) if isinstance(texts, list) else ()


def _render_tabs(tabs: tuple[Tab, ...]) -> Iterator[str]:
    if len(tabs) < 2:
        return
    yield "Tabs:"
    # Limited, because a page may open any number of tabs.
    last = tabs[-(MAX_TABS - 1) :] if len(tabs) > MAX_TABS else tabs
    hidden = [tab for tab in tabs if tab.current and tab not in last]
    for tab in (*hidden[:1], *last):
        # The bar separates address and title, so it must not occur in the address.
        url = escape_line(clip(tab.url, MAX_URL_CHARS)).replace("|", "\\u007c")
        title = escape_line(clip(tab.title, MAX_TITLE_CHARS))
        yield f"- {tab.index}{' (current)' if tab.current else ''}: {url} | {title}"


def _render_page_tools(page: Page) -> Iterator[str]:
    if not page.page_tools:
        return
    more = f" ({page.page_tools_left_out} more are not listed)" if page.page_tools_left_out else ""
    yield f"Site tools{more}:"
    yield render_tools(page.page_tools)


def _not_an_observation(why: str) -> ObservationError:
    return ObservationError(
        f"the message is not an observation of a WABE judge: {why}",
        remedy="check that the sender is a judge of the same version",
    )


# --- Tools ---
#
# One line per tool, one per parameter; nested parameters are one level deeper:
#
#     - browser_type: Type text into an element
#       - target (string, required): Reference of the element in the snapshot
#       - submit (boolean): Press Enter afterwards
#
# Every step pays for these lines in tokens, and they are a quarter of the size of the JSON schemas. A schema that this
# form cannot express exactly is written as JSON, so that parsing always returns the same tools.

_PARAMETER = re.compile(r"( +)- ([A-Za-z_][A-Za-z0-9_]*) \((array of )?(string|number|integer|boolean|object)")
_ATTRIBUTE = re.compile(r", (required|one of|default|min|max)( ?)")
_KEYWORDS = {"one of": "enum", "default": "default", "min": "minimum", "max": "maximum"}
_SCHEMA = "  schema: "
_MAX_SCHEMA_DEPTH = 6


def render_tools(tools: Sequence[ToolSpec]) -> str:
    """The tools as lines of text, without a line break at the end."""
    return "\n".join(line for tool in tools for line in _render_tool(tool))


def _parse_tools(block: str) -> tuple[ToolSpec, ...]:
    """The inverse of `render_tools`. Raises `ValueError` for parameters that it does not understand."""
    return tuple(
        ToolSpec(name=name, description=unescape_line(text), parameters=_parse_parameters(lines.split("\n")[:-1]))
        for name, text, lines in _TOOL.findall(block)
    )


def _render_tool(tool: ToolSpec) -> Iterator[str]:
    if re.search(r"[\s:]", tool.name) or not tool.name or escape_line(tool.name) != tool.name:
        raise ValueError(f"a tool cannot be named {tool.name!r}")
    yield f"- {tool.name}: {escape_line(tool.description)}"
    try:
        lines = list(_render_object(tool.parameters, 1))
        is_exact = _parse_parameters(lines) == tool.parameters
    except (ValueError, TypeError, KeyError, AttributeError):
        is_exact = False
    if is_exact:
        yield from lines
    else:
        yield _SCHEMA + json.dumps(tool.parameters, ensure_ascii=True, separators=(",", ":"))


def _render_object(schema: dict[str, Any], depth: int) -> Iterator[str]:
    if depth > _MAX_SCHEMA_DEPTH:
        raise ValueError("nested too deeply for lines")
    required = schema.get("required", ())
    for name, prop in schema["properties"].items():
        inner = prop["items"] if prop["type"] == "array" else prop
        line = f"{'  ' * depth}- {name} ({'array of ' if inner is not prop else ''}{inner['type']}"
        line += ", required" if name in required else ""
        for word, keyword in _KEYWORDS.items():
            if keyword in inner:
                line += f", {word} {json.dumps(inner[keyword])}"
        yield line + (f"): {escape_line(prop['description'])}" if "description" in prop else ")")
        if inner["type"] == "object":
            yield from _render_object(inner, depth + 1)


def _parse_parameters(lines: Sequence[str]) -> dict[str, Any]:
    if len(lines) == 1 and lines[0].startswith(_SCHEMA):
        schema = json.loads(lines[0][len(_SCHEMA) :])
        if not isinstance(schema, dict):
            raise ValueError("a schema is not an object")
        return schema
    root: dict[str, Any] = _empty_object()
    stack = [root]
    for line in lines:
        head = _PARAMETER.match(line)
        depth = len(head[1]) // 2 if head else 0
        if head is None or len(head[1]) % 2 or not 0 < depth <= min(len(stack), _MAX_SCHEMA_DEPTH):
            raise ValueError("a line of a tool's parameters is not understood")
        inner: dict[str, Any] = {"type": head[4]} if head[4] != "object" else _empty_object()
        prop: dict[str, Any] = {"type": "array", "items": inner} if head[3] else inner
        is_required = _parse_attributes(line, head.end(), inner, prop)
        del stack[depth:]
        stack[-1]["properties"][head[2]] = prop
        if is_required:
            stack[-1].setdefault("required", []).append(head[2])
        if head[4] == "object":
            stack.append(inner)
    return root


def _parse_attributes(line: str, position: int, inner: dict[str, Any], prop: dict[str, Any]) -> bool:
    """Read the attributes and the description after a parameter's type; returns whether it is required."""
    is_required = False
    while (attribute := _ATTRIBUTE.match(line, position)) is not None:
        position = attribute.end()
        if attribute[1] == "required":
            is_required = True
        else:
            inner[_KEYWORDS[attribute[1]]], position = json.JSONDecoder().raw_decode(line, position)
    tail = line[position:]
    if tail.startswith("): "):
        prop["description"] = unescape_line(tail[3:])
    elif tail != ")":
        raise ValueError("a parameter's attributes are not understood")
    return is_required


def _empty_object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


# --- Replies ---

# Only bounded or possessive quantifiers: replies are hostile text and must not make these patterns backtrack.
_TAG = re.compile(r"<\s{0,9}json\s{0,9}>", re.IGNORECASE)
_CLOSING = re.compile(r"<\s{0,9}/\s{0,9}json\s{0,9}>", re.IGNORECASE)
_FENCE = re.compile(r"`{3,9}+[A-Za-z0-9]{0,20}+(?=[\s{])")
_LINE_WITH_BRACE = re.compile(
    r"^[ \t]*+(?:(?:`|<(?:answer|action|response|output|tool_call|\|\w{1,30}\|)>|json:)[ \t]*+)?\{",
    re.IGNORECASE | re.MULTILINE,
)
# Also a list of objects.
_LINE_WITH_BRACES = re.compile(
    _LINE_WITH_BRACE.pattern.removesuffix(r"\{") + r"(?:\{|\[(?=\s*+\{))", _LINE_WITH_BRACE.flags
)
# What may stand between a mark and its JSON: white space and the beginning of a code fence.
_LEAD_IN = re.compile(r"\s*+(?:`{1,9}(?:json5?|JSON)?\s*+)?")
# What is left of a label's line, or the next line that is not empty.
_FIRST_LINE = re.compile(r"\s*+[^\n]*+")
_LABEL = re.compile(r"^[ \t>*_#-]{0,9}(THOUGHTS?|ACTION|PARAMS)[ \t*_]{0,9}:[ \t*_]{0,9}", re.IGNORECASE | re.MULTILINE)
# Matches strings as well, so that a comma inside one is left alone.
_TRAILING_COMMA = re.compile(rf"({JSON_STRING.pattern})|,(?=\s*+[}}\]])", re.DOTALL)
# A decoder reports a trailing comma at the comma (Python 3.13) or at the bracket after it.
_ENDS_AFTER_COMMA = re.compile(r",?\s*+[}\]]")
_ANSWER_EXAMPLE = f'{{"tool": "{FINISH}", "params": {{"answer": "…"}}}}'
_TOO_MANY_BLOCKS = f"holds more than {MAX_BLOCKS} JSON blocks"
# Refused by name: otherwise such a reply would call its tool without parameters, or end the attempt without its answer.
_OTHER_PARAMS = r"(?:(?:action|tool|function|call)[ _-]?)?(?:param(?:eter)?s?|arg(?:ument)?s?|kwargs|inputs?)"
_OTHER_NAMES = re.compile(_OTHER_PARAMS, re.IGNORECASE)
_OTHER_ANSWERS = re.compile(
    r"(?:(?:final|task)[ _-]?)?(?:answer|result|response|output|value|message|content|text|data)", re.IGNORECASE
)
_OTHER_PARAMS_LABEL = re.compile(
    rf"^[ \t>*_#-]{{0,9}}(?P<name>{_OTHER_PARAMS})[ \t*_]{{0,9}}:(?P<value>.*)", re.IGNORECASE | re.MULTILINE
)
_ANSWER_LABEL = re.compile(
    r"^[ \t>*_#-]{0,9}(?P<name>(?:final[ _-]?)?answer)[ \t*_]{0,9}:[ \t*_]{0,9}\S", re.IGNORECASE | re.MULTILINE
)
_NO_PARAMS = frozenset({"", "{}", "none", "null", "n/a"})
# Older and other names of parameters.
OLDER_NAMES: Mapping[str, str] = MappingProxyType(
    {"ref": "target", "startRef": "startTarget", "endRef": "endTarget", "files": "paths"}
)


class _ReplyProblem(ValueError):
    """The problem with a reply, as the predicate of a sentence that begins with `Your reply`."""


def parse_reply(text: str, tools: Sequence[ToolSpec] = (), *, max_actions: int = 1) -> ParsedReply:
    """The actions of a participant's message, or one precise complaint in a sentence. Never raises.

    Text longer than `MAX_REPLY_CHARS` is refused; a thought is cut at `MAX_THOUGHT_CHARS`. With `tools`, a parameter
    of the tool beside "params" is refused. With `max_actions` above 1, the message may be a list of so many actions.
    """
    try:
        first, *rest = _read_actions(text, tools, max_actions)
    except ValueError as problem:
        return ParsedReply(complaint=complaint(str(problem), max_actions))
    return ParsedReply(action=first, rest=tuple(rest))


def complaint(problem: str, max_actions: int = 1) -> str:
    """What the participant is sent about its reply; `problem` is the predicate of `Your reply`."""
    number_expected = "exactly one action" if max_actions == 1 else f"1 to {max_actions} actions"
    return f"Your reply {problem}; send {number_expected}, such as {REPLY_EXAMPLE}"


def render_reply(reply: Action | Sequence[Action]) -> str:
    """The message for an action or a list of them, in one line; the inverse of `parse_reply`.

    Raises `ValueError` for parameters that JSON cannot represent (NaN) and `TypeError` for objects of other types.
    """
    actions = (reply,) if isinstance(reply, Action) else reply
    calls = [{"thought": each.thought, "tool": each.tool, "params": each.params} for each in actions]
    body = calls[0] if isinstance(reply, Action) else calls
    # Angle brackets occur inside strings only; escaped, a tag in typed text cannot be mistaken for the closing tag.
    return "<json>" + json.dumps(body, allow_nan=False).replace("<", "\\u003c") + "</json>"


def _read_actions(text: str, tools: Sequence[ToolSpec], max_actions: int) -> list[Action]:
    if len(text) > MAX_REPLY_CHARS:
        raise _ReplyProblem(f"has {len(text)} characters, and at most {MAX_REPLY_CHARS} are read")
    if not text.strip():
        raise _ReplyProblem("is empty")
    begin, unclosed = end_of_reasoning(text)
    if unclosed is not None:
        raise _ReplyProblem(f"ends inside its reasoning, which {excerpt(unclosed, 40)} opens")
    if not text[begin:].strip():
        raise _ReplyProblem("holds nothing after its reasoning")
    # A separate line, at the same position as before.
    padded = " " * (begin - 1) + "\n" + text[begin:] if begin else text
    body = _find_body(padded, max_actions)
    if isinstance(body, list) and max_actions > 1:
        actions = _parse_list(body, max_actions, tools)
        body = body[-1]
    else:
        actions = [_parse_action(body, tools)]
    last = actions[-1]
    if last.tool in ENDING_TOOLS and not last.params.get("answer"):
        _refuse_lost_answer(last.tool, body, padded)
    return actions


def _parse_list(bodies: list[Any], max_actions: int, tools: Sequence[ToolSpec]) -> list[Action]:
    """The actions of a list; the first one has the thoughts of all, because a reply has one."""
    if not bodies:
        raise _ReplyProblem("is an empty list")
    if len(bodies) > max_actions:
        raise _ReplyProblem(f"is a list of {len(bodies)} actions, more than {max_actions}")
    actions: list[Action] = []
    for number, body in enumerate(bodies, 1):
        if isinstance(body, list):
            raise _ReplyProblem("has a list inside its list of actions")
        try:
            actions.append(_parse_action(body, tools))
        except ValueError as problem:
            raise _ReplyProblem(f"{problem} (action {number} of {len(bodies)})") from None
    if early := next((each.tool for each in actions[:-1] if each.tool in ENDING_TOOLS), None):
        raise _ReplyProblem(f"has actions after {early}, which ends the task")
    thought = "\n".join(each.thought for each in actions if each.thought)
    first, *rest = (each.model_copy(update={"thought": ""}) for each in actions)
    return [first.model_copy(update={"thought": clip(thought, MAX_THOUGHT_CHARS)}), *rest]


def _find_body(text: str, max_actions: int) -> Any:
    if (start := _next_block(text, _TAG, 0)) is not None:
        return _last_object(text, _TAG, start)
    labels = list(_LABEL.finditer(text))
    if any(label[1].upper() == "ACTION" for label in labels):
        return _from_lines(text, labels) if max_actions == 1 else _list_from_lines(text, labels, max_actions)
    if (start := _next_block(text, _FENCE, 0)) is not None:
        return _last_object(text, _FENCE, start)
    beginning = _LINE_WITH_BRACE if max_actions == 1 else _LINE_WITH_BRACES
    if (bare := beginning.search(text)) is not None:
        value, end = _decode(text, bare.end() - 1)
        if beginning.search(text, end):
            raise _ReplyProblem("holds more than one JSON object and no <json> tags")
        return value
    if _TAG.search(text):
        raise _ReplyProblem("has a <json> tag with no JSON object behind it")
    raise _ReplyProblem(f"holds no <json>…</json> block and no ACTION: line (it begins with {excerpt(text.strip())})")


def _next_block(text: str, opening: re.Pattern[str], position: int) -> int | None:
    """Where the next JSON object or list after an opening mark begins, or `None`."""
    starts = (_skip_lead_in(text, mark.end()) for mark in opening.finditer(text, position))
    return next((start for start in starts if text.startswith(("{", "["), start)), None)


def _skip_lead_in(text: str, position: int) -> int:
    lead_in = _LEAD_IN.match(text, position)
    return lead_in.end() if lead_in else position


def _last_object(text: str, opening: re.Pattern[str], first: int) -> Any:
    """The object of the last block. A mark inside a string of an earlier block opens no block."""
    last_value: Any = None
    problem: ValueError | None = None
    start: int | None = first
    for _ in range(MAX_BLOCKS):
        if start is None:
            break
        problem, end = None, start
        try:
            last_value, end = _decode(text, start)
            _refuse_second_value(text, end)
        except ValueError as error:
            problem = error
        start = _next_block(text, opening, end)
    if start is not None:
        raise _ReplyProblem(_TOO_MANY_BLOCKS)
    if problem is not None:
        raise problem
    return last_value


def _refuse_second_value(text: str, end: int) -> None:
    """Refuse a second value between an object and its closing tag: it is unclear which one is meant."""
    closing, opening = _CLOSING.search(text, end), _TAG.search(text, end)
    if closing is not None and (opening is None or closing.start() < opening.start()):
        rest = text[end : closing.start()].strip().strip("`").strip()
        if rest:
            raise _ReplyProblem(f"has more than one JSON object inside the <json> tags, from {excerpt(rest, 30)} on")


def _from_lines(text: str, labels: list[re.Match[str]]) -> dict[str, Any]:
    """The last `ACTION:` line with the thought before it and the parameters after it."""
    body: dict[str, Any] = {}
    thought = ""
    end = blocks = 0
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        if label.start() < end:
            continue  # a label inside a string of the parameters
        stop = following.start() if following else len(text)
        match label[1].upper():
            case "ACTION":
                body = {"tool": _tool_name(text[label.end() : stop])}
            case "PARAMS":
                blocks += 1
                if blocks > MAX_BLOCKS:
                    raise _ReplyProblem(_TOO_MANY_BLOCKS)
                start = _skip_lead_in(text, label.end())
                body["params"], end = _decode(text, start) if start < stop else ({}, stop)
            case _:
                thought = text[label.end() : stop].strip()
    if not body.get("params"):
        _refuse_other_labels(body, text, [label.end() for label in labels if label[1].upper() == "ACTION"][-1])
    return {"thought": thought, **body}


def _list_from_lines(text: str, labels: list[re.Match[str]], max_actions: int) -> list[dict[str, Any]]:
    """The actions in lines: a thought, then `ACTION:` and its `PARAMS:` for each.

    Text between two actions is refused: the later one may rest on a result that the participant made up.
    """
    bodies: list[dict[str, Any]] = []
    places: list[int] = []
    thought = ""
    end = 0
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        if label.start() < end:
            continue  # a label inside a string of the parameters
        stop = following.start() if following else len(text)
        kind = label[1].upper()
        if kind == "ACTION":
            if bodies and (between := text[end : label.start()].strip("`*_ \t\r\n")):
                raise _ReplyProblem(f"has {excerpt(between, 40)} between its actions")
            if len(bodies) == max_actions:
                raise _ReplyProblem(f"has more than {max_actions} ACTION: lines")
            bodies.append({"tool": _tool_name(text[label.end() : stop])})
            places.append(label.end())
            line = _FIRST_LINE.match(text, label.end(), stop)
            end = line.end() if line else stop
        elif kind == "PARAMS" and bodies:
            if "params" in bodies[-1]:
                raise _ReplyProblem("has two PARAMS: lines for one action")
            start = _skip_lead_in(text, label.end())
            bodies[-1]["params"], end = _decode(text, start) if start < stop else ({}, stop)
        elif kind.startswith("THOUGHT") and not bodies:
            thought = text[label.end() : stop].strip()
    for body, place, after in zip(bodies, places, [*places[1:], len(text)], strict=True):
        if not body.get("params"):
            _refuse_other_labels(body, text[:after], place)
    return [{"thought": thought, **bodies[0]}, *bodies[1:]]


def _refuse_other_labels(body: dict[str, Any], text: str, after_action: int) -> None:
    """Refuse an action in lines whose parameters are in none that is read, such as `Action Input:`."""
    for label in _OTHER_PARAMS_LABEL.finditer(text, after_action):
        if label["value"].strip(" \t*_`\"'").lower() not in _NO_PARAMS and label["name"].upper() != "PARAMS":
            raise _ReplyProblem(f"has a line {excerpt(label['name'] + ':', 40)} where PARAMS: is meant")
    rest = text[after_action:].strip().partition("\n")[2]
    is_text = re.match(r"\W*+\w", rest) and not _LABEL.search(rest) and not _ANSWER_LABEL.search(rest)
    if body["tool"] == FINISH and "params" not in body and is_text:
        raise _ReplyProblem(f"has text after ACTION: {FINISH} and no PARAMS: line with the answer")


def _tool_name(text: str) -> str:
    lines = text.strip().splitlines()
    name = lines[0].strip() if lines else ""
    # Models decorate names: `browser_click`, **browser_click**, "browser_click".
    return name if TOOL_NAME.fullmatch(name) else name.strip(" \t`*_\"'.")


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at `start` and where it ends. Raises `_ReplyProblem`.

    Takes time linear in the text after `start`.
    """
    # A label, a tag or a fence ends it.
    run = JSON_RUN.match(text, start)
    text_run = run[0] if run else ""
    # Every value but the first follows one of these.
    if sum(map(JSON_STRING.sub("", text_run).count, "{[,")) >= MAX_VALUES:
        raise _ReplyProblem(f"holds more than {MAX_VALUES} JSON values")
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        problem = error
    except RecursionError:
        raise _ReplyProblem(f"nests JSON more than {MAX_DEPTH} levels deep") from None
    if _ENDS_AFTER_COMMA.match(text, problem.pos):
        # A space for each trailing comma keeps the positions. The run has only complete strings, so this is linear.
        repaired = _TRAILING_COMMA.sub(lambda match: match[1] or " ", text_run)
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            value, end = _DECODER.raw_decode(repaired)
            return value, start + end
    near = text[problem.pos : problem.pos + 30]
    where = f"near {excerpt(near, 30)}" if near else "where the text ends"
    raise _ReplyProblem(f"is not valid JSON: {problem.msg} at character {problem.pos}, {where}")


def _parse_action(body: Any, tools: Sequence[ToolSpec]) -> Action:
    if not isinstance(body, dict):
        raise _ReplyProblem("is a JSON list or value, not one JSON object")
    if "tool" not in body:
        keys = ", ".join(excerpt(key, 20) for key in list(body)[:5]) or "none"
        raise _ReplyProblem(f'has no "tool" key (its keys: {keys})')
    tool = body["tool"].strip() if isinstance(body["tool"], str) else None
    if tool is None or TOOL_NAME.fullmatch(tool) is None:
        tool_text = excerpt(tool) if tool is not None else f"a {type(body['tool']).__name__}"
        raise _ReplyProblem(f'has as "tool" {tool_text}, which is not the name of a tool')
    action = Action(tool=tool, params=_parse_params(body), thought=_parse_thought(body.get("thought")))
    _refuse_lost_params(action, body, tools)
    return action


def _refuse_lost_params(action: Action, body: dict[str, Any], tools: Sequence[ToolSpec]) -> None:
    """Refuse parameters of the tool beside "params"."""
    spec = next((tool for tool in tools if tool.name == action.tool), None)
    known = spec.parameters.get("properties", {}) if spec else {}
    for name in body.keys() - {"tool", "thought", "params"} - action.params.keys():
        if name in known or OLDER_NAMES.get(name) in known:
            raise _beside(name)


def _refuse_lost_answer(tool: str, body: dict[str, Any], text: str) -> None:
    """Refuse to end an attempt without an answer if the reply seems to give one."""
    other_answers = [name for name in body if _OTHER_ANSWERS.fullmatch(name) and body[name] not in (None, "", [], {})]
    lines = outside_quotations(_ANSWER_LABEL, text)
    if tool != FINISH and (lines or "answer" in other_answers):
        raise _ReplyProblem(f"gives an answer, which {tool} does not take; {FINISH} does")
    if tool == FINISH and other_answers:
        raise _beside(other_answers[0])
    if lines:
        line_text = excerpt(f"{lines[-1]['name']}:", 20)
        raise _ReplyProblem(f"has a line {line_text}; an answer is given as {_ANSWER_EXAMPLE}")


def _beside(name: str) -> _ReplyProblem:
    example = f"; an answer is given as {_ANSWER_EXAMPLE}" if _OTHER_ANSWERS.fullmatch(name) else ""
    return _ReplyProblem(f'has {excerpt(name, 20)} beside "params" instead of inside it{example}')


def _parse_params(body: dict[str, Any]) -> dict[str, Any]:
    for name, value in body.items():
        is_meant = name != "params" and _OTHER_NAMES.fullmatch(name) is not None
        if is_meant and ("params" not in body or (value and not body["params"])):
            raise _ReplyProblem(f'has {excerpt(name, 20)} where "params" is meant')
    params = body.get("params")
    if params is None or (isinstance(params, str) and not params.strip()):
        return {}
    if isinstance(params, str):
        params, end = _decode(params, len(params) - len(params.lstrip()))
        if body["params"][end:].strip():
            raise _ReplyProblem('has text after the JSON object in "params"')
    if not isinstance(params, dict):
        raise _ReplyProblem(f'has as "params" a {type(params).__name__}, not a JSON object')
    clean: dict[str, Any] = _clean(params, 1)
    return clean


def _parse_thought(thought: Any) -> str:
    if thought is None:
        return ""
    if not isinstance(thought, str):
        thought = json.dumps(_clean(thought, 1), ensure_ascii=False)
    return clip(without_surrogates(thought).replace("\x00", "\ufffd"), MAX_THOUGHT_CHARS)


def _clean(value: Any, depth: int) -> Any:
    """The value with all strings made encodable as UTF-8; refuses NUL characters and deep nesting."""
    if depth > MAX_DEPTH:
        raise _ReplyProblem(f"nests JSON more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        if "\x00" in value:
            raise _ReplyProblem("holds a NUL character")
        return without_surrogates(value)
    if isinstance(value, dict):
        return {_clean(key, depth): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    return value


def _integer(digits: str) -> int:
    # The length first: converting a very long number takes quadratic time.
    if len(digits) > 17 or abs(value := int(digits)) > 2**53:
        raise _ReplyProblem(f"holds the number {excerpt(digits, 20)}, which is too large")
    return value


_DECODER = json.JSONDecoder(strict=False, **{**STRICT, "parse_int": _integer})
