"""The structure of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/) as a JSON schema: what viewers rely on."""

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
SIZE = {"type": "integer", "minimum": -1}
TIME = {"type": "number", "minimum": 0}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object with these keys; others must begin with an underscore."""
    return {
        "type": "object",
        "properties": {**required, **optional, "comment": TEXT},
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
        "required": list(required),
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_PAIRS = _list(_object({"name": TEXT, "value": TEXT}))
_COOKIES = _list(
    _object(
        {"name": TEXT, "value": TEXT},
        path=TEXT,
        domain=TEXT,
        expires=TEXT,
        httpOnly={"type": "boolean"},
        secure={"type": "boolean"},
    )
)
_PARAMS = _list(_object({"name": TEXT}, value=TEXT, fileName=TEXT, contentType=TEXT))
_MESSAGE = {"httpVersion": TEXT, "cookies": _COOKIES, "headers": _PAIRS, "headersSize": SIZE, "bodySize": SIZE}
_REQUEST = _object(
    {**_MESSAGE, "method": TEXT, "url": {"type": "string", "pattern": "^(https?|wss?)://"}, "queryString": _PAIRS},
    postData=_object({"mimeType": TEXT, "params": _PARAMS}, text=TEXT),
)
_CONTENT = _object({"size": {"type": "integer", "minimum": 0}, "mimeType": TEXT}, text=TEXT, encoding=TEXT)
_RESPONSE = _object(
    {
        **_MESSAGE,
        "status": {"type": "integer", "minimum": 0},
        "statusText": TEXT,
        "content": _CONTENT,
        "redirectURL": TEXT,
    }
)
_ENTRY = _object(
    {
        "startedDateTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
        "time": TIME,
        "request": _REQUEST,
        "response": _RESPONSE,
        "cache": _object({}),
        "timings": _object({"send": TIME, "wait": TIME, "receive": TIME}),
    }
)
_PROGRAM = _object({"name": TEXT, "version": TEXT})
HAR: dict[str, Any] = _object(
    {"log": _object({"version": {"const": "1.2"}, "creator": _PROGRAM, "entries": _list(_ENTRY)}, browser=_PROGRAM)}
)
