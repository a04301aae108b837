"""Refuses requests that the SDK would answer with an internal error, a traceback or a broken response.

These are texts with half a surrogate pair, which cannot be encoded as UTF-8, numbers that JSON does not allow or that
are too large, and ids that JSON-RPC does not allow. Text that is not JSON is left to the SDK, which handles it
properly.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from shared.fields import as_mapping, as_mappings
from shared.strict_json import parse_json
from shared.text import excerpt

INVALID_REQUEST = -32600
_MAX_ID_CHARS = 1_000
# Longer integers are not read alike by all JSON readers, and protobuf has none.
_MAX_INTEGER = 2**63
_MAX_LENGTH_CHARS = 9
_MAX_VERSION_CHARS = 20
_LONG_VERSION = re.compile(rb"(?i)\ba2a-version=[^&]{%d}" % (_MAX_VERSION_CHARS + 1))
_LONG_NUMBER = re.compile(rb"(?i)\b(?:history|page)_?(?:length|size)=[^&]{10}")
# Any of the escapes of which a surrogate pair is made.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def refusal_of_head(path: str, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> JSONResponse | None:
    """The answer to a request whose protocol version or query cannot be used; `None` if the SDK can handle it."""
    versions = [value for name, value in headers if name == b"a2a-version"]
    if any(len(value) > _MAX_VERSION_CHARS for value in versions) or _LONG_VERSION.search(query):
        return _answer(path, None, f"the A2A version is longer than {_MAX_VERSION_CHARS} characters")
    if _LONG_NUMBER.search(query):
        return _answer(path, None, "a number of the query has more than 9 digits")
    return None


def refusal_of(path: str, body: bytes) -> JSONResponse | None:
    """The answer to a request whose body cannot be used; `None` if the SDK can handle it. Takes time for a large body.

    At `/` the body is JSON-RPC, elsewhere HTTP+JSON.
    """
    if not body.strip():
        return None
    request_id, problem = None, ""
    try:
        document = parse_json(body.decode())
        problem = _problem_of(document, may_have_halves=_HALF.search(body) is not None)
        if path == "/" and isinstance(document, dict):
            request_id = document.get("id")
            id_problem = _problem_of_id(request_id)
            request_id = None if id_problem else request_id
            problem = id_problem or problem or _problem_of_params(as_mapping(document.get("params")))
    except json.JSONDecodeError:
        return None
    except UnicodeDecodeError:
        problem = "the body is not UTF-8"
    except ValueError as error:
        problem = f"the body cannot be read: {error}"
    if not problem:
        return None
    # An id with half a surrogate pair could not be sent back.
    return _answer(path, request_id, problem)


def _problem_of_id(value: Any) -> str:
    if value is None or (type(value) is int and -_MAX_INTEGER <= value < _MAX_INTEGER):
        return ""
    if not isinstance(value, str):
        return "id must be a string, an integer of at most 64 bits, or null"
    if _SURROGATE.search(value):
        return f"id {excerpt(value)} contains half a surrogate pair"
    return f"id is longer than {_MAX_ID_CHARS} characters" if len(value) > _MAX_ID_CHARS else ""


def _problem_of_params(params: Mapping[str, Any]) -> str:
    """Values of protocol 0.3 that the SDK checks only while it works on the request."""
    for place in (params, as_mapping(params.get("configuration"))):
        length = place.get("historyLength")
        # The SDK takes a number in a string as well.
        if isinstance(length, int | str) and len(str(length)) > _MAX_LENGTH_CHARS:
            return f"historyLength: {excerpt(str(length), 30)} is too large"
    for part in as_mappings(as_mapping(params.get("message")).get("parts")):
        content = as_mapping(part.get("file")).get("bytes")
        if isinstance(content, str):
            try:
                base64.b64decode(content)
            except ValueError:
                return f"a file's bytes, {excerpt(content)}, are not Base64"
    return ""


def _problem_of(document: Any, *, may_have_halves: bool) -> str:
    level = [document]
    while level:
        value = level.pop()
        texts: tuple[Any, ...] = (value,)
        if isinstance(value, dict):
            texts = tuple(value)
            level += value.values()
        elif isinstance(value, list):
            level += value
        elif type(value) is int and not -_MAX_INTEGER <= value < 2 * _MAX_INTEGER:
            return f"the number {excerpt(str(value), 30)} has more than 64 bits"
        if may_have_halves:
            for text in texts:
                if isinstance(text, str) and _SURROGATE.search(text):
                    return f"the text {excerpt(text)} contains half a surrogate pair"
    return ""


def _answer(path: str, request_id: str | int | None, problem: str) -> JSONResponse:
    if path == "/":
        error: dict[str, Any] = {"code": INVALID_REQUEST, "message": f"Invalid request: {problem}"}
        return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, HTTPStatus.BAD_REQUEST)
    error = {"code": HTTPStatus.BAD_REQUEST, "status": "INVALID_ARGUMENT", "message": problem}
    return JSONResponse({"error": error}, HTTPStatus.BAD_REQUEST)
