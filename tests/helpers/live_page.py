"""A live page on a port of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from helpers.runs import a_png, write_synthetic_run
from judge.records.events import RunStarted, Sink, StepBegun, StepDone, TaskDone, TaskStarted
from judge.server.live import LiveHub, live_routes
from judge.server.live_records import LiveRecords
from judge.store.layout import RunStore

RUN = "20260101-000000-live"


@asynccontextmanager
async def serving(app: Starlette, port: int = 0) -> AsyncIterator[str]:
    """The address of `app` while the body runs; port 0 takes any free one."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
    job = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await job
        listener.close()


@dataclass
class ServedPage:
    """A live page with a run of four tasks on disk, of which the first is being played."""

    hub: LiveHub
    address: str
    sink: Sink
    store: RunStore

    def page(self, task_id: str, number: int) -> None:
        self.sink(StepBegun(task_id=task_id, step=number, task="Find a lamp", url="https://lamps.example/"))

    def step(self, task_id: str, number: int, action: str = "<Go button> -> CLICK") -> None:
        self.sink(StepDone(task_id=task_id, step=number, max_steps=15, action=action, executed=True))

    def done(self, task_id: str, reason: str = "all met") -> None:
        self.sink(TaskDone(task_id=task_id, outcome="success", steps=3, reason=reason))


@asynccontextmanager
async def live_page(folder: Path, port: int = 0) -> AsyncIterator[ServedPage]:
    store = write_synthetic_run(folder, RUN, tasks=4, steps=3, image=a_png(320, 180))
    hub = LiveHub(LiveRecords(folder))
    async with serving(Starlette(routes=live_routes(hub, folder)), port) as address:
        sink = hub.watch(RUN)
        sink(RunStarted(run_id=RUN, total=4))
        sink(TaskStarted(task_id="task_000", attempt=1, max_steps=15))
        yield ServedPage(hub, address, sink, store)
        await hub.close()
