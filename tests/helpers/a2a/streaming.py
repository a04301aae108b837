"""An agent of the SDK's own server that streams each reply as chunks of one artifact.

As a program, it is a bundled participant that plays scripts and streams its replies in chunks of one character:
`PYTHONPATH=tests python -m helpers.a2a.streaming SCRIPT PORT [--only-streams]`.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import UnsupportedOperationError
from starlette.applications import Starlette

from participants.base import ParticipantOptions, _Participant
from participants.replay import create
from shared.a2a.tasks import AgentMessage, TurnFile
from shared.settings import Settings

# The text parts of each chunk of the artifact.
Chunks = Sequence[Sequence[str]]
# Bindings and versions in which an agent can be offered.
PROTOCOLS = (("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0"), ("HTTP+JSON", "0.3"))
Answer = Callable[[AgentMessage], Awaitable[Chunks]]


def characters(text: str) -> Chunks:
    """A text in chunks of one character."""
    return [[character] for character in text]


def in_characters(text: str) -> Answer:
    """An answer in chunks of one character."""

    async def answer(_: AgentMessage) -> Chunks:
        return characters(text)

    return answer


class _Executor(AgentExecutor):
    def __init__(self, answer: Answer, end: TaskState, message: str) -> None:
        self._answer = answer
        self._end = end
        self._message = message

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        files = tuple(TurnFile(part.raw, part.media_type) for part in context.message.parts if part.HasField("raw"))
        turn = AgentMessage(text=context.get_user_input(), context_id=task.context_id, task_id=task.id, files=files)
        for place, texts in enumerate(await self._answer(turn)):
            parts = [Part(text=text) for text in texts]
            await updater.add_artifact(parts, artifact_id="reply", append=place > 0)
        message = updater.new_agent_message([Part(text=self._message)]) if self._message else None
        await updater.update_status(self._end, message)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError


class _OnlyStreams(DefaultRequestHandler):
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        raise UnsupportedOperationError("this agent only streams")


def streaming_agent(
    answer: Answer,
    *,
    only_streams: bool = False,
    binding: str = "JSONRPC",
    protocol: str = "1.0",
    end: TaskState = TaskState.TASK_STATE_COMPLETED,
    message: str = "",
) -> Starlette:
    """The agent; its tasks end as `end`, with `message` in their status."""
    interface = AgentInterface(url="http://agent.invalid/", protocol_binding=binding, protocol_version=protocol)
    card = AgentCard(
        name="streaming agent",
        description="Is tested.",
        version="1",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="test", name="Test", description="Is tested.", tags=["test"])],
    )
    kind = _OnlyStreams if only_streams else DefaultRequestHandler
    handler = kind(agent_executor=_Executor(answer, end, message), task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True),
        ]
    )


def main() -> None:
    script, port, *more = sys.argv[1:]
    participant = _Participant(create(ParticipantOptions(settings=Settings.from_environ(), script=script)))

    async def answer(turn: AgentMessage) -> Chunks:
        return characters(await participant(turn))

    assert Path(script).is_file()
    app = streaming_agent(answer, only_streams="--only-streams" in more)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
