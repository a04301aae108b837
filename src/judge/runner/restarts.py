"""Restores the initial state of a scenario's sites at the request of the judge, which did not start them.

The judge resets a site with a `reset_url` by itself, unless a log-in must be repeated afterwards.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from urllib.parse import parse_qs, urlsplit

import httpx

from judge.runner.launch import Child, site_member, wait_until_up
from judge.runner.site_logins import SiteLogins
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError
from shared.tls import site_client

_RESET_S = 30.0


@asynccontextmanager
async def restarts_of(
    sites: Sequence[SiteEntry], children: Sequence[Child], logins: SiteLogins | None = None
) -> AsyncIterator[dict[str, str]]:
    """While the body runs, a POST to a site's restart address resets it. Yields these addresses by site endpoint.

    Sites with `restart` have one, and those with both `reset_url` and `login`. The POST names the task
    (`?task=…`). The answer comes once the site is up again, and is the storage state (JSON) if it was logged in to for
    this task, or an error that says why not.
    """
    running = {child.name: child for child in children}
    by_path = {
        f"/{place}": site
        for place, site in enumerate(sites)
        if (site.restart and site.name in running) or (site.reset_url and logins and logins.has(site))
    }
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
            target = urlsplit(words[1]) if len(words) == 3 and words[0] == "POST" else None
            site = by_path.get(target.path) if target else None
            status, content = "404 Not Found", b""
            if site is not None and target is not None:
                (task_id,) = parse_qs(target.query).get("task", [""])
                status, content = await _again(site, running.get(site.name), logins, task_id)
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + content)
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


async def _again(site: SiteEntry, child: Child | None, logins: SiteLogins | None, task_id: str) -> tuple[str, bytes]:
    """The status and the content of the answer."""
    try:
        if site.restart and child is not None:
            await child.stop()
            await child.start()
            await wait_until_up(site_member(site), child)
        elif site.reset_url:
            async with site_client(timeout=_RESET_S) as client:
                (await client.post(site.reset_url)).raise_for_status()
        if logins is None or not logins.has(site) or not logins.concerns(task_id):
            return "204 No Content", b""
        return "200 OK", json.dumps((await logins.state_of(site)).to_json()).encode()
    except (ConfigError, httpx.HTTPError) as error:
        return "500 The site is not back", str(error).encode()
