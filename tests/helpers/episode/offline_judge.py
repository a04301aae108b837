"""A judge in this process that decides by checks alone."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from helpers.a2a.agents import our_agent
from helpers.episode.live_judge import served
from judge.server.service import JudgeService
from shared.a2a.serving import address_of, listen
from shared.settings import Settings


@asynccontextmanager
async def offline_judge(folder: Path, card_url: str | None = None) -> AsyncIterator[str]:
    """Gives the address at which it listens, which is also in its card unless that names another."""
    settings = Settings.from_environ({**os.environ, "WABE_TRUST_CONFIG": "1"})
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    service = JudgeService(settings, folder, own_address=url)
    async with served(our_agent(service, card_url=card_url or url, task_db=folder / "tasks.sqlite"), sock):
        yield url
