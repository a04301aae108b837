"""The judge as an MCP server for one agent: a task's tools over HTTP, and a socket of this machine for the verdict."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from judge.environment.errors import EpisodeFault
from judge.plugins.harbor.episode import AgentEpisode
from judge.plugins.harbor.verdict import EpisodeVerdict
from shared.a2a.serving import require_bearer
from shared.errors import ConfigError
from shared.mcp_tools import mcp_app

HEALTH_PATH = "/health"
_MAX_VERDICT_BYTES = 100_000
_log = logging.getLogger(__name__)


def build_app(episode: AgentEpisode, *, host: str, auth_token: SecretStr | None = None) -> ASGIApp:
    """The MCP server as an ASGI application that listens at `host`: `/mcp` (Streamable HTTP) and `/health`.

    With `auth_token`, `/mcp` requires it.
    """

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    app = mcp_app(episode.tools, host=host, routes=[Route(HEALTH_PATH, health)])
    return require_bearer(app, auth_token, (HEALTH_PATH,)) if auth_token else app


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
