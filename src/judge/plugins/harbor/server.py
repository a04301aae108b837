"""The judge as an MCP server for one agent: a task's tools over HTTP, and a socket of this machine for the verdict."""

import asyncio
import base64
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from judge.environment.errors import EpisodeFault
from judge.plugins.harbor.episode import AgentEpisode, ToolAnswer
from judge.plugins.harbor.verdict import EpisodeVerdict
from shared.a2a.serving import require_bearer
from shared.errors import ConfigError

if TYPE_CHECKING:
    import mcp_types

HEALTH_PATH = "/health"
_INSTRUCTIONS = (
    "A web browser with one task. current_page shows the task and the page; each call of another tool is one action,"
    " and its result is the page afterwards; finish ends the task with your answer."
)
_MAX_VERDICT_BYTES = 100_000
_log = logging.getLogger(__name__)


def build_app(episode: AgentEpisode, *, host: str, auth_token: SecretStr | None = None) -> ASGIApp:
    """The MCP server as an ASGI application that listens at `host`: `/mcp` (Streamable HTTP) and `/health`.

    With `auth_token`, `/mcp` requires it.
    """
    import mcp_types
    from mcp.server.lowlevel import Server

    async def list_tools(*_: object) -> "mcp_types.ListToolsResult":
        tools = await episode.tools()
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
                for tool in tools
            ]
        )

    async def call_tool(_: object, params: "mcp_types.CallToolRequestParams") -> "mcp_types.CallToolResult":
        return _result(await episode.call(params.name, params.arguments or {}))

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    server: Server[Any] = Server(
        "wabe",
        version=metadata.version("wabe"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Without sessions of MCP's own, because all clients play the same episode, and may connect anew for each call.
    app = server.streamable_http_app(
        stateless_http=True, host=host, custom_starlette_routes=[Route(HEALTH_PATH, health)]
    )
    return require_bearer(app, auth_token, (HEALTH_PATH,)) if auth_token else app


def _result(answer: ToolAnswer) -> "mcp_types.CallToolResult":
    import mcp_types

    content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(text=answer.text)]
    if answer.screenshot is not None:
        data = base64.b64encode(answer.screenshot).decode()
        content.append(mcp_types.ImageContent(data=data, mime_type=answer.media_type))
    return mcp_types.CallToolResult(content=content, is_error=answer.is_error)


@asynccontextmanager
async def giving_verdicts(episode: AgentEpisode, path: Path) -> AsyncIterator[None]:
    """Whoever connects to this Unix socket ends the episode, and reads its verdict as JSON.

    It is a file, not a port: an agent in another container reaches no file of this one. Raises `ConfigError`.
    """

    async def give(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            verdict = await episode.end()
            writer.write(verdict.model_dump_json().encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(give, sock=_bound(path))
    try:
        yield
    finally:
        server.close()
        await asyncio.to_thread(path.unlink, missing_ok=True)


def _bound(path: Path) -> socket.socket:
    unix_socket = socket.socket(socket.AF_UNIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        unix_socket.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        unix_socket.close()
        raise ConfigError(
            f"cannot listen at {path}: {error.strerror or error}", remedy="choose another, shorter --output-dir"
        ) from None
    return unix_socket


async def read_verdict(path: Path, *, within_s: float) -> EpisodeVerdict:
    """End the episode behind this socket, and read its verdict. Without an answer it is lost, not a failure."""
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                data = await reader.read(_MAX_VERDICT_BYTES)
            finally:
                writer.close()
        return EpisodeVerdict.model_validate_json(data)
    except (OSError, TimeoutError, ValueError) as error:
        _log.warning("%s: %s", path, error)
        return EpisodeVerdict.of_fault(EpisodeFault("lost", "internal", "the judge does not answer any more"))
