"""Checks what a participant wants done before the browser hears of it. Pure.

Elements are named by references of the judge's own snapshot, so that what happened can be told from it. The older
names (`ref`, `startRef`, `endRef`) and unambiguous spellings (`"1"` for 1, one value for a list of one) are understood.
Every refusal is one sentence that says what was wrong and what to send instead, with foreign text quoted and bounded.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError, best_match  # type: ignore[import-untyped]

from judge.browser.tools import DEFAULT_SCROLL_PX, SCROLL, TOOL_POLICY, offered_tools
from shared.models import Action, Record, ToolSpec
from shared.protocol import MAX_URL_CHARS
from shared.snapshot import REF, Snapshot
from shared.text import clip, excerpt

__all__ = ["TOOL_POLICY", "CheckedAction", "Complaint", "check_action", "offered_tools"]

MAX_TEXT_CHARS = 10_000
MAX_KEY_CHARS = 40
MAX_PARAM_CHARS = 2_000
MAX_ELEMENT_CHARS = 200
MAX_ITEMS = 50
MAX_OPEN_TABS = 20

_OLDER_NAMES = {"ref": "target", "startRef": "startTarget", "endRef": "endTarget"}
_TARGETS = ("target", "startTarget", "endTarget")
_IN_WORDS = ("element", "startElement", "endElement", "name")
_LIMITS = {"text": MAX_TEXT_CHARS, "answer": MAX_TEXT_CHARS, "url": MAX_URL_CHARS, "key": MAX_KEY_CHARS}
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_DRESSED_REF = re.compile(r"\s*\[?(?:ref=|@)?([^\s\[\]]+)\]?\s*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?![0-9])")
_BARE_HOST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?(?:[/?#].*)?")
_NOT_IN_URL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_TYPES = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


class CheckedAction(Record):
    """An action that may go to the browser: a tool on offer, parameters normalised to its schema."""

    tool: str
    params: dict[str, Any]


class Complaint(Record):
    """Why an action is refused, in one sentence for the participant."""

    text: str


class _Refused(ValueError):
    """Carries the sentence of a `Complaint`."""


def check_action(
    action: Action, tools: Sequence[ToolSpec], snapshot: Snapshot | None, *, open_tabs: int | None = None
) -> CheckedAction | Complaint:
    """The action normalised for the browser, or why it is refused.

    `tools` are those on offer; `snapshot` is the judge's own of the current page, `None` when there is none. With
    `open_tabs` given, closing the only tab is refused: an episode without a page would look like a browser fault.
    """
    try:
        params = _checked(action, tools, snapshot)
        if open_tabs is not None and open_tabs < 2 and action.tool == "browser_tabs" and params["action"] == "close":
            raise _Refused("The only tab cannot be closed; call finish to end the task.")
        if open_tabs is not None and open_tabs >= MAX_OPEN_TABS and params.get("action") == "new":
            raise _Refused(f"There are {open_tabs} open tabs; close one before you open another.")
    except _Refused as refused:
        return Complaint(text=str(refused))
    return CheckedAction(tool=action.tool, params=params)


def _checked(action: Action, tools: Sequence[ToolSpec], snapshot: Snapshot | None) -> dict[str, Any]:
    spec = next((tool for tool in tools if tool.name == action.tool), None)
    if spec is None:
        raise _Refused(f"There is no tool {excerpt(action.tool)}; use one of {', '.join(tool.name for tool in tools)}.")
    params = _renamed(action.params)
    fields = params.get("fields")
    if isinstance(fields, list | dict):
        fields = fields if isinstance(fields, list) else [fields]
        params["fields"] = [_renamed_field(item) if isinstance(item, dict) else item for item in fields]
    _check_counts(params, spec.name)
    params = _coerced_object(params, spec.parameters)
    _validate(params, spec)
    _check_lengths(params, spec.name)
    _resolve_targets(params, spec.name, snapshot)
    for item in params.get("fields", ()):
        _check_lengths(item, spec.name)
        _resolve_targets(item, spec.name, snapshot)
    _check_meaning(spec.name, params)
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
    """A form field with `element`, its words in the server's schema, taken for the name where that is missing."""
    renamed = _renamed(item)
    element = renamed.pop("element", None)
    return renamed if element is None else {"name": element, **renamed}


