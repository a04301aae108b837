"""What the page shows of an observation, as JSON. Text from pages has its hidden characters written out. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from participants.base import Observation
from shared.models import ToolSpec
from shared.protocol import is_result
from shared.replies import ENDING_TOOLS
from shared.snapshot import FIELDS, PRESSABLE, Node, Snapshot
from shared.text import clip, plain, show_hidden

_MAX_ELEMENTS = 2_000
_MAX_OPTIONS = 1_000
_MAX_NAME_CHARS = 120
_MAX_TEXT_CHARS = 2_000
_STATES = ("checked", "selected", "expanded", "disabled", "pressed", "active")


def view_of(observation: Observation, snapshot: Snapshot) -> dict[str, Any]:
    """What the page shows: the task, the page, its elements and what can be done."""
    page = observation.page
    feedback = observation.feedback
    return {
        "task": _text(observation.instruction, 20_000),
        "website": _text(observation.website or ""),
        "reply": observation.step + 1,
        "problem": _text(feedback) if feedback is not None and not is_result(feedback) else "",
        "result": _text(feedback) if feedback is not None and is_result(feedback) else "",
        "notice": _text(observation.notice or ""),
        "url": _text(page.url),
        "title": _text(page.title, 300),
        "dialog": None if page.dialog is None else _text(page.dialog),
        "vanished": [_text(each, 300) for each in page.vanished],
        "tabs": [
            {"index": tab.index, "title": _text(tab.title or tab.url, 80), "current": tab.current} for tab in page.tabs
        ],
        "has_screenshot": page.screenshot is not None,
        "elements": list(_elements(snapshot)),
        "page_tools": [_site_tool(tool) for tool in page.page_tools],
        "tools": [tool.model_dump(mode="json") for tool in observation.tools if tool.name not in ENDING_TOOLS],
    }


def element_view(node: Node, snapshot: Snapshot) -> dict[str, Any]:
    """One element: its reference, words, place, and what can be done with it."""
    options = [each for each in snapshot.subtree(node) if each.role == "option"][:_MAX_OPTIONS]
    is_list = node.role in ("combobox", "listbox") and any(each.parent == node.position for each in options)
    states = [f"{key}={value}" if value != "true" else key for key in _STATES if (value := node.states.get(key))]
    value = snapshot.value_of(node) if node.role in FIELDS else ""
    return {
        "ref": node.ref,
        "role": node.role,
        "name": _text(clip(plain(snapshot.name_of(node)), _MAX_NAME_CHARS)),
        "value": _text(value or ", ".join(snapshot.choices_in(node)), 300),
        "states": ", ".join(states),
        "box": snapshot.boxes[node.position] if node.box else None,
        "is_field": node.role in FIELDS and node.role != "slider" and not is_list,
        # The names are sent back, so they are as the page writes them.
        "options": [{"name": plain(snapshot.name_of(each)), "selected": "selected" in each.states} for each in options]
        if is_list
        else [],
    }


def _elements(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The elements that can be operated, in the order of the page."""
    count = 0
    for node in snapshot.nodes:
        if node.ref is None or not (node.role in PRESSABLE or node.states.get("cursor") == "pointer"):
            continue
        inside = snapshot.parents(node)
        if node.role not in PRESSABLE and any(outer.role in PRESSABLE for outer in inside):
            continue
        if count == _MAX_ELEMENTS:
            return
        count += 1
        yield element_view(node, snapshot)


def _site_tool(tool: ToolSpec) -> str:
    """A tool that the page registers, which is text of the site."""
    return _text(f"{tool.name}: {tool.description} {json.dumps(tool.parameters, ensure_ascii=False)}")


def _text(text: str, limit: int = _MAX_TEXT_CHARS) -> str:
    return show_hidden(clip(text, limit))
