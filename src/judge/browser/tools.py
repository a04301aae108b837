"""The tools that a participant may use, and the validation of its actions. Pure.

Tools and parameters are an allow-list: additions of a newer server are not offered until they are listed here. Left out
deliberately, besides everything that runs code, reads or writes files or changes the browser's configuration:
`filename` and `isolatedContext` everywhere, and `regex` of `browser_find`, because one expression can keep the server
busy forever and so turn a lost task into a fault that does not count.

Elements are identified by references of the judge's own snapshot, or by screenshot coordinates (`config.actions`), so
that the record can say what was acted on. The older names (`ref`, `startRef`, `endRef`) and unambiguous variants (`"1"`
for 1, one value for a list of one) are accepted. Every refusal is one sentence that says what was wrong and what to
send instead, with foreign text quoted and bounded.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from judge.browser.points import Viewport, point_outside
from judge.config import Actions
from shared.models import Action, Record, ToolSpec
from shared.protocol import CLOSE, FINISH, MAX_URL_CHARS
from shared.snapshot import REF, Snapshot
from shared.text import clip, excerpt

SCROLL = "browser_scroll"
DEFAULT_SCROLL_PX = 600
MAX_SCROLL_PX = 10_000
MAX_WAIT_S = 30
MAX_TEXT_CHARS = 10_000
MAX_KEY_CHARS = 40
MAX_PARAM_CHARS = 2_000
MAX_ELEMENT_CHARS = 200
MAX_ITEMS = 50
# Well below the 100 that count as the site's fault: a participant must not be able to cause one.
MAX_OPEN_TABS = 20
MAX_CLICKS = 3

_KEPT_KEYWORDS = ("type", "enum", "items", "minimum", "maximum")
_OLDER_NAMES = {"ref": "target", "startRef": "startTarget", "endRef": "endTarget"}
_TARGETS = ("target", "startTarget", "endTarget")
_DESCRIPTIONS = ("element", "startElement", "endElement", "name")
_LIMITS = {"text": MAX_TEXT_CHARS, "answer": MAX_TEXT_CHARS, "url": MAX_URL_CHARS, "key": MAX_KEY_CHARS}
# Longer numbers would lose digits as floats.
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
# A reference as written in snapshots or by other programs: `[ref=e12]`, `ref=e12`, `@e12`.
_WRAPPED_REF = re.compile(r"\s*\[?(?:ref=|@)?([^\s\[\]]+)\]?\s*")
# Digits after the colon are a port: `shop.example:8443`.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?![0-9])")
_BARE_HOST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?(?:[/?#].*)?")
# The backslash (which browsers treat as a slash), controls, line separators, bidirectional controls and surrogates.
_NOT_IN_URL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_TYPES = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True)
class ToolPolicy:
    """How one server tool is offered: each allowed parameter with its description, or with changes to its schema.

    `ours` are schemas of additional parameters that the judge itself handles. Descriptions are short because they are
    sent with every message.
    """

    description: str
    params: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    ours: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _integer(low: int, high: int | None = None) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})}


_TARGET = {"type": "string", "description": "Element's ref, given in the snapshot as [ref=…]"}
_ELEMENT = "The element in words"
_OUR_ELEMENT = {"type": "string", "description": _ELEMENT}
_X, _Y = "CSS pixels from the left edge of the screenshot", "CSS pixels from its top"
_FORM_FIELD = {
    "target": _TARGET,
    "name": {"type": "string", "description": "The field in words"},
    "type": {"type": "string", "enum": ["textbox", "checkbox", "radio", "combobox", "slider"]},
    "value": {"type": "string", "description": "true or false for a checkbox"},
}
TOOL_POLICY: Mapping[str, ToolPolicy] = MappingProxyType(
    {
        "browser_navigate": ToolPolicy("Go to a web address", {"url": "http or https address"}),
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
                "submit": "Press Enter afterwards",
                "slowly": "One key at a time, for pages that react to keys",
            },
        ),
        "browser_fill_form": ToolPolicy(
            "Fill several fields", {"fields": {"items": _object(_FORM_FIELD, "target", "name", "type", "value")}}
        ),
        "browser_select_option": ToolPolicy(
            "Select options in a dropdown", {"target": _TARGET, "element": _ELEMENT, "values": {}}
        ),
        "browser_press_key": ToolPolicy("Press a key", {"key": "Such as Enter, ArrowDown, Control+a"}),
        "browser_hover": ToolPolicy("Move the mouse over an element", {"target": _TARGET, "element": _ELEMENT}),
        "browser_drag": ToolPolicy(
            "Drag one element onto another",
            {"startTarget": _TARGET, "endTarget": _TARGET, "startElement": _ELEMENT, "endElement": _ELEMENT},
        ),
        "browser_tabs": ToolPolicy(
            "List, open, close or select tabs",
            {"action": {}, "index": {**_integer(0), "description": "For select and close"}, "url": "For new"},
        ),
        "browser_wait_for": ToolPolicy(
            "Wait for a time, or for text to appear or go",
            {"time": {"minimum": 0, "maximum": MAX_WAIT_S, "description": "Seconds"}, "text": {}, "textGone": {}},
        ),
        "browser_handle_dialog": ToolPolicy(
            "Answer the open dialog", {"accept": {}, "promptText": "Answer to a prompt"}
        ),
        "browser_snapshot": ToolPolicy(
            "Get the snapshot of the page or of one element", {"target": _TARGET, "depth": _integer(1, 100)}
        ),
        "browser_find": ToolPolicy(
            "Find text in the snapshot, also in what was left out",
            {"text": {}, "maxResults": _integer(1, 100)},
            required=("text",),
        ),
        "browser_mouse_click_xy": ToolPolicy(
            "Click a point",
            {"x": _X, "y": _Y, "button": {}, "clickCount": _integer(1, MAX_CLICKS)},
            ours={"element": _OUR_ELEMENT},
        ),
        "browser_mouse_move_xy": ToolPolicy(
            "Move the mouse to a point", {"x": _X, "y": _Y}, ours={"element": _OUR_ELEMENT}
        ),
        "browser_mouse_drag_xy": ToolPolicy(
            "Drag from one point to another",
            {"startX": _X, "startY": _Y, "endX": {}, "endY": {}},
            ours={"startElement": _OUR_ELEMENT, "endElement": _OUR_ELEMENT},
        ),
        "browser_mouse_wheel": ToolPolicy(
            "Turn the mouse wheel, at a point or where the mouse is",
            {
                "deltaX": {**_integer(-MAX_SCROLL_PX, MAX_SCROLL_PX), "description": "Pixels to the right"},
                "deltaY": {**_integer(-MAX_SCROLL_PX, MAX_SCROLL_PX), "description": "Pixels down"},
            },
            ours={"x": {"type": "number"}, "y": {"type": "number"}, "element": _OUR_ELEMENT},
        ),
    }
)
_REF_TOOLS = frozenset({"browser_click", "browser_drag", "browser_fill_form", "browser_hover", "browser_select_option"})
_POINT_TOOLS = frozenset(name for name in TOOL_POLICY if name.startswith("browser_mouse_"))
_LEFT_OUT: Mapping[Actions, frozenset[str]] = MappingProxyType(
    {"refs": _POINT_TOOLS, "coordinates": _REF_TOOLS, "both": frozenset()}
)
# Without a target, `browser_type` types into the focused element.
_TYPE = "browser_type"
_TYPE_AT_FOCUS = "Type text into the focused field, at the caret"
_TYPE_ANYWHERE = f"{TOOL_POLICY[_TYPE].description}; without target at the caret of the focused field"

# With these a participant neither writes, drags nor names an address. Any other tool counts as writing.
_READING_TOOLS = frozenset(
    {
        "browser_click", "browser_find", "browser_handle_dialog", "browser_hover", "browser_mouse_click_xy",
        "browser_mouse_move_xy", "browser_mouse_wheel", "browser_navigate_back", SCROLL, "browser_snapshot",
        "browser_tabs", "browser_wait_for",
    }
)  # fmt: skip
_PRESSING_TOOLS = frozenset({"browser_click", "browser_handle_dialog", "browser_mouse_click_xy"})


def acts_on_page(tool: str) -> bool:
    """Whether a tool can operate what a page offers, such as a link. Looking, waiting and changing pages cannot."""
    return tool in _PRESSING_TOOLS or (tool not in _READING_TOOLS and tool != "browser_navigate")


def writes(tool: str, params: Mapping[str, Any]) -> bool:
    """Whether an action can put something of the participant's own into the browser: text, a key, an address, a choice.

    The middle button pastes.
    """
    return (
        tool not in _READING_TOOLS
        or not params.keys().isdisjoint({"url", "promptText"})
        or params.get("button") == "middle"
    )


def reaches_into_frame(params: Mapping[str, Any]) -> bool:
    """Whether an action names an element of a frame: its reference begins with the frame's."""
    parts = (params, *params.get("fields", ()))
    return any(str(part.get(key, "")).startswith("f") for part in parts for key in _TARGETS)


