"""Agents of ours as A2A servers, protocol 1.0 and 0.3 on one endpoint. Besides `a2a_client` alone in knowing the SDK.

Specification: https://a2a-protocol.org/v1.0.0/specification/. Why the bounds: the SDK keeps every status message in a
task's history, keeps finished tasks for ever, lists all tasks to anyone and takes bodies of any size.
"""

import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    HTTPAuthSecurityScheme,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import UnsupportedOperationError
from pydantic import SecretStr
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from shared.a2a.serving import SHUTDOWN_GRACE_S, BearerGuard, WholeBody
from shared.a2a.task_db import usable_database
from shared.a2a.task_runs import PacedSink, TaskEnd, TaskRuns
from shared.a2a.turn import Skill, TaskSink, TextExecutor, TextHandler, Turn, TurnFile

__all__ = ["Skill", "TaskSink", "TextExecutor", "TextHandler", "Turn", "TurnFile", "build_app"]

log = logging.getLogger(__name__)

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
RPC_PATH = "/"
MAX_BODY_BYTES = 32_000_000
_MAX_HISTORY = 20
_PAGE_SIZE = 50
_ENDED = frozenset(TaskState.Value(f"TASK_STATE_{end.upper()}") for end in get_args(TaskEnd))


def build_app(
    executor: TextExecutor | TextHandler,
    *,
    name: str,
    description: str,
    version: str,
    card_url: str,
    skills: Sequence[Skill],
    extra_routes: Sequence[BaseRoute] = (),
    public_paths: Sequence[str] = (),
    auth_token: SecretStr | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    task_db: Path | None = None,
    max_finished_tasks: int = 200,
    update_interval_s: float = 1.0,
    still_working_s: float = 30.0,
) -> Starlette:
    """An A2A agent as an ASGI application: JSON-RPC at `/` (1.0 and 0.3), HTTP+JSON beside it, the card.

    Tasks are kept in the SQLite file `task_db`, else in memory; of finished ones the newest. With `auth_token`
    everything but the card and `public_paths` asks for it. `update_interval_s` is the least time between two progress
    messages, `still_working_s` the most. `app.state.stop` ends all work in progress; give it to
    `serving.serve_app` as `before_shutdown`. Raises `ConfigError` when `task_db` cannot be used.
    """
    store = _TaskStore(task_db, max_finished_tasks)
    card = _card(name, description, version, card_url, skills, secured=auth_token is not None)
    runs = TaskRuns(executor, update_interval_s=update_interval_s, still_working_s=still_working_s)
    handler = _Handler(agent_executor=_Agent(runs), task_store=store, agent_card=card)
    routes: list[BaseRoute] = []
    for path in CARD_PATHS:
        routes += create_agent_card_routes(card, card_url=path)
    routes += create_jsonrpc_routes(
        handler, rpc_url=RPC_PATH, enable_v0_3_compat=True, shutdown_grace_period=SHUTDOWN_GRACE_S
    )
    routes += extra_routes
    routes += create_rest_routes(handler, enable_v0_3_compat=True, shutdown_grace_period=SHUTDOWN_GRACE_S)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await store.open()
        try:
            yield
        finally:
            await runs.stop()
            await handler.aclose()
            await store.close()

    guards = [Middleware(WholeBody)]
    if auth_token is not None:
        guards.insert(0, Middleware(BearerGuard, token=auth_token, public=(*CARD_PATHS, *public_paths)))
    app = Starlette(routes=routes, middleware=guards, lifespan=lifespan, max_body_size=max_body_bytes)
    app.state.stop = runs.stop
    return app


def _card(name: str, description: str, version: str, url: str, skills: Sequence[Skill], *, secured: bool) -> AgentCard:
    # The same address for each: 0.3 clients read the 0.3 entry, and a platform's gateway rewrites all of them.
    interfaces = [("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0"), ("HTTP+JSON", "0.3")]
    card = AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=protocol)
            for binding, protocol in interfaces
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "image/jpeg"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(id=skill.id, name=skill.name, description=skill.description, tags=skill.tags) for skill in skills
        ],
    )
    if secured:
        card.security_schemes["bearer"].CopyFrom(
            SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
        )
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList()}))
    return card


class _Handler(DefaultRequestHandler):
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        raise UnsupportedOperationError("this agent does not list tasks: ask for a task by its id")


class _Agent(AgentExecutor):
    """Hands the SDK's calls to `TaskRuns`."""

    def __init__(self, runs: TaskRuns) -> None:
        self._runs = runs

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One message, worked on to its end."""
        await self._runs.run(_turn(context), _sink(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task as canceled, also one that nobody works on."""
        if not await self._runs.cancel(context.task_id or ""):
            await _sink(context, event_queue).end("canceled", "Cancelled on request.")