def _coerced_object(params: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with unambiguous spellings brought to the schema's types, and optional nulls left out."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        key: _coerced(value, properties[key]) if key in properties else value
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
        case bool() if wanted == "string":
            return "true" if value else "false"
        case int() | float() if wanted == "string":
            return str(value)
        case list() if wanted == "array":
            return [_coerced(item, schema.get("items", {})) for item in value]
        case str() | int() | float() | dict() if wanted == "array":
            return [_coerced(value, schema.get("items", {}))]
        case dict() if wanted == "object":
            return _coerced_object(value, schema)
        case float() if wanted == "integer" and value.is_integer():
            return int(value)
    return value


def _validate(params: dict[str, Any], spec: ToolSpec) -> None:
    error = best_match(Draft202012Validator(spec.parameters).iter_errors(params))
    if error is not None:
        raise _Refused(f"{spec.name}: {_sentence(error)}")


def _sentence(error: ValidationError) -> str:
    """The schema's objection in our words: the library's own would repeat the participant's text without a bound."""
    where = ".".join(str(part) for part in error.absolute_path)
    allowed = error.validator_value
    value = _TYPES.get(type(error.instance)) or f"the number {error.instance}"
    match error.validator:
        case "required":
            missing = [name for name in allowed if name not in error.instance]
            return f'the parameter "{missing[0]}" is missing{f" in {where}" if where else ""}.'
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


def _check_counts(params: dict[str, Any], tool: str) -> None:
    """Before the schema, which takes its time for each item that it finds fault with."""
    for key, value in params.items():
        if isinstance(value, list) and len(value) > MAX_ITEMS:
            raise _Refused(f"{tool}: {excerpt(key, 40)} has {len(value)} items; send at most {MAX_ITEMS}.")


def _check_lengths(params: dict[str, Any], tool: str) -> None:
    for key, value in params.items():
        if isinstance(value, str) and key in _IN_WORDS:
            params[key] = clip(value, MAX_ELEMENT_CHARS)
            continue
        limit = _LIMITS.get(key, MAX_PARAM_CHARS)
        longest = max(
            (len(item) for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)), default=0
        )
        if longest > limit:
            raise _Refused(f'{tool}: "{key}" has {longest} characters; send at most {limit}.')


def _resolve_targets(params: dict[str, Any], tool: str, snapshot: Snapshot | None) -> None:
    for key in _TARGETS:
        if key not in params:
            continue
        dressed = _DRESSED_REF.fullmatch(params[key])
        ref = dressed[1] if dressed else params[key]
        if REF.fullmatch(ref) is None:
            raise _Refused(
                f'{tool}: {excerpt(params[key])} as "{key}" is no element reference; '
                "send the ref of an element, which the snapshot gives as [ref=…] (selectors are not accepted)."
            )
        if snapshot is None or snapshot.by_ref(ref) is None:
            raise _Refused(f'{tool}: there is no element {ref} in the current snapshot; send a ref as "{key}" that is.')
        params[key] = ref


def _check_meaning(tool: str, params: dict[str, Any]) -> None:
    """What the schemas do not say."""
    if tool == "browser_tabs":
        if params["action"] == "select" and "index" not in params:
            raise _Refused('browser_tabs: "select" needs the "index" of a tab.')
        for key, action in (("url", "new"), ("index", "select")):
            if params["action"] != action and not (key == "index" and params["action"] == "close"):
                params.pop(key, None)
    if tool == "browser_wait_for" and not params.keys() & {"time", "text", "textGone"}:
        raise _Refused('browser_wait_for: send "time", "text" or "textGone".')
    if tool == "browser_press_key" and not params["key"]:
        raise _Refused('browser_press_key: "key" is empty; send a key such as Enter.')
    if tool == "browser_find" and not params["text"].strip():
        raise _Refused('browser_find: "text" is empty; send the text to look for.')
    if tool == "browser_fill_form" and not params["fields"]:
        raise _Refused('browser_fill_form: "fields" is empty; send at least one field.')
    if tool == SCROLL:
        params.setdefault("amount", DEFAULT_SCROLL_PX)
    if "url" in params:
        params["url"] = _address(tool, params["url"])


def _address(tool: str, url: str) -> str:
    """The http(s) address; a bare host gets `https://`."""
    address = url.strip()
    scheme = _SCHEME.match(address)
    if scheme is None:
        if address.startswith("//"):
            address = f"https:{address}"
        elif _BARE_HOST.fullmatch(address):
            address = f"https://{address}"
    elif scheme[1].lower() not in ("http", "https"):
        raise _Refused(
            f"{tool}: addresses of kind {excerpt(scheme[1], 20)} are not allowed; send an http or https one."
        )
    try:
        parts = urlsplit(address)
        fits = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or _NOT_IN_URL.search(address) or re.search(r"\s", parts.netloc):
        raise _Refused(f"{tool}: {excerpt(url)} is no web address; send a whole one, such as https://example.com/.")
    if "@" in parts.netloc:
        raise _Refused(f"{tool}: an address must not hold a user name; send {excerpt('https://host/path')} only.")
    return address
