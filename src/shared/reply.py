"""A participant's message read leniently in form and strictly in meaning. Pure; never raises.

What counts, in this order: `<json>` blocks, `THOUGHT:`/`ACTION:`/`PARAMS:` lines, JSON objects in a code fence, and the
only JSON object that begins a line, behind a backtick, `JSON:` or a tag such as `<answer>` as well. Of several blocks
the last one counts: what stands before it is taken for a draft. A last block that cannot be read is a complaint, never
a reason to carry out an earlier one.
Forgiven: code fences, a missing closing tag, the case of tags, text around, trailing commas, raw line breaks in
strings. Refused, because a guess could change the meaning: repeated keys, NaN and infinities, integers beyond 2^53,
NUL characters, parameters under another name, two objects in one block, more than `MAX_BLOCKS` blocks or `MAX_VALUES`
values. Each block is decoded at most twice, so the time is linear in the text.
"""

import json
import math
import re
from typing import Any, NoReturn

from shared.models import Action, Reply
from shared.text import clip, excerpt, without_surrogates

MAX_REPLY_CHARS = 200_000
MAX_THOUGHT_CHARS = 4_000
MAX_DEPTH = 16
MAX_BLOCKS = 10
MAX_VALUES = 20_000
TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
# `<ref>` is no reference on any page, so a participant that sends the example back does nothing with it.
REPLY_EXAMPLE = '<json>{"thought": "…", "tool": "browser_click", "params": {"target": "<ref>"}}</json>'

