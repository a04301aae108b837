"""Notices whether a client still follows its task: by an open call, or by asking about the task from time to time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import GetTaskRequest, Message, SendMessageRequest, SubscribeToTaskRequest, Task
from starlette.requests import Request

# Keys of a call's state.
_ATTENDANCE = "wabe.attendance"
_REQUEST = "wabe.request"
_POLL_S = 1.0


class Attendance:
    """The calls about one task."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls = 0
        self._last = clock()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a client as present while the body runs."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._last = self._clock()

    @property
    def absent_s(self) -> float:
        """For how long no client has followed the task; 0 while one does."""
        return 0.0 if self._calls else self._clock() - self._last


def attendance_of(context: ServerCallContext) -> Attendance:
    """The id of the task which the message of this call begins."""
    attendance: Attendance = context.state.setdefault(_ATTENDANCE, Attendance())
    return attendance


class CallContexts(DefaultServerCallContextBuilder):
    """Keeps the HTTP request with each call, because only that shows whether its client is still connected."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[_REQUEST] = request
        return context


class AttendedHandler(DefaultRequestHandler):
    """The SDK's handler, which also keeps the attendance of tasks; `find` looks it up by the id of a running task."""

    find: Callable[[str], Attendance | None]

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        work = asyncio.ensure_future(super().on_message_send(params, context))
        try:
            with attendance_of(context).call():
                while not work.done() and not await _is_gone(context):
                    await asyncio.wait({work}, timeout=_POLL_S)
            answered: Message | Task = await work
            return answered
        finally:
            work.cancel()

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        with attendance_of(context).call():
            async with aclosing(super().on_message_send_stream(params, context)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        with (self.find(params.id) or Attendance()).call():
            async with aclosing(super().on_subscribe_to_task(params, context)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        with (self.find(params.id) or Attendance()).call():
            stored_task: Task | None = await super().on_get_task(params, context)
            return stored_task


async def _is_gone(context: ServerCallContext) -> bool:
    request = context.state.get(_REQUEST)
    return isinstance(request, Request) and await request.is_disconnected()