def offered_tools(server_tools: Sequence[ToolSpec], actions: Actions = "refs") -> tuple[ToolSpec, ...]:
    """The server's tools as participants see them, with our own: `browser_scroll`, `finish`, `browser_close`.

    A tool is left out if the policy does not name it, or if it requires a parameter that the policy does not allow.
    """
    scroll = {
        "direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
        "amount": {**_integer(1, MAX_SCROLL_PX), "description": f"Pixels, {DEFAULT_SCROLL_PX} if left out"},
        "target": {**_TARGET, "description": "Ref of what to scroll, the page if left out"},
        "element": _OUR_ELEMENT,
    }
    answer = {"answer": {"type": "string", "description": "What the task asks for, or what was done"}}
    tools = (
        *_allowed(server_tools),
        ToolSpec(name=SCROLL, description="Scroll", parameters=_object(scroll, "direction")),
        ToolSpec(name=FINISH, description="End the task", parameters=_object(answer)),
        ToolSpec(name=CLOSE, description="End the task without an answer", parameters=_object({})),
    )
    return tuple(_adapted(tool, actions) for tool in tools if tool.name not in _LEFT_OUT[actions])


def _adapted(tool: ToolSpec, actions: Actions) -> ToolSpec:
    """The tool as offered to participants that identify targets in this way."""
    schema, description = tool.parameters, tool.description
    if actions == "refs":
        return tool
    if tool.name == _TYPE:
        schema = {**schema, "required": [name for name in schema["required"] if name != "target"]}
        description = _TYPE_ANYWHERE if actions == "both" else _TYPE_AT_FOCUS
    if actions == "coordinates" and "target" in schema["properties"]:
        kept = {key: value for key, value in schema["properties"].items() if key != "target"}
        schema = {**schema, "properties": kept}
    return ToolSpec(name=tool.name, description=description, parameters=schema)


