"""Which tools a participant is offered, and the validation of its actions. Pure. The tools: `judge.records.tools`.

Elements are identified by references of the judge's snapshot, or by screenshot coordinates (`config.actions`), so
that the record can say what was acted on. The older names (`ref`, `startRef`, `endRef`) and unambiguous variants (`"1"`
for 1, one value for a list of one) are accepted. Every refusal is one sentence that says what was wrong and what to
send instead, with foreign text quoted and bounded.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from judge.browser.points import Viewport, point_outside
from judge.config import ActionMode
from judge.records.files import TaskFile
from judge.records.tools import (
    ASK_USER,
    DESCRIPTIONS,
    FILE_DROP,
    FILE_NAMES,
    FILE_UPLOAD,
    PERMISSION,
    TARGETS,
    Tool,
    tool_of,
    tools,
)
from shared.models import Action, Record, ToolSpec
from shared.protocol import MAX_URL_CHARS, OLDER_NAMES
from shared.snapshot import REF, Snapshot
from shared.strict_json import parse_json
from shared.text import clip, excerpt

MAX_TEXT_CHARS = 10_000
MAX_KEY_CHARS = 40
MAX_PARAM_CHARS = 2_000
MAX_ELEMENT_CHARS = 200
MAX_ITEMS = 50

_KEPT_KEYWORDS = ("type", "enum", "items", "minimum", "maximum")
_LIMITS = {
    "text": MAX_TEXT_CHARS,
    "answer": MAX_TEXT_CHARS,
    "question": MAX_TEXT_CHARS,
    "url": MAX_URL_CHARS,
    "key": MAX_KEY_CHARS,
}
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


def offered_tools(server_tools: Sequence[ToolSpec], actions: ActionMode = "refs") -> tuple[ToolSpec, ...]:
    """The server's tools as participants see them, with our own: `browser_scroll`, `finish`, `browser_close`.

    A tool is left out if the table does not have it, or if it requires a parameter that the table does not allow.
    """
    schemas = {spec.name: spec.parameters for spec in server_tools}
    candidates = ((name, tool, _parameters(tool, schemas.get(name))) for name, tool in tools().items())
    return tuple(
        _adapted(ToolSpec(name=name, description=tool.offered, parameters=parameters), tool, actions)
        for name, tool, parameters in candidates
        if parameters is not None and not _is_left_out(tool, actions)
    )


def spec_of(name: str, /, **changes: Mapping[str, Any] | None) -> ToolSpec:
    """A tool of the judge's own as it is offered, with these changes to its parameters (`limited`)."""
    tool = tool_of(name)
    return limited(ToolSpec(name=name, description=tool.offered, parameters=_parameters(tool, None) or {}), changes)


def asking_tool(permissions: Sequence[str] = ()) -> ToolSpec:
    """`ask_user`, which is offered for tasks that have answers of a user; a call may name one of the `permissions`."""
    if not permissions:
        return spec_of(ASK_USER)
    about = "What you ask to be permitted; nothing is permitted without it"
    return spec_of(ASK_USER, **{PERMISSION: {"type": "string", "enum": [*permissions], "description": about}})


def file_tools(files: Sequence[TaskFile], actions: ActionMode = "refs") -> tuple[ToolSpec, ...]:
    """The tools offered for a task with these files, which they name; none without files."""
    about = f"Names of files, without folders. There are: {', '.join(each.about for each in files)}"
    names = {"items": {"type": "string", "enum": [each.name for each in files]}, "description": about}
    tool_names = (FILE_UPLOAD, FILE_DROP) if files else ()
    return tuple(
        spec_of(name, **{FILE_NAMES: names})
        for name in tool_names
        if not (tool_of(name).needs_element and actions == "coordinates")
    )


def limited(spec: ToolSpec, changes: Mapping[str, Mapping[str, Any] | None]) -> ToolSpec:
    """The tool with changes and additions to its parameters, without those changed to `None`."""
    if not changes:
        return spec
    properties = spec.parameters["properties"]
    properties = {
        **properties,
        **{name: {**properties.get(name, {}), **(each or {})} for name, each in changes.items()},
    }
    properties = {name: schema for name, schema in properties.items() if changes.get(name, {}) is not None}
    return spec.model_copy(update={"parameters": {**spec.parameters, "properties": properties}})


