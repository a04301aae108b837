"""Which tools a participant may use, and how they are described to it. Pure.

An allow-list, by tool and by parameter: what a newer server adds is not offered until it stands here. Left out on
purpose, beside everything that runs code, reads or writes files or changes the browser's set-up: `filename` and
`isolatedContext` everywhere, and `regex` of `browser_find`, because one expression can keep the server busy for ever
and so turn a lost task into a fault that is not counted.
Descriptions are short: they are sent with every message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from shared.models import ToolSpec
from shared.protocol import CLOSE, FINISH

SCROLL = "browser_scroll"
MAX_WAIT_S = 30
MAX_SCROLL_PX = 10_000
DEFAULT_SCROLL_PX = 600

_KEPT_KEYWORDS = ("type", "enum", "items", "minimum", "maximum")
_TARGET = {"type": "string", "description": "Element's ref, given in the snapshot as [ref=…]"}
_ELEMENT = {"description": "The element in words"}


@dataclass(frozen=True)
class ToolPolicy:
    """How one server tool is offered: `params` names each allowed parameter with changes to its schema."""

    description: str
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()


TOOL_POLICY: Mapping[str, ToolPolicy] = MappingProxyType(
    {
        "browser_navigate": ToolPolicy("Go to a web address", {"url": {"description": "http or https address"}}),
        "browser_navigate_back": ToolPolicy("Go back to the previous page"),
        "browser_click": ToolPolicy(
            "Click an element",
            {"target": _TARGET, "element": _ELEMENT, "doubleClick": {}, "button": {}, "modifiers": {}},
        ),
        "browser_type": ToolPolicy(
            "Type text into a field, replacing what it holds",
            {
                "target": _TARGET,
                "element": _ELEMENT,
                "text": {},
                "submit": {"description": "Press Enter afterwards"},
                "slowly": {"description": "One key at a time, for pages that react to keys"},
            },
        ),
        "browser_fill_form": ToolPolicy(
            "Fill several fields",
            {
                "fields": {
                    "items": {
                        "type": "object",
                        "properties": {
                            "target": _TARGET,
                            "name": {"type": "string", "description": "The field in words"},
                            "type": {"type": "string", "enum": ["textbox", "checkbox", "radio", "combobox", "slider"]},
                            "value": {"type": "string", "description": "true or false for a checkbox"},
                        },
                        "required": ["target", "name", "type", "value"],
                        "additionalProperties": False,
                    }
                }
            },
        ),
        "browser_select_option": ToolPolicy(
            "Select options in a dropdown", {"target": _TARGET, "element": _ELEMENT, "values": {}}
        ),
        "browser_press_key": ToolPolicy("Press a key", {"key": {"description": "Such as Enter, ArrowDown, Control+a"}}),
        "browser_hover": ToolPolicy("Move the mouse over an element", {"target": _TARGET, "element": _ELEMENT}),
        "browser_drag": ToolPolicy(
            "Drag one element onto another",
            {"startTarget": _TARGET, "endTarget": _TARGET, "startElement": _ELEMENT, "endElement": _ELEMENT},
        ),
        "browser_tabs": ToolPolicy(
            "List, open, close or select tabs",
            {
                "action": {},
                "index": {"type": "integer", "minimum": 0, "description": "For select and close"},
                "url": {"description": "For new"},
            },
        ),
        "browser_wait_for": ToolPolicy(
            "Wait for a time, or for text to appear or go",
            {"time": {"minimum": 0, "maximum": MAX_WAIT_S, "description": "Seconds"}, "text": {}, "textGone": {}},
        ),
        "browser_handle_dialog": ToolPolicy(
            "Answer the open dialog", {"accept": {}, "promptText": {"description": "Answer to a prompt"}}
        ),
        "browser_snapshot": ToolPolicy(
            "Get the snapshot of the page or of one element",
            {"target": _TARGET, "depth": {"type": "integer", "minimum": 1, "maximum": 100}},
        ),
        "browser_find": ToolPolicy(
            "Find text in the snapshot, also in what was left out",
            {"text": {}, "maxResults": {"type": "integer", "minimum": 1, "maximum": 100}},
            required=("text",),
        ),
    }
)


def offered_tools(server_tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The server's tools as participants see them, with our own: `browser_scroll`, `finish`, `browser_close`.

    A tool that the policy does not name is left out, and so is one that demands a parameter the policy does not allow.
    """
    return (*_allowed(server_tools), *_own_tools())


def _allowed(server_tools: Sequence[ToolSpec]) -> Iterator[ToolSpec]:
    by_name = {tool.name: tool for tool in server_tools}
    for name, policy in TOOL_POLICY.items():
        tool = by_name.get(name)
        if tool is None or not set(tool.parameters.get("required", ())) <= policy.params.keys():
            continue
        known = tool.parameters.get("properties", {})
        properties = {key: _property(known[key], changes) for key, changes in policy.params.items() if key in known}
        demanded = {*tool.parameters.get("required", ()), *policy.required}
        parameters = _object(properties, [key for key in properties if key in demanded])
        yield ToolSpec(name=name, description=policy.description, parameters=parameters)


def _property(schema: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: schema[key] for key in _KEPT_KEYWORDS if key in schema}, **changes}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _own_tools() -> tuple[ToolSpec, ...]:
    scroll: dict[str, Any] = {
        "direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
        "amount": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_SCROLL_PX,
            "description": f"Pixels, {DEFAULT_SCROLL_PX} if left out",
        },
        "target": {**_TARGET, "description": "Ref of what to scroll, the page if left out"},
    }
    answer = {"answer": {"type": "string", "description": "What the task asks for, or what was done"}}
    return (
        ToolSpec(name=SCROLL, description="Scroll", parameters=_object(scroll, ["direction"])),
        ToolSpec(name=FINISH, description="End the task", parameters=_object(answer, [])),
        ToolSpec(name=CLOSE, description="End the task without an answer", parameters=_object({}, [])),
    )