def _allowed(server_tools: Sequence[ToolSpec]) -> Iterator[ToolSpec]:
    by_name = {tool.name: tool.parameters for tool in server_tools}
    for name, policy in TOOL_POLICY.items():
        schema = by_name.get(name)
        if schema is None or not set(schema.get("required", ())) <= policy.params.keys():
            continue
        known = schema.get("properties", {})
        properties = {key: _property(known[key], changes) for key, changes in policy.params.items() if key in known}
        # The server marks some parameters as required although they have a default.
        required = {*policy.required, *(key for key in schema.get("required", ()) if "default" not in known[key])}
        parameters = _object({**properties, **policy.ours}, *(key for key in properties if key in required))
        yield ToolSpec(name=name, description=policy.description, parameters=parameters)


def _property(schema: Mapping[str, Any], changes: str | Mapping[str, Any]) -> dict[str, Any]:
    changes = {"description": changes} if isinstance(changes, str) else changes
    return {**{key: schema[key] for key in _KEPT_KEYWORDS if key in schema}, **changes}


class CheckedAction(Record):
    """A validated action: an offered tool, with parameters normalised to its schema."""

    tool: str
    params: dict[str, Any]


class Complaint(Record):
    """Why an action is refused, in one sentence for the participant."""

    text: str


class _Refused(ValueError):
    """Carries the sentence of a `Complaint`."""


def check_action(
    action: Action,
    tools: Sequence[ToolSpec],
    snapshot: Snapshot | None,
    *,
    open_tabs: int | None = None,
    viewport: Viewport | None = None,
) -> CheckedAction | Complaint:
    """The action normalised for the browser, or why it is refused.

    `tools` are the offered ones; `snapshot` is the judge's own of the current page, if there is one. With `open_tabs`,
    closing the only tab is refused, because an episode without a page would look like a browser fault. With `viewport`
    (width and height), points outside it are refused.
    """
    try:
        params = _checked(action, tools, snapshot)
        _check_meaning(action.tool, params)
        _check_pointer(action.tool, params, viewport)
        if open_tabs is not None and action.tool == "browser_tabs":
            _check_tabs(params["action"], open_tabs)
    except _Refused as refused:
        return Complaint(text=str(refused))
    return CheckedAction(tool=action.tool, params=params)