def _turn(context: RequestContext) -> Turn:
    parts = context.message.parts if context.message else ()
    return Turn(
        text=context.get_user_input(),
        context_id=context.context_id or "",
        task_id=context.task_id or "",
        files=tuple(TurnFile(part.raw, part.media_type) for part in parts if part.WhichOneof("content") == "raw"),
        metadata=context.metadata,
    )


def _sink(context: RequestContext, queue: EventQueue) -> PacedSink:
    return PacedSink(_Events(queue, context), begun=context.current_task is not None)


class _Events:
    """The `Wire` of one task: the SDK's events on the SDK's queue."""

    def __init__(self, queue: EventQueue, context: RequestContext) -> None:
        self._queue = queue
        self._task_id = context.task_id or ""
        # The SDK makes up a new context for a message that names its task alone.
        self._context_id = (context.current_task or context).context_id or ""
        self._request = context.message
        self._metadata: dict[str, str] = {}

    def annotate(self, metadata: Mapping[str, str]) -> None:
        self._metadata.update(metadata)

    async def begin(self) -> None:
        task = Task(id=self._task_id, context_id=self._context_id, status=_status("working"))
        if self._request is not None:
            task.history.append(self._request)
        await self._queue.enqueue_event(task)

    async def status(self, state: Literal["working"] | TaskEnd, text: str | None) -> None:
        status = _status(state)
        if text is not None:
            status.message.CopyFrom(self._message(text, task_id=self._task_id))
        event = TaskStatusUpdateEvent(task_id=self._task_id, context_id=self._context_id, status=status)
        event.metadata.update(self._metadata)
        await self._queue.enqueue_event(event)

    async def artifact(self, name: str, texts: list[str]) -> None:
        artifact = Artifact(artifact_id=uuid4().hex, name=name, parts=[Part(text=text) for text in texts])
        event = TaskArtifactUpdateEvent(
            task_id=self._task_id, context_id=self._context_id, artifact=artifact, last_chunk=True
        )
        await self._queue.enqueue_event(event)

    async def message(self, text: str) -> None:
        await self._queue.enqueue_event(self._message(text))

    def _message(self, text: str, task_id: str | None = None) -> Message:
        return Message(
            message_id=uuid4().hex,
            context_id=self._context_id,
            task_id=task_id,
            role=Role.ROLE_AGENT,
            parts=[Part(text=text)],
        )


def _status(state: str) -> TaskStatus:
    status = TaskStatus(state=TaskState.Value(f"TASK_STATE_{state.upper()}"))
    status.timestamp.FromDatetime(datetime.now(UTC))
    return status


class _TaskStore(TaskStore):
    """Keeps tasks in memory or in a SQLite file, bounded: few messages of history without files, few finished tasks."""

    def __init__(self, path: Path | None, max_finished: int) -> None:
        self._engine = None if path is None else create_async_engine(f"sqlite+aiosqlite:///{usable_database(path)}")
        self._store: TaskStore = InMemoryTaskStore() if self._engine is None else DatabaseTaskStore(self._engine)
        self._finished: deque[str] = deque()
        self._max_finished = max_finished
        self._unsaved: dict[str, Task] = {}

    async def open(self) -> None:
        """Mark as failed what an earlier process left unfinished: nobody works on it any more."""
        context = ServerCallContext()
        page = ListTasksRequest(page_size=_PAGE_SIZE)
        found: list[Task] = []
        while True:
            listed = await self._store.list(page, context)
            found += listed.tasks
            if not listed.next_page_token:
                break
            page.page_token = listed.next_page_token
        for task in reversed(found):
            if task.status.state not in _ENDED:
                task.status.CopyFrom(_status("failed"))
                text = "The agent was restarted before the work was done."
                task.status.message.CopyFrom(
                    Message(message_id=uuid4().hex, role=Role.ROLE_AGENT, parts=[Part(text=text)])
                )
            await self.save(task, context)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.dispose()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        # In place, on the SDK's own record: it would grow there with every status message, and be written whole.
        del task.history[1 : max(1, len(task.history) - _MAX_HISTORY + 1)]
        for message in task.history:
            texts = [part for part in message.parts if part.WhichOneof("content") != "raw"]
            if len(texts) < len(message.parts):
                del message.parts[:]
                message.parts.extend(texts)
        try:
            await self._store.save(task, context)
            self._unsaved.pop(task.id, None)
            if task.status.state in _ENDED and task.id not in self._finished:
                self._finished.append(task.id)
                if len(self._finished) > self._max_finished:
                    await self._store.delete(self._finished.popleft(), context)
        except SQLAlchemyError as error:
            # A full disk must not cost results that can still be sent.
            log.warning("a task is kept in memory, since it cannot be stored: %s", str(error.__cause__ or error)[:200])
            self._unsaved[task.id] = copied = Task()
            copied.CopyFrom(task)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        return self._unsaved.get(task_id) or await self._store.get(task_id, context)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        return await self._store.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        await self._store.delete(task_id, context)
