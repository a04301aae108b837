"""A web task's tools over MCP: each call of a tool is one action, and its result is the page afterwards.

For whoever plays one task through an MCP server: a program beside an A2A participant, or an agent in another container.
Specification: https://modelcontextprotocol.io/specification/.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from starlette.applications import Starlette
from starlette.routing import Route

from shared.models import ObservationMessage, ToolSpec
from shared.protocol import MAX_REPLY_CHARS, is_result, render_observation

if TYPE_CHECKING:
    import mcp_types

CURRENT_PAGE = ToolSpec(
    name="current_page",
    description="Show the task and the page as they were last observed. Takes no action.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)
OVER = "The task has ended."
FAULT = "The task cannot be continued, through no fault of yours. Stop here."
_BUSY = "Too many calls at once. Call one tool after another."
_INSTRUCTIONS = (
    "A web browser with one task. current_page shows the task and the page; each call of another tool is one action,"
    " and its result is the page afterwards; finish ends the task with your answer."
)
# An agent may call some tools at the same time, but not fill the memory with calls that wait.
_MOST_WAITING = 32
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class TurnPage(NamedTuple):
    """What the judge shows: its message, and the screenshot if there is one."""

    message: ObservationMessage
    screenshot: bytes | None = None
    media_type: str = ""


class TaskOver(Exception):  # the end of a task is not an error
    """The task has ended; `text` is all that the agent is told. `is_fault`: through no fault of the agent."""

    def __init__(self, text: str = OVER, *, is_fault: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.is_fault = is_fault


class AttemptTurns(Protocol):
    """One attempt at a task. Both raise `TaskOver` when there is no page to show; never called at the same time."""

    async def begin(self) -> TurnPage:
        """The first observation. Called once."""
        ...

    async def act(self, reply: Mapping[str, Any]) -> TurnPage:
        """Send `tool` and `params`, and observe the page afterwards."""
        ...


class ToolAnswer(NamedTuple):
    """What a call of a tool returns. `is_error`: the action was not executed, or there is no page to show."""

    text: str
    screenshot: bytes | None = None
    media_type: str = ""
    is_error: bool = False


class TaskTools:
    """The tools of one attempt, which begins with the first request of any client.

    Clients that connect later, or again, play the same attempt: they can only be the same agent. Calls are executed in
    the order in which they arrive. A client that goes away in the middle of a call does not end it: the action is
    executed, and the next call continues from the page after it.
    """

    def __init__(self, turns: AttemptTurns) -> None:
        self._turns = turns
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._running: set[asyncio.Task[Any]] = set()
        # What the first observation says is said again, because a client may join later.
        self._first: ObservationMessage | None = None
        self._last: TurnPage | None = None
        self._over: TaskOver | None = None
        self.calls = 0
        """How often a tool was called, whatever became of it."""
        self.largest = 0
        """The most characters that a result has had. Some clients cut what they show to their model."""

    async def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the task."""
        await self.in_turn(self.begin)
        offered = self._first.tools if self._first else ()
        return (CURRENT_PAGE, *offered)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Execute an action, and observe the page after it. Whatever is called is the agent's reply, never an error."""
        self.calls += 1
        if self._waiting >= _MOST_WAITING:
            return ToolAnswer(_BUSY, is_error=True)
        if problem := _unsendable(name, arguments):
            return ToolAnswer(problem, is_error=True)
        if name == CURRENT_PAGE.name:
            return await self.in_turn(self._looked)
        return await self.in_turn(lambda: self._acted({"tool": name, "params": dict(arguments)}))

    async def begin(self) -> None:
        """Begin the attempt, unless it has begun. To be called in turn."""
        if self._last is None and self._over is None:
            await self._shown(self._turns.begin())
            self._first = self._last.message if self._last else None

    async def in_turn(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do one thing after another, to the end even if its caller does not wait any longer."""

        async def alone() -> _T:
            async with self._turn:
                return await work()

        self._waiting += 1
        task = asyncio.create_task(alone())
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Abandon the calls in progress."""
        for task in tuple(self._running):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._waiting -= 1
        self._running.discard(task)
        # Its caller may be gone: an exception that nobody reads is logged as one.
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.debug("a call failed", exc_info=error)

    async def _looked(self) -> ToolAnswer:
        await self.begin()
        return self._answer(is_whole=True)

    async def _acted(self, reply: Mapping[str, Any]) -> ToolAnswer:
        await self.begin()
        if self._over is None:
            await self._shown(self._turns.act(reply))
        return self._answer()

    async def _shown(self, question: Awaitable[TurnPage]) -> None:
        try:
            self._last = await question
        except TaskOver as over:
            self._over = over

    def _answer(self, *, is_whole: bool = False) -> ToolAnswer:
        """The last observation, or the end. `is_whole`: with what only the first observation says."""
        if self._over is not None:
            return ToolAnswer(self._over.text, is_error=self._over.is_fault)
        assert self._last is not None
        assert self._first is not None
        message = self._last.message
        if is_whole:
            first = self._first
            message = message.model_copy(update={"instruction": first.instruction, "website": first.website})
        # The client has the tools' schemas, unless the page has added one.
        text = render_observation(message, with_tools=message.tools != self._first.tools)
        self.largest = max(self.largest, len(text))
        is_complaint = not is_whole and message.feedback is not None and not is_result(message.feedback)
        return ToolAnswer(text, self._last.screenshot, self._last.media_type, is_error=is_complaint)


def _unsendable(name: str, arguments: Mapping[str, Any]) -> str:
    """Why a call cannot be sent to a judge; empty if it can."""
    try:
        chars = len(json.dumps([name, arguments], allow_nan=False))
    except ValueError:
        return "The arguments have a number that JSON does not have."
    return f"The call has {chars} characters, and at most {MAX_REPLY_CHARS} are read." * (chars > MAX_REPLY_CHARS)


def spoken() -> str:
    """What the server of `mcp_app` speaks, for a client that speaks something else."""
    from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS as SUPPORTED

    return f"MCP over Streamable HTTP, revisions {SUPPORTED[0]} to {SUPPORTED[-1]}"


def mcp_app(tools: TaskTools, *, host: str, path: str = "/mcp", routes: Sequence[Route] = ()) -> Starlette:
    """An MCP server (Streamable HTTP) at `path` that listens at `host`. Requests for other hosts are refused."""
    import mcp_types
    from mcp.server.lowlevel import Server

    async def list_tools(*_: object) -> "mcp_types.ListToolsResult":
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
                for tool in await tools.tools()
            ]
        )

    async def call_tool(_: object, params: "mcp_types.CallToolRequestParams") -> "mcp_types.CallToolResult":
        return _result(await tools.call(params.name, params.arguments or {}))

    server: Server[Any] = Server(
        "wabe",
        version=metadata.version("wabe"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Without sessions of MCP's own, because all clients play the same attempt, and may connect anew for each call.
    return server.streamable_http_app(
        streamable_http_path=path, stateless_http=True, host=host, custom_starlette_routes=list(routes)
    )


def _result(answer: ToolAnswer) -> "mcp_types.CallToolResult":
    import mcp_types

    content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(text=answer.text)]
    if answer.screenshot is not None:
        data = base64.b64encode(answer.screenshot).decode()
        content.append(mcp_types.ImageContent(data=data, mime_type=answer.media_type))
    return mcp_types.CallToolResult(content=content, is_error=answer.is_error)