def _checked(action: Action, tools: Sequence[ToolSpec], snapshot: Snapshot | None) -> dict[str, Any]:
    name = action.tool
    spec = next((tool for tool in tools if tool.name == name), None)
    if spec is None:
        raise _Refused(f"There is no tool {excerpt(name)}; use one of {', '.join(tool.name for tool in tools)}.")
    params = _renamed(action.params)
    if isinstance(fields := params.get("fields"), list | dict):
        fields = fields if isinstance(fields, list) else [fields]
        params["fields"] = [_renamed_field(item) if isinstance(item, dict) else item for item in fields]
    # Before the schema validation, which takes long for many invalid items.
    for key, value in params.items():
        if isinstance(value, list) and len(value) > MAX_ITEMS:
            raise _Refused(f"{name}: {excerpt(key, 40)} has {len(value)} items; send at most {MAX_ITEMS}.")
    params = _coerced_object(params, spec.parameters)
    error = best_match(Draft202012Validator(spec.parameters).iter_errors(params))
    if error is not None:
        raise _Refused(f"{name}: {_sentence(error)}")
    for part in (params, *params.get("fields", ())):
        _bound(part, name)
        _resolve_targets(part, name, snapshot)
    return params


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    renamed = dict(params)
    for older, name in _OLDER_NAMES.items():
        if older in renamed:
            value = renamed.pop(older)
            if renamed.setdefault(name, value) != value:
                raise _Refused(f'"{older}" and "{name}" name different elements; send "{name}" only.')
    return renamed


def _renamed_field(item: Mapping[str, Any]) -> dict[str, Any]:
    """A form field. The server's schema also has `element` for it, which is used if the name is missing."""
    renamed = _renamed(item)
    element = renamed.pop("element", None)
    return renamed if element is None else {"name": element, **renamed}


def _coerced_object(params: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with unambiguous values converted to the schema's types, and optional nulls removed."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        key: _coerced(value, properties.get(key, {}))
        for key, value in params.items()
        if value is not None or key in required or key not in properties
    }


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    wanted = schema.get("type")
    match value:
        case str() if wanted in ("number", "integer") and _NUMBER.fullmatch(value.strip()):
            number = float(value)
            return int(number) if number.is_integer() else number
        case str() if wanted == "boolean" and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        # Before `int`, because a bool is an int.
        case bool() if wanted == "string":
            return "true" if value else "false"
        case int() | float() if wanted == "string":
            return str(value)
        case float() if wanted == "integer" and value.is_integer():
            return int(value)
        case str() | int() | float() | dict() | list() if wanted == "array":
            items = value if isinstance(value, list) else [value]
            return [_coerced(item, schema.get("items", {})) for item in items]
        case dict() if wanted == "object":
            return _coerced_object(value, schema)
    return value


def _sentence(error: ValidationError) -> str:
    """The validation error in our words: the library's message would repeat the participant's text in full."""
    where = ".".join(str(part) for part in error.absolute_path)
    allowed = error.validator_value
    value = _TYPES.get(type(error.instance)) or f"the number {error.instance}"
    match error.validator:
        case "required":
            missing = next(name for name in allowed if name not in error.instance)
            return f'the parameter "{missing}" is missing{f" in {where}" if where else ""}.'
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = next(name for name in error.instance if name not in known)
            return f"there is no parameter {excerpt(unknown, 40)}; known are: {', '.join(known) or 'none'}."
        case "type":
            return f'"{where}" must be of type {allowed}, not {value}.'
        case "enum":
            shown = excerpt(error.instance, 40) if isinstance(error.instance, str) else value
            return f'"{where}" must be one of {", ".join(map(str, allowed))}, not {shown}.'
        case "minimum" | "maximum":
            return f'"{where}" must be at {"least" if error.validator == "minimum" else "most"} {allowed}, not {value}.'
    return f'"{where}" does not fit the tool\'s parameters.'


