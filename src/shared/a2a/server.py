"""Serves our own agents over A2A, protocol 1.0 and 0.3 on one endpoint.

Specification: https://a2a-protocol.org/v1.0.0/specification/. The SDK keeps every status message in a task's history,
keeps finished tasks forever, lists all tasks to anyone and accepts bodies of any size; all of that is bounded here.
"""

import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from a2a import types
from a2a.helpers import new_text_message
from a2a.server.agent_execution.active_task import TERMINAL_TASK_STATES
from a2a.server.context import ServerCallContext
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskStore
from a2a.types import AgentSkill as Skill
from a2a.types import ListTasksRequest, ListTasksResponse, Task, TaskState, TaskStatus
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict
from pydantic import SecretStr
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from shared.a2a.attendance import AttendedHandler, CallContexts
from shared.a2a.page_links import PageLinks
from shared.a2a.serving import SHUTDOWN_GRACE_S, read_body_first, require_bearer
from shared.a2a.tasks import NoteOnStop, TaskRuns, TextExecutor, TextHandler, no_note
from shared.errors import ConfigError

__all__ = ["Skill", "build_app"]

log = logging.getLogger(__name__)

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
MAX_BODY_BYTES = 32_000_000
# Each progress message is added to the history and stored with it: 2,000 untrimmed ones took 57 s in SQLite.
_MAX_HISTORY = 20
# A judge started again may find its predecessor still writing.
_LOCK_S = 30.0
# Total size of finished tasks. The results of an assessment of thousands of tasks take a dozen megabytes.
_MAX_FINISHED_BYTES = 200_000_000
# Small, because tasks are read with their artifacts, up to a dozen megabytes each.
_PAGE = 10


def build_app(
    agent: TextExecutor | TextHandler,
    *,
    name: str,
    description: str,
    version: str,
    card_url: str,
    skills: Sequence[Skill],
    extra_routes: Sequence[BaseRoute] = (),
    auth_token: SecretStr | None = None,
    page_links: PageLinks | None = None,
    public_paths: Collection[str] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
    task_db: Path | None = None,
    max_finished_tasks: int = 200,
    update_interval_s: float = 1.0,
    still_working_s: float = 30.0,
    note_on_stop: NoteOnStop = no_note,
    secret_metadata: Collection[str] = (),
    extensions: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    serving: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
) -> Starlette:
    """An A2A agent as an ASGI application: JSON-RPC at `/` (1.0 and 0.3), HTTP+JSON, the card.

    Tasks are kept in the SQLite file `task_db`, by default in memory; only the newest finished tasks are kept. With
    `auth_token`, every path but the card and the `public_paths` requires it, and `page_links` open pages to browsers.
    Progress messages are at least `update_interval_s` and at most `still_working_s` apart. `app.state.stop` ends all
    work in progress; give it to `serving.serve_app` as `before_shutdown`. `note_on_stop` is added to the end of tasks
    that a stop, of this process or an earlier one, has ended. `secret_metadata` are keys of tasks' metadata that are
    not written to `task_db`. `extensions` are declared in the card: parameters by URI. `serving` is entered while the
    application runs. Raises `ConfigError` when `task_db` cannot be used.
    """
    store = _TaskStore(task_db, max_finished_tasks, note_on_stop, secret_metadata)
    card = _card(name, description, version, card_url, skills, secured=auth_token is not None)
    for uri, parameters in extensions.items():
        card.capabilities.extensions.append(types.AgentExtension(uri=uri, params=dict(parameters)))
    runs = TaskRuns(
        agent, update_interval_s=update_interval_s, still_working_s=still_working_s, note_on_stop=note_on_stop
    )
    handler = _Handler(agent_executor=runs, task_store=store, agent_card=card)
    handler.find = runs.attendance
    options: dict[str, Any] = {
        "context_builder": CallContexts(),
        "enable_v0_3_compat": True,
        "shutdown_grace_period": SHUTDOWN_GRACE_S,
    }
    routes: list[BaseRoute] = [
        *(route for path in CARD_PATHS for route in create_agent_card_routes(card, card_url=path)),
        *create_jsonrpc_routes(handler, rpc_url="/", **options),
        # Before HTTP+JSON, which interprets the first segment of any other path as a tenant.
        *extra_routes,
        *create_rest_routes(handler, **options),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await store.open()
        try:
            async with serving():
                try:
                    yield
                finally:
                    await runs.stop()
        finally:
            # In this order: the last events of the work pass through the handler into the store.
            await handler.aclose()
            await store.close()

    guards = [Middleware(read_body_first)]
    if auth_token is not None:
        # Outermost, so that no body is read from a client without the token.
        public = (*CARD_PATHS, *public_paths)
        guards.insert(0, Middleware(require_bearer, token=auth_token, public=public, links=page_links))
    app = Starlette(routes=routes, middleware=guards, lifespan=lifespan, max_body_size=max_body_bytes)
    app.state.stop = runs.stop
    return app


def _card(
    name: str, description: str, version: str, url: str, skills: Sequence[Skill], *, secured: bool
) -> types.AgentCard:
    # All entries have the same address: 0.3 clients read the 0.3 entry, and a platform's gateway rewrites every entry.
    interfaces = [
        types.AgentInterface(url=url, protocol_binding=binding, protocol_version=protocol)
        for binding in ("JSONRPC", "HTTP+JSON")
        for protocol in ("1.0", "0.3")
    ]
    card = types.AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=interfaces,
        capabilities=types.AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "image/jpeg"],
        default_output_modes=["text/plain"],
        skills=skills,
    )
    if secured:
        bearer = types.SecurityScheme(http_auth_security_scheme=types.HTTPAuthSecurityScheme(scheme="bearer"))
        card.security_schemes["bearer"].CopyFrom(bearer)
        card.security_requirements.append(types.SecurityRequirement(schemes={"bearer": types.StringList()}))
    return card


