"""The server: OpenEnv's WebSocket `/ws`, and what its clients read over HTTP.

`/reset` and `/step` over HTTP are left out: there they are stateless, a new environment for each request.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from judge.environment.errors import CapacityReached
from judge.environment.session import action_schema
from judge.plugins.openenv.conversation import ClientConversation, View, WireSession
from judge.plugins.openenv.frames import error_frame, observation_schema, rpc_refusal, state_schema
from judge.plugins.openenv.offers import NoSuchTask, Offers, UnknownSplit
from shared.a2a.local_pages import local_only
from shared.a2a.serving import require_bearer
from shared.errors import ConfigError
from shared.text import excerpt

_log = logging.getLogger(__name__)

HEALTH_PATH = "/health"
# Of the API, which its clients read here; WABE's is in the metadata.
_API_VERSION = "1.0.0"
_MAX_BODY_BYTES = 100_000
# Clients give up after 60 s, and may then read a late answer as that to their next question.
_ANSWER_S = 55.0
# Time for a client refused to read why: version 0.4 sends their question first.
_FAREWELL_S = 5.0
_REFUSAL = "This server is for clients on its own machine; with WABE_AUTH_TOKEN, it is for holders of the token.\n"

# Codes of WebSocket's close frame (RFC 6455).
_NORMAL, _GOING_AWAY, _NOT_TEXT, _VIOLATION, _INTERNAL, _TRY_LATER = 1000, 1001, 1003, 1008, 1011, 1013

M = TypeVar("M", bound=BaseModel)


class Sessions(Protocol):
    """Where sessions come from."""

    @property
    def health(self) -> Literal["healthy", "degraded", "unhealthy"]: ...

    async def open(self) -> WireSession:
        """A new session. Raises `CapacityReached`."""
        ...


@dataclass(frozen=True)
class EnvironmentDescription:
    """What `/metadata` says of the environment."""

    name: str
    description: str
    version: str


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    split: str


class _IndexBody(_Body):
    index: int


class _RangeBody(_Body):
    start: Annotated[int, Field(ge=0)] | None = None
    stop: Annotated[int, Field(ge=0)] | None = None


def build_app(
    sessions: Sessions,
    offers: Offers,
    about: EnvironmentDescription,
    *,
    view: View,
    idle_s: float,
    auth_token: SecretStr | None = None,
    answer_s: float = _ANSWER_S,
) -> Starlette:
    """The server as an ASGI application. A client that asks nothing for `idle_s` loses its session.

    With `auth_token`, all paths but `/health` require it; without, only clients on this machine are admitted. Pages of
    browsers are never admitted to sessions.
    """
    sockets = _Sockets(sessions, offers, view, idle_s, answer_s)
    guards = [] if auth_token else [Middleware(local_only, refusal=_REFUSAL)]
    bearer = [Middleware(require_bearer, token=auth_token, public=(HEALTH_PATH,))] if auth_token else []
    routes: list[BaseRoute] = [
        WebSocketRoute("/ws", sockets.serve, middleware=[*guards, Middleware(_no_pages)]),
        *_HttpPages(sessions, offers, about, view).routes(guards),
    ]
    return Starlette(routes=routes, middleware=bearer, max_body_size=_MAX_BODY_BYTES)


def _no_pages(app: ASGIApp) -> ASGIApp:
    """Refuse WebSockets of browsers' pages, which any website that a person visits can open."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = any(name == b"origin" for name, _ in scope["headers"])
        answer = PlainTextResponse("pages cannot open sessions\n", HTTPStatus.FORBIDDEN) if is_page else app
        await answer(scope, receive, send)

    return guarded


@dataclass(frozen=True)
class _Sockets:
    sessions: Sessions
    offers: Offers
    view: View
    idle_s: float
    answer_s: float

    async def serve(self, socket: WebSocket) -> None:
        """One client: a session for as long as its socket is open."""
        await socket.accept()
        try:
            session = await self.sessions.open()
        except CapacityReached as full:
            await _refuse(socket, full)
            return
        except ConfigError as error:
            with contextlib.suppress(WebSocketDisconnect):
                await socket.send_text(error_frame("SESSION_ERROR", str(error)))
            await _close(socket, _INTERNAL)
            return
        try:
            code, reason = await self._converse(socket, ClientConversation(session, self.offers, self.view))
        finally:
            # Before the socket is closed, so that a client that has seen it close finds a free session.
            await asyncio.shield(session.close())
        await _close(socket, code, reason)

    async def _converse(self, socket: WebSocket, conversation: ClientConversation) -> tuple[int, str]:
        """Answer until the client leaves or breaks a rule. Returns the code and the reason for the close frame."""
        incoming = asyncio.create_task(socket.receive())
        answering: asyncio.Task[str | None] | None = None
        try:
            while True:
                await asyncio.wait({incoming}, timeout=self.idle_s)
                if not incoming.done():
                    return _GOING_AWAY, f"idle for {self.idle_s:g} s"
                message = incoming.result()
                if message["type"] == "websocket.disconnect":
                    return _NORMAL, ""
                if (text := message.get("text")) is None:
                    return _NOT_TEXT, "frames are text"
                # Also tells when the client has gone.
                incoming = asyncio.create_task(socket.receive())
                answering = asyncio.create_task(conversation.answer(text))
                await asyncio.wait({incoming, answering}, timeout=self.answer_s, return_when=asyncio.FIRST_COMPLETED)
                if incoming.done():
                    # It would take the answer for that to its new question.
                    return _VIOLATION, "a question before the last answer"
                if not answering.done():
                    return _INTERNAL, f"no answer within {self.answer_s:g} s"
                if (answer := answering.result()) is None:
                    return _NORMAL, ""
                await socket.send_text(answer)
        except WebSocketDisconnect:
            return _NORMAL, ""
        finally:
            await _cancelled(incoming, answering)


