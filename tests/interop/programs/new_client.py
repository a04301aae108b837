"""A client on a2a-sdk 1. Every event is one line of JSON on stdout; an error of the client is one as well."""

import asyncio
from collections.abc import Iterable
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
    TaskStatus,
)
from show import Asked, asked, show


def texts(parts: Iterable[Part]) -> list[str]:
    return [part.text for part in parts if part.HasField("text")]


def state(status: TaskStatus) -> str:
    return TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def show_task(task: Task) -> None:
    artifacts = [texts(artifact.parts) for artifact in task.artifacts]
    show(task=task.id, state=state(task.status), said=texts(task.status.message.parts), artifacts=artifacts)


def show_event(event: StreamResponse, artifacts: list[list[str]]) -> None:
    """Like the old SDK's client, which shows the task as it is after each event."""
    if event.HasField("message"):
        show(message=texts(event.message.parts))
    elif event.HasField("task"):
        artifacts[:] = [texts(artifact.parts) for artifact in event.task.artifacts]
        show_task(event.task)
    elif event.HasField("status_update"):
        update = event.status_update
        text = texts(update.status.message.parts)
        show(task=update.task_id, state=state(update.status), said=text, artifacts=artifacts)
    else:
        artifacts.append(texts(event.artifact_update.artifact.parts))
        show(task=event.artifact_update.task_id, state="working", said=[], artifacts=artifacts)


async def talk(what: Asked, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, what.url).get_agent_card()
    interface = next(each for each in card.supported_interfaces if each.protocol_binding == what.binding)
    show(card=card.name, url=interface.url, protocol=interface.protocol_version)
    config = ClientConfig(what.mode in ("stream", "resubscribe"), what.mode == "poll", httpx_client=http)
    config.supported_protocol_bindings = [what.binding]
    client = ClientFactory(config).create(card)
    if what.mode == "get":
        show_task(await client.get_task(GetTaskRequest(id=what.task)))
        return
    if what.mode == "resubscribe":
        events = client.subscribe(SubscribeToTaskRequest(id=what.task))
    else:
        parts = [Part(text=what.text)]
        message = Message(role=Role.ROLE_USER, message_id=uuid4().hex, parts=parts)
        events = client.send_message(SendMessageRequest(message=message))
    artifacts: list[list[str]] = []
    async for event in events:
        show_event(event, artifacts)


async def main() -> None:
    """Do what is asked, and say what went wrong."""
    for what in asked():
        async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=what.read_timeout_s)) as http:
            try:
                await talk(what, http)
            except Exception as error:
                show(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    asyncio.run(main())
