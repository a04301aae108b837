"""Restores the initial state of a scenario's sites at the request of the judge, which did not start them.

The judge resets a site with a `reset_url` of its own by itself, unless a log-in must be repeated afterwards.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from judge.runner.instances import at, instance_name
from judge.runner.launch import Child, site_member, wait_until_up
from judge.runner.routes import routed_client
from judge.runner.site_logins import SiteLogins
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError
from shared.tls import refused_reset, why_no_answer

_RESET_S = 30.0
_INSTANCES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_NONE: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True)
class _ResetSite:
    """A site that is reset here, with the child of each of its instances started here, by address."""

    entry: SiteEntry
    children: Mapping[str, Child]


@asynccontextmanager
async def restarts_of(
    sites: Sequence[SiteEntry],
    children: Sequence[Child],
    logins: SiteLogins | None = None,
    instances: Mapping[str, Sequence[str]] = _NONE,
) -> AsyncIterator[dict[str, str]]:
    """While the body runs, a POST to a site's restart address resets it. Yields these addresses by site endpoint.

    Sites with `restart` have one, and those with a `reset_url` that also have a `login`, or that another service
    resets. `instances` are the addresses of those that sites have, by endpoint. The POST names the task (`?task=…`),
    and the attempt's instances by endpoint (`&instances=…`, JSON), of which it resets the site's. The answer comes once
    the site is up again, and is the storage state (JSON) if it was logged in to for this task, or an error that says
    why not.
    """
    running = {child.name: child for child in children}
    by_path: dict[str, _ResetSite] = {}
    for place, site in enumerate(sites):
        names = {
            address: instance_name(site.name, site.endpoint, address)
            for address in instances.get(site.endpoint, (site.endpoint,))
        }
        reset_site = _ResetSite(site, {address: running[name] for address, name in names.items() if name in running})
        logs_in = site.reset_url and logins and logins.has(site)
        if (site.restart and reset_site.children) or logs_in or site.is_reset_elsewhere:
            by_path[f"/{place}"] = reset_site
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
                status, content = await _answer(site, logins, parse_qs(target.query), instances)
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + content)
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield {site.entry.endpoint: f"http://127.0.0.1:{port}{path}" for path, site in by_path.items()}
    finally:
        server.close()
        # Sites being restarted are about to be stopped anyway.
        for task in answering:
            task.cancel()


async def _answer(
    site: _ResetSite,
    logins: SiteLogins | None,
    query: Mapping[str, Sequence[str]],
    instances: Mapping[str, Sequence[str]],
) -> tuple[str, bytes]:
    """The status and the content of the answer."""
    (task_id,) = query.get("task", [""])
    try:
        lent = _INSTANCES.validate_json(query.get("instances", ["{}"])[0])
        for endpoint, address in lent.items():
            if address not in instances.get(endpoint, ()):
                raise ConfigError(f"{endpoint} has no instance at {address}")
        await _reset(site, lent)
        if logins is None or not logins.has(site.entry) or not logins.concerns(task_id):
            return "204 No Content", b""
        return "200 OK", json.dumps((await logins.state_of(site.entry, lent)).to_json()).encode()
    except ValidationError:
        return "400 Bad Request", b"the instances are unreadable"
    except httpx.HTTPError as error:
        return "500 The site is not back", why_no_answer(error).encode()
    except ConfigError as error:
        return "500 The site is not back", str(error).encode()


async def _reset(site: _ResetSite, lent: Mapping[str, str]) -> None:
    """Reset an attempt's instance of a site. Raises `ConfigError` or `httpx.HTTPError`."""
    entry = site.entry
    if not entry.restart:
        async with routed_client(lent, timeout=_RESET_S) as client:
            answer = await client.post(entry.reset_url or "")
        if not answer.is_success:
            raise ConfigError(refused_reset(answer))
        return
    address = lent.get(entry.endpoint, entry.endpoint)
    if (child := site.children.get(address)) is None:
        raise ConfigError(f"{entry.endpoint} has no instance at {address}")
    await child.stop()
    await child.start()
    await wait_until_up(at(site_member(entry), address), child)
