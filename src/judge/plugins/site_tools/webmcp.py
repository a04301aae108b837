"""The tools that a site registers in its pages (WebMCP): which are offered, and what a call of one returns.

The MCP server's way to collect them is not used (`--no-webmcp`): it writes the page's text unescaped before the
snapshot, where a description could imitate an element; it includes the tools of frames; and one schema that is nested
too deeply hides all others. `site_tools.js` asks the browser itself, in the judge's isolated world, and bounds what
leaves the page.

Names, descriptions, schemas and results are the site's text: data for the participant, never evidence. A tool is listed
only while the top document is on the task's sites, and only a listed tool can be called.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from judge.browser.own_tools import OwnTool, RunCode
from judge.browser.responses import ToolResponse, modal_state
from judge.records.sites import Site
from shared.models import Page, Record, ToolSpec
from shared.strict_json import parse_json
from shared.text import clip

MAX_TOOLS = 50
MAX_DESCRIPTION_CHARS = 500
MAX_SCHEMA_CHARS = 4_000
MAX_SCHEMA_DEPTH = 12
# Of all tools together, in characters of their names, descriptions and schemas.
MAX_TOTAL_CHARS = 20_000
MAX_RESULT_CHARS = 10_000
# What Chromium accepts.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_CODE = Path(__file__).with_name("site_tools.js").read_text(encoding="utf-8")
# Not `--enable-features`, which would replace Playwright's own.
_FEATURE = "--enable-blink-features=WebMCP"
# A tool whose schema is missing, too large, or nested too deeply takes anything.
_ANYTHING: Mapping[str, Any] = {}


class SiteTools(Record):
    """The tools that a page offers, and how many more it registers."""

    tools: tuple[ToolSpec, ...] = ()
    left_out: int = 0


class RegisteredTools(OwnTool):
    """Lists and calls them. The browser, or a page, has `limit_s` to answer."""

    arguments: Sequence[str] = (_FEATURE,)

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    async def seen(self, run: RunCode, page: Page, site: Site) -> Mapping[str, Any]:
        """The tools that a page of the task's site registers."""
        answer = await run(list_code(self._limit_s))
        found = read_list(answer.text if answer.ok else "", site, page.origin)
        return {"page_tools": found.tools, "page_tools_left_out": found.left_out if found.tools else 0}

    async def call(self, run: RunCode, params: Mapping[str, Any]) -> ToolResponse:
        """Call one of them."""
        return read_result(await run(call_code(params["name"], params["arguments"], self._limit_s)), self._limit_s)


class _RawTool(Record):
    name: str
    description: str
    schema_text: str | None = Field(alias="schema")


class _RawList(Record):
    origin: str
    left_out: int = Field(ge=0)
    tools: tuple[_RawTool, ...]


class _RawResult(Record):
    end: Literal["returned", "failed", "gone", "navigated", "late"]
    text: str = ""


def list_code(limit_s: float) -> str:
    """The code that lists the tools of the page in front, or nothing if it does not answer in time."""
    limits = {"tools": MAX_TOOLS, "name": 128, "description": MAX_DESCRIPTION_CHARS, "schema": MAX_SCHEMA_CHARS}
    return _code(None, {**limits, "ms": round(limit_s * 1000)})


def call_code(name: str, arguments: Mapping[str, Any], limit_s: float) -> str:
    """The code that calls one of the tools that were listed last, and waits for its result."""
    return _code({"name": name, "arguments": arguments}, {"result": MAX_RESULT_CHARS, "ms": round(limit_s * 1000)})


def _code(call: Mapping[str, Any] | None, limits: Mapping[str, int]) -> str:
    return f"async page => ({_CODE})(page, {json.dumps({'call': call, 'limits': limits})})"


def read_list(text: str, site: Site, origin: str | None) -> SiteTools:
    """Read what `list_code` returned for a page of this origin; no tools off the task's sites."""
    try:
        raw_list = _RawList.model_validate_json(text)
    except ValidationError:
        return SiteTools()
    # The page may have gone elsewhere since its snapshot.
    if raw_list.origin != origin or not site.holds(origin):
        return SiteTools()
    tools, chars = [], 0
    for raw in raw_list.tools:
        if _NAME.fullmatch(raw.name) is None:
            continue
        spec = ToolSpec(name=raw.name, description=raw.description, parameters=_schema(raw.schema_text))
        chars += len(spec.name) + len(spec.description) + len(json.dumps(spec.parameters))
        if chars > MAX_TOTAL_CHARS:
            break
        tools.append(spec)
    return SiteTools(tools=tuple(tools), left_out=raw_list.left_out + len(raw_list.tools) - len(tools))


def _schema(text: str | None) -> dict[str, Any]:
    try:
        schema = parse_json(text) if text is not None else None
    except ValueError:
        schema = None
    return schema if isinstance(schema, dict) and _depth(schema) <= MAX_SCHEMA_DEPTH else dict(_ANYTHING)


def _depth(value: Any) -> int:
    """How deeply objects and lists are nested; `parse_json` has bounded it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


def read_result(answer: ToolResponse, limit_s: float) -> ToolResponse:
    """Read what `call_code` returned. A call that did not return, or failed, may have taken effect."""
    if modal_state(answer.text):
        return ToolResponse(ok=True, text="the site's tool opened a dialog and has not returned yet")
    try:
        raw_result = _RawResult.model_validate_json(answer.text)
    except ValidationError:
        return ToolResponse(ok=False, text="the page did not answer the call")
    match raw_result.end:
        case "returned":
            return _returned(raw_result.text)
        case "navigated":
            return ToolResponse(ok=True, text="the page changed before the site's tool returned")
        case "gone":
            return ToolResponse(ok=False, text="the page no longer has this tool")
        case "late":
            return ToolResponse(ok=False, text=f"the site's tool did not return within {limit_s:g} s")
    return ToolResponse(ok=False, text=f"the site's tool failed: {raw_result.text}")


def _returned(text: str) -> ToolResponse:
    """The result as the participant sees it: the texts of a result in MCP's form, any other as JSON."""
    try:
        value = parse_json(text)
    except ValueError:
        value = text
    is_error = isinstance(value, dict) and value.get("isError") is True
    texts = list(_texts(value)) if isinstance(value, dict) else []
    text_shown = "\n".join(texts) if texts else value if isinstance(value, str) else text
    verb = "reports an error" if is_error else "returned"
    return ToolResponse(ok=not is_error, text=f"the site's tool {verb}: {clip(text_shown, MAX_RESULT_CHARS)}")


def _texts(result: Mapping[str, Any]) -> Iterator[str]:
    content = result.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
