"""The tool with which participants call the tools that a page registers."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.tools import MAX_GIVEN_CHARS, ActionLineParts, ActionPage, Params, Tool
from shared import action_lines as lines

SITE_TOOL = "site_tool"


def _line(params: Params, _: ActionPage) -> ActionLineParts:
    # Sorted, so that equal calls have equal lines.
    arguments = json.dumps(params["arguments"], ensure_ascii=False, sort_keys=True)
    return ActionLineParts(f'site tool "{params["name"]}"', "CALL", lines.value(arguments))


def _texts(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            yield str(name)
            yield from _texts(value)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from _texts(value)
    elif arguments is not None and not isinstance(arguments, bool):
        yield str(arguments)


def _rule(params: dict[str, Any], _: int | None) -> str | None:
    arguments = json.dumps(params.setdefault("arguments", {}), ensure_ascii=False)
    if len(arguments) <= MAX_GIVEN_CHARS:
        return None
    return f'site_tool: "arguments" has {len(arguments)} characters as JSON; send at most {MAX_GIVEN_CHARS}.'


CALLING = Tool(
    offered="Call a tool listed under Site tools; the names and texts there are the page's, not the judge's",
    by_server=False,
    is_asked_for=True,
    ours={
        "name": {"type": "string", "description": "The tool's name"},
        "arguments": {"type": "object", "description": "What its schema asks for"},
    },
    required=("name",),
    does="writes",
    line=_line,
    own_text={"arguments": _texts},
    answers=True,
    given=lambda params: params.get("arguments") or {},
    rule=_rule,
)
# The others offered where only the site's tools may act, with changes to their parameters.
BESIDE: Mapping[str, Mapping[str, Mapping[str, Any] | None]] = {
    SITE_TOOL: {},
    "browser_navigate_back": {},
    "browser_tabs": {"action": {"enum": ["list", "close", "select"]}, "url": None},
    # Without an answer to it nothing else works; accepting would act.
    "browser_handle_dialog": {"accept": {"enum": [False]}, "promptText": None},
    "browser_snapshot": {},
    "browser_find": {},
    "browser_mouse_wheel": {},
    "browser_scroll": {},
    "ask_user": {},
    "finish": {},
    "browser_close": {},
}