def _bound(params: dict[str, Any], tool: str) -> None:
    for key, value in params.items():
        if isinstance(value, str) and key in _DESCRIPTIONS:
            # Descriptions have no effect, so a long one is not worth a refusal, which would cost a step.
            params[key] = clip(value, MAX_ELEMENT_CHARS)
            continue
        limit = _LIMITS.get(key, MAX_PARAM_CHARS)
        items = value if isinstance(value, list) else [value]
        longest = max((len(item) for item in items if isinstance(item, str)), default=0)
        if longest > limit:
            raise _Refused(f'{tool}: "{key}" has {longest} characters; send at most {limit}.')


def _resolve_targets(params: dict[str, Any], tool: str, snapshot: Snapshot | None) -> None:
    for key in filter(params.__contains__, _TARGETS):
        wrapped = _WRAPPED_REF.fullmatch(params[key])
        ref = wrapped[1] if wrapped else params[key]
        if REF.fullmatch(ref) is None:
            raise _Refused(
                f'{tool}: {excerpt(params[key])} as "{key}" is not an element reference; '
                "send the ref of an element, which the snapshot gives as [ref=…] (selectors are not accepted)."
            )
        if snapshot is None or snapshot.by_ref(ref) is None:
            raise _Refused(f'{tool}: there is no element {ref} in the current snapshot; send a ref as "{key}" that is.')
        params[key] = ref


def _check_meaning(tool: str, params: dict[str, Any]) -> None:
    """Rules that the schemas do not express."""
    match tool:
        case "browser_tabs":
            action = params["action"]
            if action == "select" and "index" not in params:
                raise _Refused('browser_tabs: "select" needs the "index" of a tab.')
            if action != "new":
                params.pop("url", None)
            if action not in ("select", "close"):
                params.pop("index", None)
        case "browser_wait_for" if not params.keys() & {"time", "text", "textGone"}:
            raise _Refused('browser_wait_for: send "time", "text" or "textGone".')
        case "browser_press_key" if not params["key"]:
            raise _Refused('browser_press_key: "key" is empty; send a key such as Enter.')
        case "browser_find" if not params["text"].strip():
            raise _Refused('browser_find: "text" is empty; send the text to look for.')
        case "browser_fill_form" if not params["fields"]:
            raise _Refused('browser_fill_form: "fields" is empty; send at least one field.')
        case "browser_scroll":
            params.setdefault("amount", DEFAULT_SCROLL_PX)
    if "url" in params:
        params["url"] = _address(tool, params["url"])


def _check_pointer(tool: str, params: dict[str, Any], viewport: Viewport | None) -> None:
    if tool in _POINT_TOOLS or tool == SCROLL or (tool == _TYPE and "target" not in params):
        # The server does not accept descriptions here, and they have no effect.
        for key in _DESCRIPTIONS:
            params.pop(key, None)
    if tool == "browser_mouse_wheel":
        if ("x" in params) != ("y" in params):
            raise _Refused(f'{tool}: send both "x" and "y", or neither.')
        if not (params.get("deltaX") or params.get("deltaY")):
            raise _Refused(f'{tool}: send "deltaX" or "deltaY", other than 0.')
    if viewport is not None and (point := point_outside(params, viewport)):
        size = f"{viewport[0]} by {viewport[1]} pixels"
        raise _Refused(f"{tool}: the point {point} is outside the viewport, which is {size}.")


def _check_tabs(action: str, open_tabs: int) -> None:
    if action == "close" and open_tabs < 2:
        raise _Refused("The only tab cannot be closed; call finish to end the task.")
    if action == "new" and open_tabs >= MAX_OPEN_TABS:
        raise _Refused(f"There are {open_tabs} open tabs; close one before you open another.")


def _address(tool: str, url: str) -> str:
    """The http(s) address; a bare host gets `https://`."""
    address = url.strip()
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise _Refused(
            f"{tool}: addresses of kind {excerpt(scheme[1], 20)} are not allowed; send an http or https one."
        )
    if not scheme and (address.startswith("//") or _BARE_HOST.fullmatch(address)):
        address = f"https://{address.removeprefix('//')}"
    try:
        parts = urlsplit(address)
        fits = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or _NOT_IN_URL.search(address) or re.search(r"\s", parts.netloc):
        raise _Refused(f"{tool}: {excerpt(url)} is not a web address; send a whole one, such as https://example.com/.")
    if "@" in parts.netloc:
        raise _Refused(f"{tool}: an address must not hold a user name; send {excerpt('https://host/path')} only.")
    return address
