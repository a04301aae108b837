"""An agent on a2a-sdk 1, which replies in the requested shape: message, status, artifact, both or input.

With `rest-` before the shape its card offers HTTP+JSON alone.
"""

from collections import Counter

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role, TaskState
from starlette.applications import Starlette
from talk import ADVERTISED, options, reply, serve

OPTIONS = options()


class Agent(AgentExecutor):
    """Answers in one shape."""

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.turns: Counter[str] = Counter()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        images = [part.raw for part in context.message.parts if part.WhichOneof("content") == "raw"]
        text = await reply(OPTIONS.gate, self.turns, context.context_id, context.get_user_input(), images)
        if self.shape == "message":
            message = new_text_message(text, context_id=context.context_id, role=Role.ROLE_AGENT)
            await event_queue.enqueue_event(message)
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        message = updater.new_agent_message([Part(text=text)])
        if self.shape == "input":
            await updater.update_status(TaskState.TASK_STATE_INPUT_REQUIRED, message)
            return
        if self.shape in ("artifact", "both"):
            await updater.add_artifact([Part(text=text)], name="reply")
        await updater.complete(message if self.shape in ("status", "both") else None)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        del context, event_queue


def app_of(shape: str) -> Starlette:
    """The agent that replies in this shape."""
    is_rest = shape.startswith("rest-")
    binding = "HTTP+JSON" if is_rest else "JSONRPC"
    card = AgentCard(
        name="new agent",
        description="Speaks 1.0.",
        version="1",
        supported_interfaces=[AgentInterface(url=ADVERTISED, protocol_binding=binding, protocol_version="1.0")],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="play", name="Play", description="Plays.", tags=["web"])],
    )
    agent = Agent(shape.removeprefix("rest-"))
    handler = DefaultRequestHandler(agent_executor=agent, task_store=InMemoryTaskStore(), agent_card=card)
    rpc = create_rest_routes(handler) if is_rest else create_jsonrpc_routes(handler, rpc_url="/")
    return Starlette(routes=[*create_agent_card_routes(card), *rpc])


if __name__ == "__main__":
    serve(app_of, OPTIONS.shapes)
