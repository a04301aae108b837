"""Shows the logs of running children as they grow (`--show-logs`)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from judge.runner.children import Child

_POLL_S = 0.2


@asynccontextmanager
async def show_logs(children: Sequence[Child], console: Console, *, enabled: bool) -> AsyncIterator[None]:
    """While the body runs, print each new line of each child's log, named."""
    tasks = [asyncio.create_task(_follow(child.name, child.log, console)) for child in children] if enabled else []
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _follow(name: str, path: Path, console: Console) -> None:
    with path.open("rb") as stream:
        rest = b""
        while True:
            rest += stream.read()
            *lines, rest = rest.split(b"\n")
            for line in lines:
                console.print(Text.assemble((f"{name} | ", "dim"), line.decode("utf-8", "replace")), soft_wrap=True)
            if not lines:
                await asyncio.sleep(_POLL_S)