def _is_left_out(tool: Tool, actions: ActionMode) -> bool:
    """Whether a tool is unusable for participants that identify targets in this way."""
    if tool.is_asked_for:
        return True
    return bool(tool.points) if actions == "refs" else tool.needs_element and actions == "coordinates"


def _parameters(tool: Tool, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The schema as offered; `None` if the server lacks the tool, or requires what the table does not allow."""
    if not tool.by_server:
        schema = {}
    if schema is None or not set(schema.get("required", ())) <= tool.params.keys():
        return None
    known = schema.get("properties", {})
    allowed = {key: _property(known[key], changes) for key, changes in tool.params.items() if key in known}
    properties = {**allowed, **tool.ours}
    # The server marks some parameters as required although they have a default.
    required = {*tool.required, *(key for key in schema.get("required", ()) if "default" not in known[key])}
    offered: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required_names = [key for key in properties if key in required]
    return {**offered, "required": required_names} if required_names else offered


def _adapted(spec: ToolSpec, tool: Tool, actions: ActionMode) -> ToolSpec:
    """The tool as offered to participants that identify targets in this way."""
    schema, description = spec.parameters, spec.description
    if actions == "refs":
        return spec
    if tool.at_focus:
        schema = {**schema, "required": [name for name in schema["required"] if name != "target"]}
        anywhere = f"{tool.offered}; without target at the caret of the focused field"
        description = anywhere if actions == "both" else tool.at_focus
    if actions == "coordinates" and "target" in schema["properties"]:
        properties = {key: value for key, value in schema["properties"].items() if key != "target"}
        schema = {**schema, "properties": properties}
    return ToolSpec(name=spec.name, description=description, parameters=schema)


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


class _RefusedCall(ValueError):
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

    `tools` are the offered ones; `snapshot` is the judge's of the current page, if there is one. With `open_tabs`,
    closing the only tab is refused, because an episode without a page would look like a browser fault. With `viewport`
    (width and height), points outside it are refused.
    """
    try:
        params = _checked(action, tools, snapshot)
        _check_meaning(action.tool, params, open_tabs, viewport)
    except _RefusedCall as refusal:
        return Complaint(text=str(refusal))
    return CheckedAction(tool=action.tool, params=params)


def _checked(action: Action, tools: Sequence[ToolSpec], snapshot: Snapshot | None) -> dict[str, Any]:
    name = action.tool
    spec = next((tool for tool in tools if tool.name == name), None)
    if spec is None:
        raise _RefusedCall(f"There is no tool {excerpt(name)}; use one of {', '.join(tool.name for tool in tools)}.")
    params = _renamed(action.params)
    if isinstance(fields := params.get("fields"), list | dict):
        fields = fields if isinstance(fields, list) else [fields]
        params["fields"] = [_renamed_field(item) if isinstance(item, dict) else item for item in fields]
    # Before the schema validation, which takes long for many invalid items.
    for key, value in params.items():
        if isinstance(value, list) and len(value) > MAX_ITEMS:
            raise _RefusedCall(f"{name}: {excerpt(key, 40)} has {len(value)} items; send at most {MAX_ITEMS}.")
    params = _coerced_object(params, spec.parameters)
    error = best_match(Draft202012Validator(spec.parameters).iter_errors(params))
    if error is not None:
        raise _RefusedCall(f"{name}: {_sentence(error)}")
    for part in (params, *params.get("fields", ())):
        _bound(part, name)
        _resolve_targets(part, name, snapshot)
    return params


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    renamed = dict(params)
    for older, name in OLDER_NAMES.items():
        if older in renamed:
            value = renamed.pop(older)
            if renamed.setdefault(name, value) != value:
                raise _RefusedCall(f'"{older}" and "{name}" name different elements; send "{name}" only.')
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
    expected_type = schema.get("type")
    match value:
        case str() if expected_type in ("number", "integer") and _NUMBER.fullmatch(value.strip()):
            number = float(value)
            return int(number) if number.is_integer() else number
        case str() if expected_type == "boolean" and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        # Before `int`, because a bool is an int.
        case bool() if expected_type == "string":
            return "true" if value else "false"
        case int() | float() if expected_type == "string":
            return str(value)
        case float() if expected_type == "integer" and value.is_integer():
            return int(value)
        case str() | int() | float() | dict() | list() if expected_type == "array":
            items = value if isinstance(value, list) else [value]
            return [_coerced(item, schema.get("items", {})) for item in items]
        case dict() if expected_type == "object":
            return _coerced_object(value, schema)
        case str() if expected_type == "object" and value.lstrip().startswith("{"):
            # As some models' function calls have their arguments.
            with suppress(ValueError):
                return _coerced_object(parse_json(value), schema)
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
        case "enum" if where.partition(".")[0] == FILE_NAMES:
            # A path, too, is only a name not declared.
            return f"there is no file {excerpt(error.instance, 60)}; send names of: {', '.join(allowed)}."
        case "enum":
            value_text = excerpt(error.instance, 40) if isinstance(error.instance, str) else value
            return f'"{where}" must be one of {", ".join(map(str, allowed))}, not {value_text}.'
        case "minimum" | "maximum":
            return f'"{where}" must be at {"least" if error.validator == "minimum" else "most"} {allowed}, not {value}.'
    return f'"{where}" does not fit the tool\'s parameters.'


def _bound(params: dict[str, Any], tool: str) -> None:
    for key, value in params.items():
        if isinstance(value, str) and key in DESCRIPTIONS:
            # Descriptions have no effect, so a long one is not worth a refusal, which would cost a step.
            params[key] = clip(value, MAX_ELEMENT_CHARS)
            continue
        limit = _LIMITS.get(key, MAX_PARAM_CHARS)
        items = value if isinstance(value, list) else [value]
        longest = max((len(item) for item in items if isinstance(item, str)), default=0)
        if longest > limit:
            raise _RefusedCall(f'{tool}: "{key}" has {longest} characters; send at most {limit}.')


def _resolve_targets(params: dict[str, Any], tool: str, snapshot: Snapshot | None) -> None:
    for key in filter(params.__contains__, TARGETS):
        wrapped = _WRAPPED_REF.fullmatch(params[key])
        ref = wrapped[1] if wrapped else params[key]
        if REF.fullmatch(ref) is None:
            raise _RefusedCall(
                f'{tool}: {excerpt(params[key])} as "{key}" is not an element reference; '
                "send the ref of an element, which the snapshot gives as [ref=…] (selectors are not accepted)."
            )
        if snapshot is None or snapshot.by_ref(ref) is None:
            raise _RefusedCall(
                f'{tool}: there is no element {ref} in the current snapshot; send a ref as "{key}" that is.'
            )
        params[key] = ref


def _check_meaning(name: str, params: dict[str, Any], open_tabs: int | None, viewport: Viewport | None) -> None:
    """Rules that the schemas do not express."""
    tool = tool_of(name)
    if refusal := tool.rule(params, open_tabs):
        raise _RefusedCall(refusal)
    if "url" in params:
        params["url"] = _address(name, params["url"])
    # The server does not accept descriptions here, and they have no effect.
    for key in DESCRIPTIONS:
        if (key in tool.ours and key not in tool.required) or (tool.at_focus and "target" not in params):
            params.pop(key, None)
    if viewport is not None and (point := point_outside(params, viewport)):
        size = f"{viewport[0]} by {viewport[1]} pixels"
        raise _RefusedCall(f"{name}: the point {point} is outside the viewport, which is {size}.")


def _address(tool: str, url: str) -> str:
    """The http(s) address; a bare host gets `https://`."""
    address = url.strip()
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise _RefusedCall(
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
        raise _RefusedCall(
            f"{tool}: {excerpt(url)} is not a web address; send a whole one, such as https://example.com/."
        )
    if "@" in parts.netloc:
        raise _RefusedCall(f"{tool}: an address must not hold a user name; send {excerpt('https://host/path')} only.")
    return address
