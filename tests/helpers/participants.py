"""Serves participants on loopback, in the test's own process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from participants.base import Decide, build_participant
from participants.model_agent import ModelPlayer


@asynccontextmanager
async def serving_participant(decide: Decide) -> AsyncIterator[str]:
    """The address of an A2A server around `decide`."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        app = build_participant(decide, name="test", card_url=url)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield url
        finally:
            server.should_exit = True
            await task
            if isinstance(decide, ModelPlayer):
                await decide.aclose()
