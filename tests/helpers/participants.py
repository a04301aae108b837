"""Participants in the test's own process: what they observe, and a server around one."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette

from participants.base import Decide, Observation, build_participant
from participants.model import ModelParticipant
from shared import models
from shared.models import Page, ToolSpec


def observed(
    page: Page,
    tools: tuple[ToolSpec, ...] = (),
    *,
    instruction: str,
    step: int = 0,
    feedback: str | None = None,
    context_id: str = "attempt",
) -> Observation:
    """What a participant sees at a step of an attempt."""
    website = "https://a.test/"
    message = models.ObservationMessage(
        page=page, tools=tools, instruction=None if step else instruction, website=website, feedback=feedback
    )
    fields = dict(message) | {"instruction": instruction}
    return Observation(**fields, context_id=context_id, step=step, message=message)


@asynccontextmanager
async def serving_participant(decide: Decide) -> AsyncIterator[str]:
    """The address of an A2A server around `decide`."""
    try:
        async with serving_agent(lambda url: build_participant(decide, name="test", card_url=url)) as url:
            yield url
    finally:
        if isinstance(decide, ModelParticipant):
            await decide.aclose()


@asynccontextmanager
async def serving_agent(build: Callable[[str], Starlette]) -> AsyncIterator[str]:
    """The address of an agent that is built for it."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        server = uvicorn.Server(uvicorn.Config(build(url), log_level="critical", lifespan="on"))
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield url
        finally:
            server.should_exit = True
            await task