_TAG = re.compile(r"<\s{0,9}json\s{0,9}>", re.IGNORECASE)
_CLOSING = re.compile(r"<\s{0,9}/\s{0,9}json\s{0,9}>", re.IGNORECASE)
_FENCE = re.compile(r"`{3,9}+[A-Za-z0-9]{0,20}+(?=[\s{])")
_LINE_WITH_BRACE = re.compile(
    r"^[ \t]*+(?:(?:`|<(?:answer|action|response|output|tool_call)>|json:)[ \t]*+)?\{", re.IGNORECASE | re.MULTILINE
)
_LEAD_IN = re.compile(r"\s*+(?:`{1,9}(?:json5?|JSON)?\s*+)?")
_LABEL = re.compile(r"^[ \t>*_#-]{0,9}(THOUGHTS?|ACTION|PARAMS)[ \t*_]{0,9}:[ \t*_]{0,9}", re.IGNORECASE | re.MULTILINE)
# What may stand in a JSON text, from a place on; a label, a tag or a fence ends it.
_JSON_RUN = re.compile(r'(?:"(?:[^"\\]++|\\.)*+"|[][{}:,\s0-9.eE+\-truefalsnINity]++)*+', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TO_TRAILING_COMMA = re.compile(r'(?:[^",]++|"(?:[^"\\]++|\\.)*+"|,(?!\s*+[}\]]))*+,', re.DOTALL)
# Where a decoder finds fault with a trailing comma: at the comma (Python 3.13) or at the bracket behind it.
_ENDS_AFTER_COMMA = re.compile(r",?\s*+[}\]]")
_OTHER_NAMES = ("parameters", "arguments", "args", "param", "input")


class _Problem(ValueError):
    """What is wrong with a reply, as the predicate of a sentence that begins with `Your reply`."""


def parse_reply(text: str) -> Reply:
    """The action of a participant's message, or one precise complaint in a sentence. Never raises.

    Text longer than `MAX_REPLY_CHARS` is refused; a thought is cut at `MAX_THOUGHT_CHARS`.
    """
    try:
        return Reply(action=_read(text))
    except _Problem as problem:
        return Reply(complaint=f"Your reply {problem}; send exactly one action, such as {REPLY_EXAMPLE}")


def render_reply(action: Action) -> str:
    """The message that says `action`, in one line; `parse_reply` gives the action back.

    Raises `ValueError` for parameters that JSON cannot hold (NaN) and `TypeError` for foreign objects.
    """
    body = {"thought": action.thought, "tool": action.tool, "params": action.params}
    # Angle brackets occur inside strings only; escaped, no other reader can take a typed tag for the closing one.
    return "<json>" + json.dumps(body, allow_nan=False).replace("<", "\\u003c") + "</json>"


def _read(text: str) -> Action:
    if len(text) > MAX_REPLY_CHARS:
        raise _Problem(f"has {len(text)} characters, and at most {MAX_REPLY_CHARS} are read")
    if not text.strip():
        raise _Problem("is empty")
    if (start := _next_block(text, _TAG, 0)) is not None:
        return _action_of(_last_object(text, _TAG, start))
    labels = list(_LABEL.finditer(text))
    if any(label[1].upper() == "ACTION" for label in labels):
        return _action_of(_from_lines(text, labels))
    if (start := _next_block(text, _FENCE, 0)) is not None:
        return _action_of(_last_object(text, _FENCE, start))
    if (bare := _LINE_WITH_BRACE.search(text)) is not None:
        value, end = _decode(text, bare.end() - 1)
        if _LINE_WITH_BRACE.search(text, end):
            raise _Problem("holds more than one JSON object and no <json> tags")
        return _action_of(value)
    if _TAG.search(text):
        raise _Problem("has a <json> tag with no JSON object behind it")
    raise _Problem(f"holds no <json>…</json> block and no ACTION: line (it begins with {excerpt(text.strip())})")


def _next_block(text: str, opening: re.Pattern[str], position: int) -> int | None:
    """Where the next JSON object or list behind an opening mark begins, or `None`."""
    for mark in opening.finditer(text, position):
        lead_in = _LEAD_IN.match(text, mark.end())
        start = lead_in.end() if lead_in else mark.end()
        if text.startswith(("{", "["), start):
            return start
    return None


def _last_object(text: str, opening: re.Pattern[str], first: int) -> Any:
    """The object of the last block. A mark inside a string of an earlier block opens no block."""
    found: Any = None
    problem: _Problem | None = None
    start: int | None = first
    for _ in range(MAX_BLOCKS):
        if start is None:
            break
        problem, end = None, start
        try:
            found, end = _decode(text, start)
            _check_rest(text, end)
        except _Problem as error:
            problem = error
        start = _next_block(text, opening, end)
    if start is not None:
        raise _too_many_blocks()
    if problem is not None:
        raise problem
    return found


def _too_many_blocks() -> _Problem:
    return _Problem(f"holds more than {MAX_BLOCKS} JSON blocks")


def _check_rest(text: str, end: int) -> None:
    """Refuse a second value between an object and its closing tag: which of the two is meant?"""
    closing = _CLOSING.search(text, end)
    opening = _TAG.search(text, end)
    if closing is not None and (opening is None or closing.start() < opening.start()):
        rest = text[end : closing.start()].strip().strip("`").strip()
        if rest:
            raise _Problem(f"has more than one JSON object inside the <json> tags, from {excerpt(rest, 30)} on")


def _from_lines(text: str, labels: list[re.Match[str]]) -> dict[str, Any]:
    """The last `ACTION:` line with the thought before it and the parameters behind it."""
    body: dict[str, Any] = {}
    thought, action = slice(0), None
    end = blocks = 0
    for number, label in enumerate(labels):
        if label.start() < end:
            continue  # a label inside a string of the parameters
        stop = labels[number + 1].start() if number + 1 < len(labels) else len(text)
        match label[1].upper():
            case "ACTION":
                action, body = slice(label.end(), stop), {}
            case "PARAMS":
                blocks += 1
                if blocks > MAX_BLOCKS:
                    raise _too_many_blocks()
                body["params"], end = _decode_params(text, label.end(), stop)
            case _:
                thought = slice(label.end(), stop)
    if action is not None:
        lines = text[action].strip().splitlines()
        name = lines[0].strip() if lines else ""
        body["tool"] = name if TOOL_NAME.fullmatch(name) else name.strip(" \t`*_\"'.")
    return {"thought": text[thought].strip(), **body}


def _decode_params(text: str, start: int, stop: int) -> tuple[Any, int]:
    lead_in = _LEAD_IN.match(text, start)
    position = lead_in.end() if lead_in else start
    if position >= stop or not text[start:stop].strip():
        return {}, stop
    return _decode(text, position)


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at `start` and where it ends. Raises `_Problem`. Takes time linear in the text behind `start`."""
    run = _JSON_RUN.match(text, start)
    outside_strings = _STRING.sub("", run.group()) if run else ""
    # Every value but the first stands behind one of these.
    if sum(map(outside_strings.count, "{[,")) >= MAX_VALUES:
        raise _Problem(f"holds more than {MAX_VALUES} JSON values")
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if _ENDS_AFTER_COMMA.match(text, error.pos) and (found := _decode_without_trailing_commas(text, start)):
            return found
        near = text[error.pos : error.pos + 30]
        where = f"near {excerpt(near, 30)}" if near else "where the text ends"
        raise _Problem(f"is not valid JSON: {error.msg} at character {error.pos}, {where}") from None
    except RecursionError:
        raise _Problem(f"nests JSON more than {MAX_DEPTH} levels deep") from None


def _decode_without_trailing_commas(text: str, start: int) -> tuple[Any, int] | None:
    """The value with each trailing comma replaced by a blank, so that positions stay; commas in strings are text."""
    run = _JSON_RUN.match(text, start)
    rest, position, pieces = run.group() if run else "", 0, []
    while comma := _TO_TRAILING_COMMA.match(rest, position):
        pieces.append(rest[position : comma.end() - 1])
        position = comma.end()
    try:
        value, end = _DECODER.raw_decode(" ".join([*pieces, rest[position:]]))
    except (json.JSONDecodeError, RecursionError):
        return None
    return value, start + end


def _action_of(body: Any) -> Action:
    if not isinstance(body, dict):
        raise _Problem("is a JSON list or value, not one JSON object")
    if "tool" not in body:
        keys = ", ".join(excerpt(key, 20) for key in list(body)[:5]) or "none"
        raise _Problem(f'has no "tool" key (its keys: {keys})')
    tool = body["tool"].strip() if isinstance(body["tool"], str) else None
    if tool is None or TOOL_NAME.fullmatch(tool) is None:
        shown = excerpt(tool) if tool is not None else f"a {type(body['tool']).__name__}"
        raise _Problem(f'has as "tool" {shown}, which is not the name of a tool')
    return Action(tool=tool, params=_params_of(body), thought=_thought_of(body.get("thought")))


def _params_of(body: dict[str, Any]) -> dict[str, Any]:
    if "params" not in body:
        for name in _OTHER_NAMES:
            if name in body:
                raise _Problem(f'has "{name}" where "params" is meant')
        return {}
    params = body["params"]
    if params is None or (isinstance(params, str) and not params.strip()):
        return {}
    if isinstance(params, str):
        start = len(params) - len(params.lstrip())
        params, end = _decode(params, start)
        if body["params"][end:].strip():
            raise _Problem('has text after the JSON object in "params"')
    if not isinstance(params, dict):
        raise _Problem(f'has as "params" a {type(params).__name__}, not a JSON object')
    clean = _clean(params, 1)
    return clean if isinstance(clean, dict) else {}


def _thought_of(thought: Any) -> str:
    if thought is None:
        return ""
    if not isinstance(thought, str):
        thought = json.dumps(_clean(thought, 1), ensure_ascii=False)
    return clip(without_surrogates(thought).replace("\x00", "\ufffd"), MAX_THOUGHT_CHARS)


def _clean(value: Any, depth: int) -> Any:
    """The value with everything encodable as UTF-8; refuses NUL characters and deep nesting."""
    if depth > MAX_DEPTH:
        raise _Problem(f"nests JSON more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        if "\x00" in value:
            raise _Problem("holds a NUL character")
        return without_surrogates(value)
    if isinstance(value, dict):
        return {_clean(key, depth): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _Problem(f"has the JSON key {excerpt(key, 20)} twice")
        result[key] = value
    return result


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(value := int(digits)) > 2**53:
        raise _Problem(f"holds the number {excerpt(digits, 20)}, which is too large")
    return value


def _decimal(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise _Problem(f"holds the number {excerpt(digits, 20)}, which is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise _Problem(f"holds {name}, which is no JSON number")


_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_unique, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
)
