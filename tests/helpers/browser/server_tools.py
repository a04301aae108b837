"""The tools of Playwright 1.65's MCP server (`--caps vision`), with the parameters that matter to the policy."""

from typing import Any

from shared.models import ToolSpec

STRING = {"type": "string"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
TARGET = {"type": "string", "description": "Exact target element reference from the page snapshot, or a selector"}
FIELD = {
    "type": "object",
    "properties": {"element": STRING, "target": TARGET, "name": STRING, "type": STRING, "value": STRING},
    "required": ["target", "name", "type", "value"],
    "additionalProperties": False,
}


def tool(name: str, properties: dict[str, Any], required: tuple[str, ...] = ()) -> ToolSpec:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return ToolSpec(
        name=name,
        description=f"What the server says of {name}",
        parameters={**schema, "required": list(required)} if required else schema,
    )


FORBIDDEN = tuple(
    """
    browser_console_messages browser_drop browser_emulate_media browser_evaluate browser_file_upload
    browser_mouse_down browser_mouse_up browser_network_request browser_network_requests browser_resize
    browser_run_code_unsafe browser_take_screenshot
""".split()
)

POINT_TOOLS = (
    tool(
        "browser_mouse_click_xy",
        {
            "x": NUMBER,
            "y": NUMBER,
            "button": {"type": "string", "enum": ["left", "right", "middle"]},
            "clickCount": NUMBER,
            "delay": NUMBER,
        },
        ("x", "y"),
    ),
    tool("browser_mouse_move_xy", {"x": NUMBER, "y": NUMBER}, ("x", "y")),
    tool(
        "browser_mouse_drag_xy",
        {"startX": NUMBER, "startY": NUMBER, "endX": NUMBER, "endY": NUMBER},
        ("startX", "startY", "endX", "endY"),
    ),
    tool(
        "browser_mouse_wheel",
        {"deltaX": {**NUMBER, "default": 0}, "deltaY": {**NUMBER, "default": 0}},
        ("deltaX", "deltaY"),
    ),
)
SERVER_TOOLS = (
    *POINT_TOOLS,
    *(tool(name, {"filename": STRING}) for name in FORBIDDEN),
    tool("browser_close", {}),
    tool("browser_navigate", {"url": STRING}, ("url",)),
    tool("browser_navigate_back", {}),
    tool(
        "browser_click",
        {
            "element": STRING,
            "target": TARGET,
            "doubleClick": BOOLEAN,
            "button": {"type": "string", "enum": ["left", "right", "middle"]},
            "modifiers": {"type": "array", "items": {"type": "string", "enum": ["Alt", "Control", "Shift"]}},
        },
        ("target",),
    ),
    tool(
        "browser_type",
        {"element": STRING, "target": TARGET, "text": STRING, "submit": BOOLEAN, "slowly": BOOLEAN},
        ("target", "text"),
    ),
    tool("browser_fill_form", {"fields": {"type": "array", "items": FIELD}}, ("fields",)),
    tool(
        "browser_select_option",
        {"element": STRING, "target": TARGET, "values": {"type": "array", "items": STRING}},
        ("target", "values"),
    ),
    tool("browser_press_key", {"key": STRING}, ("key",)),
    tool("browser_hover", {"element": STRING, "target": TARGET}, ("target",)),
    tool(
        "browser_drag",
        {"startElement": STRING, "startTarget": TARGET, "endElement": STRING, "endTarget": TARGET},
        ("startTarget", "endTarget"),
    ),
    tool(
        "browser_tabs",
        {
            "action": {"type": "string", "enum": ["list", "new", "close", "select"]},
            "index": NUMBER,
            "url": STRING,
            "isolatedContext": STRING,
        },
        ("action",),
    ),
    tool("browser_wait_for", {"time": NUMBER, "text": STRING, "textGone": STRING}),
    tool("browser_handle_dialog", {"accept": BOOLEAN, "promptText": STRING}, ("accept",)),
    tool("browser_snapshot", {"target": TARGET, "filename": STRING, "depth": NUMBER, "boxes": BOOLEAN}),
    tool("browser_find", {"text": STRING, "regex": STRING, "maxResults": NUMBER, "filename": STRING}),
)
