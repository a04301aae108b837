"""Restarts a scenario's sites on request of the judge, which resets sites but did not start them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress

from judge.runner.launch import Child, site_member, wait_until_up
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError


@asynccontextmanager
async def restarts_of(sites: Sequence[SiteEntry], children: Sequence[Child]) -> AsyncIterator[dict[str, str]]:
    """While the body runs, a POST to a site's restart address restarts it. Yields these addresses by site endpoint.

    Only sites with `restart` have one. The answer comes once the site is up again, or is an error that says why not.
    """
    running = {child.name: child for child in children}
    by_path = {f"/{place}": site for place, site in enumerate(sites) if site.restart and site.name in running}
    if not by_path:
        yield {}
        return

    answering: set[asyncio.Task[object]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            answering.add(task)
            task.add_done_callback(answering.discard)
        # Python 3.11 prints a traceback for a connection whose task was cancelled.
        with suppress(asyncio.CancelledError), closing(writer):
            words = (await reader.readline()).decode("ascii", "replace").split()
            site = by_path.get(words[1]) if len(words) == 3 and words[0] == "POST" else None
            status = "404 Not Found" if site is None else await _restarted(site, running[site.name])
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield {site.endpoint: f"http://127.0.0.1:{port}{path}" for path, site in by_path.items()}
    finally:
        server.close()
        # Sites that are being restarted are about to be stopped anyway.
        for task in answering:
            task.cancel()


async def _restarted(site: SiteEntry, child: Child) -> str:
    """The status of the answer."""
    try:
        await child.stop()
        await child.start()
        await wait_until_up(site_member(site), child)
    except ConfigError:
        return "500 The site did not start again"
    return "204 No Content"
