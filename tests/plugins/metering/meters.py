"""A meter in this process, or in one of its own, before stand-ins for the providers."""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from helpers.paths import ROOT
from judge.plugins.metering.ledger import Ledger
from judge.plugins.metering.program import VARIABLE
from judge.plugins.metering.proxy import Meter, MeterSettings, ProviderRoute
from judge.results.metering import Call, read_ledger
from shared.a2a.serving import listen

# In this order in the meter's addresses.
FORMATS = ("openai", "anthropic", "gemini")


@dataclass
class Metered:
    """A running meter and its ledger. `process` is its process, if it has one of its own."""

    url: str
    secret: str
    ledger: Path
    process: asyncio.subprocess.Process | None = None

    def address(self, path: str) -> str:
        """The address of a call with this path at its provider."""
        number = 1 if path == "/v1/messages" else 2 if "/models/" in path else 0
        return f"{self.url}/{self.secret}/{number}{path}"

    def calls(self) -> list[Call]:
        return list(read_ledger(self.ledger).calls)

    def by_model(self) -> dict[str, Call]:
        return {str(call.end.model): call for call in self.calls()}


def settings_of(ledger: Path, upstream: str, *, one_slot: bool = False) -> MeterSettings:
    secret = secrets.token_urlsafe(8)
    upstreams = tuple(ProviderRoute(role="white_agent", secret=secret, provider=name, url=upstream) for name in FORMATS)
    other = ProviderRoute(role="other", secret=secrets.token_urlsafe(8), provider="openai", url=upstream)
    return MeterSettings(ledger=str(ledger), upstreams=(*upstreams, other), one_slot=one_slot)


@contextlib.asynccontextmanager
async def metering(ledger: Path, upstream: str, *, one_slot: bool = False) -> AsyncIterator[Metered]:
    """A meter in this process while the body runs."""
    settings = settings_of(ledger, upstream, one_slot=one_slot)
    ledger_file = Ledger(ledger)
    lost: list[OSError] = []
    meter = Meter(settings, ledger_file.write, lost.append)
    config = uvicorn.Config(
        meter, interface="asgi3", log_level="critical", lifespan="off", ws="none", server_header=False
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as sock:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield Metered(f"http://127.0.0.1:{sock.getsockname()[1]}", settings.upstreams[0].secret, ledger)
        finally:
            server.should_exit = server.force_exit = True
            await serving
            await meter.aclose()
            ledger_file.close()


@contextlib.asynccontextmanager
async def metering_process(ledger: Path, upstream: str, port: int) -> AsyncIterator[Metered]:
    """A meter in a process of its own while the body runs, as `wabe run --meter` starts it."""
    settings = settings_of(ledger, upstream)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "judge.plugins.metering.program",
        str(port),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), VARIABLE: settings.model_dump_json()},
    )
    try:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.05)
        yield Metered(f"http://127.0.0.1:{port}", settings.upstreams[0].secret, ledger, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
