"""A browser that somebody else runs (`cdp_url`): its address, the connection to it, and what cannot be played there.

`server.cjs` connects to it, once for each slot, and writes what becomes of the connection into `STATE_FILE`. It has no
guard: nothing limits where its pages connect.
"""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, ValidationError

from judge.config import CDP_TASK, RunConfig
from judge.records.tasks import Task
from judge.sites import Place, place_of, refuse_ip, refuses_always
from shared.errors import ConfigError
from shared.models import Record

STATE_FILE = "hosted.json"
_KEY = "config.cdp_url"


class Connection(Record):
    """What `server.cjs` knows of the connection. `version` is the browser's own; `cause` is why there is none."""

    state: Literal["connected", "refused", "lost"]
    version: str = Field(default="", max_length=100)
    cause: str = Field(default="", max_length=100)


class HostedBrowser(Record):
    """The browser at an address. `name` is what may be shown and recorded of that: it has no token."""

    url: str = Field(repr=False)
    name: str

    @classmethod
    def of(cls, config: RunConfig) -> "HostedBrowser | None":
        """The hosted browser of a run, if it has one. Raises `ConfigError` if its variable has not been resolved."""
        if config.cdp_url is None:
            return None
        if "${" in config.cdp_url:
            raise ConfigError("a variable of a scenario file", key=_KEY, remedy="send its value")
        return cls(url=config.cdp_url, name=config.recorded()["cdp_url"])

    @property
    def is_per_task(self) -> bool:
        """Whether each task has an address of its own, and so a connection."""
        return CDP_TASK in self.url

    def for_task(self, task_id: str) -> "HostedBrowser":
        """The browser at the address for a task."""
        return self.model_copy(update={"url": self.url.replace(CDP_TASK, quote(task_id, safe=""))})


def read_connection(folder: Path) -> Connection | None:
    """The state of the connection of the server in `folder`; `None` if it has not written any."""
    with suppress(OSError, ValidationError):
        return Connection.model_validate_json((folder / STATE_FILE).read_bytes())
    return None


async def require_hostable(config: RunConfig, tasks: Iterable[Task]) -> None:
    """Raises `ConfigError` if a task cannot be played in the run's hosted browser, if it has one.

    Nothing there reads all requests or holds any, and nothing keeps pages from private addresses. Such a task is
    refused, unless `cdp_private` says that the browser may visit this network; link-local addresses and those of
    metadata services are always refused.
    """
    if config.cdp_url is None:
        return
    places: dict[Place, str] = {}
    for task in tasks:
        if task.holds_requests:
            problem = f"task {task.task_id} holds requests, and a hosted browser has no guard that could"
            raise ConfigError(problem, key=_KEY, remedy="remove hold and writes, or play it in the judge's own browser")
        if task.watches_requests:
            problem = f"task {task.task_id} has a policy or an attack about requests, and a hosted browser has no guard"
            raise ConfigError(f"{problem} that could read them", key=_KEY, remedy="play it in the judge's own browser")
        sites = (*config.sites.declared(task), *task.start_urls)
        urls = (site if "://" in site else f"http://{site}" for site in sites)
        places |= {place: task.task_id for url in urls if (place := place_of(url)) is not None}
    found = await asyncio.gather(*(asyncio.to_thread(_refusal, place, config) for place in places))
    for (place, task_id), why in zip(places.items(), found, strict=True):
        if why is not None:
            problem = f"task {task_id}: {place} is {why}, and a hosted browser has no guard"
            remedy = "play it in the judge's own browser; cdp_private = true allows private networks and this machine"
            raise ConfigError(problem, key=_KEY, remedy=remedy)


def _refusal(place: Place, config: RunConfig) -> str | None:
    """Why a hosted browser may not visit the place; `None` if it may, or if the name does not resolve here."""
    try:
        infos = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        infos = []
    for address in {str(info[4][0]) for info in infos}:
        why = refuse_ip(address)
        if why is not None and (refuses_always(why) or not config.cdp_private):
            return why
    return None
