"""A judge's process that is this one, with a scripted browser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from helpers.environment.scripted import hosting
from judge.environment.host import EnvironmentHost, HostSettings
from judge.plugins.openenv.calls import WorkerOrder
from judge.plugins.openenv.worker import play_session
from judge.plugins.openenv.workers import Worker, Workers

ORDER = WorkerOrder(scenario=Path("shop.toml"), host=HostSettings(sessions=2), folder=Path())


class Playing:
    """A judge's process that can be killed and started again: it is a server in this process."""

    def __init__(self, host: EnvironmentHost, folder: Path) -> None:
        self.host = host
        folder.mkdir()
        self.worker = Worker(ORDER.model_copy(update={"folder": folder}), {})
        self._connections: list[asyncio.StreamWriter] = []
        self._is_ending = False

    async def start(self) -> None:
        async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._is_ending:
                writer.transport.abort()
                return
            self._connections.append(writer)
            await play_session(self.host, reader, writer)

        self._server = await asyncio.start_unix_server(session, self.worker.order.socket)
        self.worker.up.set()

    def begin_to_end(self) -> None:
        """From now on it accepts connections and answers none, as a killed process may for a moment."""
        self._is_ending = True
        for each in self._connections:
            each.transport.abort()

    async def kill(self) -> None:
        self.worker.up.clear()
        self._server.close()
        for each in self._connections:
            each.transport.abort()


@asynccontextmanager
async def playing(folder: Path, count: int = 1, sessions: int = 2, **options: Any) -> AsyncIterator[list[Playing]]:
    async with hosting(folder / "results", host=HostSettings(sessions=sessions), **options) as host:
        processes = [Playing(host, folder / str(number)) for number in range(count)]
        for each in processes:
            await each.start()
        try:
            yield processes
        finally:
            for each in processes:
                await each.kill()


def workers_of(processes: list[Playing], sessions: int = 2) -> Workers:
    return Workers([each.worker for each in processes], sessions)