async def _cancelled(*tasks: "asyncio.Task[Any] | None") -> None:
    """Cancel the tasks, and wait until they have ended."""
    running_tasks = [task for task in tasks if task is not None]
    for task in running_tasks:
        task.cancel()
    await asyncio.gather(*running_tasks, return_exceptions=True)


async def _refuse(socket: WebSocket, full: CapacityReached) -> None:
    """Tell a client that all sessions are in use, and close its socket."""
    answer = error_frame("CAPACITY_REACHED", str(full), active_sessions=full.active, max_sessions=full.maximum)
    with contextlib.suppress(WebSocketDisconnect, TimeoutError):
        await socket.send_text(answer)
        async with asyncio.timeout(_FAREWELL_S):
            await socket.receive()
    await _close(socket, _TRY_LATER)


async def _close(socket: WebSocket, code: int, reason: str = "") -> None:
    if WebSocketState.DISCONNECTED not in (socket.client_state, socket.application_state):
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(code, reason)


class _HttpPages:
    """What is read over HTTP."""

    def __init__(self, sessions: Sessions, offers: Offers, about: EnvironmentDescription, view: View) -> None:
        self._sessions = sessions
        self._offers = offers
        self._about = about
        self._schema = {
            "action": action_schema(),
            "observation": observation_schema(as_message=view.as_message, has_pictures=view.has_pictures),
            "state": state_schema(),
        }

    def routes(self, guards: Sequence[Middleware]) -> list[Route]:
        """All of them, with the one that lists them."""
        endpoints: list[tuple[str, str, str, Callable[[Request], Awaitable[Any]]]] = [
            ("GET", HEALTH_PATH, "Whether sessions can be opened.", self._health),
            ("GET", "/metadata", "Name, description and version.", self._metadata),
            ("GET", "/schema", "The JSON schemas of actions, observations and states.", self._schemas),
            ("POST", "/mcp", "Answers any JSON-RPC request with an error, because the server has no MCP tools.", _mcp),
            ("GET", "/list_environments", "The environment's name.", self._environments),
            ("GET", "/{env_name}/splits", "The splits of tasks.", self._splits),
            ("POST", "/{env_name}/tasks", "All tasks of a split.", self._tasks),
            ("POST", "/{env_name}/num_tasks", "The number of tasks of a split.", self._number),
            ("POST", "/{env_name}/task", "The task at an index.", self._task),
            ("POST", "/{env_name}/task_range", "The tasks from one index to another.", self._range),
        ]
        paths = {
            path: {method.lower(): {"summary": summary, "responses": {"200": {"description": "JSON"}}}}
            for method, path, summary, _ in endpoints
        }
        info = {"title": self._about.name, "version": _API_VERSION}
        document = {"openapi": "3.1.0", "info": info, "paths": paths}

        async def openapi(_: Request) -> Any:
            return document

        endpoints.append(("GET", "/openapi.json", "This list.", openapi))
        return [
            Route(path, _answering(answer), methods=[method], middleware=guards)
            for method, path, _, answer in endpoints
        ]

    async def _health(self, _: Request) -> Any:
        return {"status": self._sessions.health}

    async def _metadata(self, _: Request) -> Any:
        return {"name": self._about.name, "description": self._about.description, "version": self._about.version}

    async def _schemas(self, _: Request) -> Any:
        return self._schema

    async def _environments(self, _: Request) -> Any:
        return [self._offers.name]

    async def _splits(self, request: Request) -> Any:
        self._require_name(request)
        return self._offers.splits()

    async def _tasks(self, request: Request) -> Any:
        body = await self._body_of(request, _Body)
        return {"tasks": self._offers.range(body.split, None, None), "env_name": self._offers.name}

    async def _number(self, request: Request) -> Any:
        body = await self._body_of(request, _Body)
        return {"num_tasks": len(self._offers.of_split(body.split))}

    async def _task(self, request: Request) -> Any:
        body = await self._body_of(request, _IndexBody)
        return {"task": self._offers.at(body.split, body.index).model_dump()}

    async def _range(self, request: Request) -> Any:
        body = await self._body_of(request, _RangeBody)
        return {"tasks": self._offers.range(body.split, body.start, body.stop)}

    def _require_name(self, request: Request) -> None:
        if request.path_params["env_name"] != self._offers.name:
            raise HTTPException(404, f"unknown environment; this server has {excerpt(self._offers.name)}")

    async def _body_of(self, request: Request, kind: type[M]) -> M:
        self._require_name(request)
        try:
            return kind.model_validate_json(await request.body())
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False, include_input=False)
            raise HTTPException(
                422, "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in details)
            ) from None


def _answering(answer: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The endpoint that sends an answer as JSON, and what the client did wrong as `{"detail": …}`."""

    async def endpoint(request: Request) -> JSONResponse:
        try:
            return JSONResponse(await answer(request))
        except (NoSuchTask, UnknownSplit) as error:
            return JSONResponse({"detail": str(error)}, HTTPStatus.BAD_REQUEST)
        except HTTPException as error:
            return JSONResponse({"detail": error.detail}, error.status_code)

    return endpoint


async def _mcp(request: Request) -> Any:
    try:
        return rpc_refusal(json.loads(await request.body()))
    except (ValueError, RecursionError):
        return rpc_refusal(None)