class _Handler(AttendedHandler):
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        raise UnsupportedOperationError("this agent does not list tasks: request a task by its id")


class _TaskStore(TaskStore):
    """Tasks in memory or in a SQLite file: a short history without files, and only the newest finished tasks.

    The metadata under the keys `secrets` stays in memory.
    """

    def __init__(
        self, path: Path | None, max_finished: int, note_on_stop: NoteOnStop, secrets: Collection[str]
    ) -> None:
        self._store: InMemoryTaskStore | DatabaseTaskStore = InMemoryTaskStore()
        if path is not None:
            self._store = DatabaseTaskStore(create_async_engine(f"sqlite+aiosqlite:///{_usable_database(path)}"))
        # The oldest first, with their sizes.
        self._finished: dict[str, int] = {}
        self._max_finished = max_finished
        self._unsaved: dict[str, Task] = {}
        self._note_on_stop = note_on_stop
        self._secret_keys = frozenset(secrets)
        self._secrets: dict[str, dict[str, str]] = {}

    async def open(self) -> None:
        """Mark tasks that an earlier process left unfinished as failed, because no work on them is running."""
        context = ServerCallContext()
        newest_first: dict[str, int] = {}
        request = ListTasksRequest(page_size=_PAGE)
        while True:
            page = await self._store.list(request, context)
            for task in page.tasks:
                if task.status.state not in TERMINAL_TASK_STATES:
                    note = self._note_on_stop(MessageToDict(task.metadata))
                    message = new_text_message(note.after("The agent was restarted before the work was done."))
                    task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_FAILED, message=message))
                    task.status.timestamp.GetCurrentTime()
                    task.metadata.update(note.facts)
                    await self._store.save(task, context)
                newest_first[task.id] = task.ByteSize()
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        self._finished = dict(reversed(newest_first.items()))
        await self._forget_oldest(context)

    async def close(self) -> None:
        if isinstance(self._store, DatabaseTaskStore):
            await self._store.engine.dispose()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        # Trimmed in place, because the SDK keeps this record, appends every status message and always saves all of it.
        # The first message, which is the request, stays.
        del task.history[1 : max(1, len(task.history) - _MAX_HISTORY + 1)]
        for message in task.history:
            texts = [part for part in message.parts if not part.HasField("raw")]
            if len(texts) < len(message.parts):
                del message.parts[:]
                message.parts.extend(texts)
        for key in self._secret_keys.intersection(task.metadata.keys()):
            self._secrets.setdefault(task.id, {})[key] = str(task.metadata[key])
            del task.metadata[key]
        try:
            await self._store.save(task, context)
            self._unsaved.pop(task.id, None)
            if task.status.state in TERMINAL_TASK_STATES and task.id not in self._finished:
                self._finished[task.id] = task.ByteSize()
                await self._forget_oldest(context)
        except SQLAlchemyError as error:
            # On a full disk the results can still be sent.
            log.warning("a task is kept in memory because storing it failed: %s", str(error.__cause__ or error)[:200])
            self._unsaved[task.id] = copied = Task()
            copied.CopyFrom(task)

    async def _forget_oldest(self, context: ServerCallContext) -> None:
        while len(self._finished) > self._max_finished or (
            len(self._finished) > 1 and sum(self._finished.values()) > _MAX_FINISHED_BYTES
        ):
            oldest = next(iter(self._finished))
            del self._finished[oldest]
            self._secrets.pop(oldest, None)
            await self._store.delete(oldest, context)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        task = self._unsaved.get(task_id) or await self._store.get(task_id, context)
        if task is not None and (secrets := self._secrets.get(task_id)):
            task.metadata.update(secrets)
        return task

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        return await self._store.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        await self._store.delete(task_id, context)


def _usable_database(path: Path) -> Path:
    """`path`, with its folder created. Checked here because the SDK opens the file only with the first task."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path, timeout=_LOCK_S)) as connection:
            # SQLite opens the file with the first statement, and only a write shows whether the file can be written.
            connection.execute("CREATE TABLE IF NOT EXISTS probe (x)")
            connection.execute("DROP TABLE probe")
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot keep tasks there: {error}", remedy="choose a writable file") from None
    return path
