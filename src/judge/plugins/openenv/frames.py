"""The frames of OpenEnv's WebSocket: what a client asks, and the texts of the answers. Pure.

A client sends `{"type": "reset" | "step" | "state" | "close" | "mcp", "data": …}` and gets one answer for each, except
for `close`. An error has a code; `VALIDATION_ERROR` is for the arguments of `reset` and for the frame itself only.
Whatever stands in the `data` of a `step` is the policy's reply, however odd: trainers leave an episode with an error
out, so a policy that could cause an error would learn to escape a reward of 0.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.environment.session import SessionState
from shared.protocol import TOOL_NAME
from shared.text import excerpt, without_surrogates

# A reply has at most 200,000 characters that count, and a client may write each of them as an escape of 12 bytes.
MAX_FRAME_BYTES = 16_000_000
MAX_EPISODE_ID_CHARS = 255
MAX_NAME_CHARS = 200

Code = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]
_METHOD_NOT_FOUND = -32601
_INVALID_REQUEST = -32600
# A step whose JSON this Python cannot read, which the client's could: its action is a reply that cannot be read.
_STEP = re.compile(r'\s*\{\s*"type"\s*:\s*"step"\s*,')


class Reset(BaseModel):
    """The arguments of `reset`. Clients add others, such as the columns of a data set, which are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_id: Annotated[str, Field(max_length=MAX_NAME_CHARS)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    episode_id: Annotated[str, Field(max_length=MAX_EPISODE_ID_CHARS)] | None = None
    split: Annotated[str, Field(max_length=MAX_NAME_CHARS)] | None = None
    index: Annotated[int, Field(ge=0)] | None = None


class PolicyReply(NamedTuple):
    """A policy's reply: a text, or a tool call."""

    reply: str | Mapping[str, Any]


class Ask(NamedTuple):
    """A frame without arguments."""

    what: Literal["state", "close"]


class Rpc(NamedTuple):
    """A JSON-RPC request, which no tool of this server answers."""

    request: Any


class Refused(NamedTuple):
    """A frame that cannot be understood, with the answer to it."""

    answer: str


class Picture(NamedTuple):
    """A screenshot."""

    data: bytes
    media_type: str


def read_frame(text: str) -> Reset | PolicyReply | Ask | Rpc | Refused:
    """What a client asks in a frame."""
    try:
        return _message_in(json.loads(text))
    # Too deep, or a number too long: the limits of this Python.
    except (ValueError, RecursionError) as error:
        if _STEP.match(text):
            return PolicyReply(text)
        return Refused(error_frame("INVALID_JSON", f"invalid JSON: {_reason(error)}"))


def _message_in(frame: Any) -> Reset | PolicyReply | Ask | Rpc | Refused:
    if not isinstance(frame, dict):
        return _invalid((), f"a frame is a JSON object, not {_kind(frame)}")
    kind = frame.get("type")
    if not isinstance(kind, str) or kind not in ("reset", "step", "state", "close", "mcp"):
        type_text = excerpt(kind) if isinstance(kind, str) else _kind(kind)
        return Refused(error_frame("UNKNOWN_TYPE", f"unknown message type: {type_text}"))
    if unknown := next((name for name in frame if name not in ("type", "data")), None):
        return _invalid((unknown,), f"unknown key {excerpt(unknown)} beside type and data")
    data = frame.get("data")
    if kind == "step":
        return PolicyReply(_reply(data)) if "data" in frame else _invalid(("data",), "a step has an action as its data")
    if kind == "mcp":
        return Rpc(data)
    if kind == "reset":
        return _reset({} if data is None else data)
    return Ask("state" if kind == "state" else "close")


def _reset(data: Any) -> Reset | Refused:
    if not isinstance(data, dict):
        return _invalid(("data",), f"the arguments of reset are a JSON object, not {_kind(data)}")
    try:
        reset = Reset.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [{**each, "loc": ["data", *each["loc"]]} for each in details]
        return Refused(error_frame("VALIDATION_ERROR", "the arguments of reset are not valid", errors=errors))
    if reset.index is None and reset.split is not None:
        return _invalid(("data", "index"), "split needs the index of a task")
    if reset.task_id is not None and reset.index is not None:
        return _invalid(("data", "index"), "task_id and index exclude each other")
    return reset


def _reply(action: Any) -> str | Mapping[str, Any]:
    """The policy's reply in the data of a step.

    Clients put a reply other than a JSON object into the action's one required field, so a `tool` that cannot be the
    name of a tool is the reply itself.
    """
    if isinstance(action, str):
        return action
    if not isinstance(action, dict):
        return json.dumps(action)
    if action.keys() == {"tool"}:
        tool = action["tool"]
        if not isinstance(tool, str):
            return json.dumps(tool)
        if not TOOL_NAME.fullmatch(tool.strip()):
            return tool
    # So that nothing that cannot be written again goes further.
    json.dumps(action)
    return action


def observation_frame(
    fields: Mapping[str, Any], *, reward: float | None, done: bool, picture: Picture | None = None
) -> str:
    """An observation: what is shown of the page, and its screenshot."""
    data = dict(fields)
    if picture is not None:
        data |= {"screenshot": base64.b64encode(picture.data).decode(), "media_type": picture.media_type}
    return _frame("observation", {"observation": data, "reward": reward, "done": done})


def observation_schema(*, as_message: bool, has_pictures: bool) -> dict[str, Any]:
    """The JSON schema of what `observation_frame` sends as `observation`."""
    text = {"type": "string", "description": "The page and the tools, as WABE's participants receive them."}
    message = {"type": ["object", "null"], "description": "The same as values."}
    properties: dict[str, Any] = {"message": message} if as_message else {"text": text}
    required = list(properties)
    if has_pictures:
        encoded = {"type": "string", "contentEncoding": "base64", "description": "The page's screenshot."}
        properties |= {"screenshot": encoded, "media_type": {"type": "string"}}
    return {"title": "PageObservation", "type": "object", "properties": properties, "required": required}


def state_frame(state: SessionState) -> str:
    """The answer to `state`."""
    return _frame("state", state.model_dump(mode="json"))


def state_schema() -> dict[str, Any]:
    """The JSON schema of what `state_frame` sends."""
    return SessionState.model_json_schema(mode="serialization")


def rpc_frame(request: Any) -> str:
    """The answer to an MCP request over the socket."""
    return _frame("mcp", rpc_refusal(request))


def rpc_refusal(request: Any) -> dict[str, Any]:
    """The JSON-RPC answer to any request: tools are called with `step`."""
    is_request = (
        isinstance(request, dict) and request.get("jsonrpc") == "2.0" and isinstance(request.get("method"), str)
    )
    code, words = (_METHOD_NOT_FOUND, "this server has no MCP tools: send actions as step")
    if not is_request:
        code, words = (_INVALID_REQUEST, "not a JSON-RPC request; this server has no MCP tools")
    request_id = request.get("id") if isinstance(request, dict) else None
    known = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": words}}


def error_frame(code: Code, message: str, **more: Any) -> str:
    """An error. Clients show the message and the code only."""
    return _frame("error", {"message": message, "code": code, **more})


def _invalid(place: Sequence[str], message: str) -> Refused:
    errors = [{"type": "value_error", "loc": list(place), "msg": message}]
    return Refused(error_frame("VALIDATION_ERROR", message, errors=errors))


def _frame(kind: str, data: Mapping[str, Any]) -> str:
    return without_surrogates(json.dumps({"type": kind, "data": data}, ensure_ascii=False, allow_nan=False))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names[type(value)]


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
