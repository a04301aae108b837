"""A client on a2a-sdk 0.3. Every event is one line of JSON on stdout; an error of the client is one as well."""

import asyncio
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, Task, TaskIdParams, TaskQueryParams, TextPart
from show import Asked, asked, show


def texts(parts: list[Part]) -> list[str]:
    return [part.root.text for part in parts if isinstance(part.root, TextPart)]


def show_task(task: Task) -> None:
    text = texts(task.status.message.parts) if task.status.message else []
    artifacts = [texts(artifact.parts) for artifact in task.artifacts or []]
    show(task=task.id, state=task.status.state.value, said=text, artifacts=artifacts)


async def talk(what: Asked, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, what.url).get_agent_card()
    show(card=card.name, url=card.url, protocol=card.protocol_version)
    config = ClientConfig(what.mode in ("stream", "resubscribe"), what.mode == "poll", httpx_client=http)
    config.supported_transports = [what.binding]
    client = ClientFactory(config).create(card)
    if what.mode == "get":
        show_task(await client.get_task(TaskQueryParams(id=what.task)))
        return
    if what.mode == "resubscribe":
        events = client.resubscribe(TaskIdParams(id=what.task))
    else:
        parts = [Part(root=TextPart(text=what.text))]
        events = client.send_message(Message(role=Role.user, message_id=uuid4().hex, parts=parts))
    async for event in events:
        if isinstance(event, Message):
            show(message=texts(event.parts))
        else:
            show_task(event[0])


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
