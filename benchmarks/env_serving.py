"""For the benchmarks of `wabe env serve`: the server as users start it, a client of it, and a walk through the shop."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from websockets.asyncio.client import ClientConnection, connect

from helpers.ports import free_port
from shared.snapshot import parse_snapshot

TASK = "red_rugs"
# (tool, role and part of the name of the element, parameters): every kind of step that a shopper takes.
WALK: tuple[tuple[str, tuple[str, str] | None, dict[str, Any]], ...] = (
    ("browser_click", ("link", "Lamps"), {}),
    ("browser_select_option", ("combobox", "Sort by"), {"values": ["Price: high to low"]}),
    ("browser_scroll", None, {"direction": "down", "amount": 600}),
    ("browser_scroll", None, {"direction": "up", "amount": 600}),
    ("browser_click", ("link", "Page 2"), {}),
    ("browser_navigate_back", None, {}),
    ("browser_click", ("link", "Help"), {}),
    ("browser_navigate_back", None, {}),
    ("browser_click", ("link", "Desks"), {}),
    ("browser_press_key", None, {"key": "End"}),
)
FINISH: dict[str, Any] = {"tool": "finish", "params": {"answer": "done"}}


def action(step: int, snapshot: str) -> dict[str, Any]:
    """The action of the walk at a step, for the page that has this snapshot."""
    if step >= len(WALK):
        return FINISH
    tool, element, params = WALK[step]
    if element is None:
        return {"tool": tool, "params": params}
    page = parse_snapshot(snapshot)
    found = next((node.ref for node in page.find(element[0]) if element[1] in page.name_of(node)), None)
    return {"tool": tool, "params": {**params, "target": found or "missing"}}


def snapshot_of(text: str) -> str:
    """The snapshot in an observation's text."""
    return text.partition("\nSnapshot:\n")[2]


class WireClient:
    """One session over the wire."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def ask(self, kind: str, data: object = None) -> dict[str, Any]:
        """The data of the answer. Raises `RuntimeError` for an error."""
        await self.socket.send(json.dumps({"type": kind, "data": data}))
        answer = json.loads(await self.socket.recv())
        if answer["type"] == "error":
            raise RuntimeError(answer["data"]["message"])
        return dict(answer["data"])

    async def reset(self) -> str:
        """The text of the first observation of the walk's task."""
        return str((await self.ask("reset", {"task_id": TASK}))["observation"]["text"])

    async def step(self, action: dict[str, Any]) -> dict[str, Any]:
        """The answer to an action."""
        return await self.ask("step", action)


def dialled(place: str) -> connect:
    """A connection to a server."""
    return connect(f"ws://{place}/ws", proxy=None, max_size=None)


@asynccontextmanager
async def served(scenario: Path, *options: str, **environ: str) -> AsyncIterator[tuple[str, psutil.Process]]:
    """The server's `host:port` and its process, for a scenario, until the body ends."""
    place = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "wabe", "env", "serve", str(scenario), "--port", place.partition(":")[2], *options]
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environ}, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(120):
            while True:
                if process.returncode is not None:
                    sys.exit(f"the server ended with {process.returncode}: {' '.join(command)}")
                try:
                    if (await client.get(f"http://{place}/health")).json()["status"] == "healthy":
                        break
                except httpx.HTTPError:
                    await asyncio.sleep(0.2)
        yield place, psutil.Process(process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
