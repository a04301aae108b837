"""What the conformance kit talks to: our server code with a test double that accepts any text and goes on working.

    python -m interop.conformance.agent_under_test

The kit cancels tasks, asks for them and sends them further messages, so it needs tasks that stay in WORKING after the
call that made them has returned. Our agents end what they begin: that is what the double replaces. They also refuse
to list tasks, since anyone could read everybody's results; the kit needs the list to look at what it made, so here the
SDK answers. Card, routes, request handler, task store and guards are the real ones. Prints its address when it listens.
"""

import asyncio
from unittest.mock import patch

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskUpdater
from a2a.types import Part, TaskState
from starlette.applications import Starlette

from shared.a2a import server as a2a_server
from shared.a2a.serving import listen, serve_app
from shared.a2a.tasks import AgentMessage, TaskSink

HOST = "127.0.0.1"


class WorkingForEver(AgentExecutor):
    """Begins every task and ends only what is cancelled."""

    def __init__(self, agent: object, **options: object) -> None:
        del agent, options

    async def stop(self) -> None:
        """Nothing is in progress."""

    def attendance(self, task_id: str) -> None:
        """Nobody is waited for."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.current_task is None:
            await TaskSink(context, event_queue).begin()
        else:
            updater = TaskUpdater(event_queue, context.task_id or "", context.current_task.context_id)
            await updater.start_work(updater.new_agent_message([Part(text="Going on.")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskSink(context, event_queue).end(TaskState.TASK_STATE_CANCELED, "Cancelled on request.")


async def _unused(turn: AgentMessage) -> str:
    return turn.text


def app_under_test(card_url: str) -> Starlette:
    """Our server with the double in it."""
    with patch.multiple(a2a_server, TaskRuns=WorkingForEver, _Handler=DefaultRequestHandler):
        return a2a_server.build_app(
            _unused,
            name="Agent under inspection",
            description="Accepts any text and goes on working.",
            version="1.0.0",
            card_url=card_url,
            skills=[a2a_server.Skill(id="work", name="Work", description="Begins to work.", tags=("work",))],
        )


async def main() -> None:
    """Serve until a signal."""
    sock = listen(HOST, 0)
    # By name: to the kit an address in the card is a secret that leaks.
    url = f"http://localhost:{sock.getsockname()[1]}/"
    print(url, flush=True)
    await serve_app(app_under_test(url), sock)


if __name__ == "__main__":
    asyncio.run(main())
