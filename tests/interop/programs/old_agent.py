"""An agent on a2a-sdk 0.3, which replies in the requested shape: message, status, artifact, both or input."""

import base64
from collections import Counter

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, FilePart, Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task
from starlette.applications import Starlette
from talk import ADVERTISED, options, reply, serve

OPTIONS = options()


class Agent(AgentExecutor):
    """Answers in one shape."""

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.turns: Counter[str] = Counter()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        files = [part.root.file for part in context.message.parts if isinstance(part.root, FilePart)]
        images = [base64.b64decode(file.bytes) for file in files]
        text = await reply(OPTIONS.gate, self.turns, context.context_id, context.get_user_input(), images)
        if self.shape == "message":
            await event_queue.enqueue_event(new_agent_text_message(text, context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        message = new_agent_text_message(text, task.context_id, task.id)
        if self.shape == "input":
            await updater.update_status(TaskState.input_required, message, final=True)
            return
        if self.shape in ("artifact", "both"):
            await updater.add_artifact([Part(root=TextPart(text=text))], name="reply")
        await updater.complete(message if self.shape in ("status", "both") else None)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        del context, event_queue


def app_of(shape: str) -> Starlette:
    """The agent that replies in this shape."""
    card = AgentCard(
        name="old agent",
        description="Speaks 0.3.",
        url=ADVERTISED,
        version="1",
        default_input_modes=["text"],
        default_output_modes=["text"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="play", name="Play", description="Plays.", tags=["web"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(shape), task_store=InMemoryTaskStore())
    return A2AStarletteApplication(agent_card=card, http_handler=handler).build()


if __name__ == "__main__":
    serve(app_of, OPTIONS.shapes)
