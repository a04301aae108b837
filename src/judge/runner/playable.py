"""Checks that a scenario's sites have the start pages of its tasks: a participant cannot be blamed for a 404."""

import shlex
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from judge.config import RunConfig
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.runner.launch import Member
from judge.runner.routes import routed_client
from shared.concurrency import for_each
from shared.errors import ConfigError

_FOLDER_OPTIONS = ("--directory", "-d")
_PAGE_TIMEOUT_S = 10.0
_AT_ONCE = 8
# Of a browser that opens a page which somebody has typed the address of.
_NAVIGATION = MappingProxyType(
    {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        "Upgrade-Insecure-Requests": "1",
        "Sec-Fetch-Site": "none",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-User": "?1",
        "Sec-Fetch-Dest": "document",
    }
)
# Where none is configured. The browser's differs in its version only.
_USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"
# More would delay the start of a large task set; the browser will find the others.
_MAX_PAGES = 200


def require_folders(members: Iterable[Member], scenario_dir: Path) -> None:
    """Raises `ConfigError` if the folder that a site's `python -m http.server` is to serve does not exist."""
    for member in members:
        folder = served_folder(member, scenario_dir)
        if folder is not None and not folder.is_dir():
            raise ConfigError(
                f"site {member.name}: {folder}, which its cmd serves, does not exist",
                remedy="install or build what belongs there, or correct the cmd",
            )


def served_folder(member: Member, scenario_dir: Path) -> Path | None:
    """The folder that a command with Python's web server serves; other commands are not understood."""
    try:
        words = [word.replace("{scenario_dir}", str(scenario_dir)) for word in shlex.split(member.cmd or "")]
    except ValueError:
        return None
    if member.is_agent or "http.server" not in words:
        return None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in _FOLDER_OPTIONS:
            # A relative one is relative to where this process, and so its child, runs.
            return Path(value if equals else following)
    return None


async def require_first_pages(members: Iterable[Member], tasks: Sequence[Task], config: RunConfig) -> None:
    """Raises `ConfigError` if the first page of a task is not found on a site started here.

    Pages are requested as a browser with the settings of `config` opens them: a single-page application may answer 404
    to anything else. Tasks with a log-in are left out, because some sites answer 404 to anyone who is not logged in.
    """
    started = {origin_of(each.endpoint): each for each in members if not each.is_agent and each.cmd is not None}
    routes = {site: address for each in started.values() for site, address in each.routes.items()}
    first: dict[str, Task] = {}
    for task in tasks:
        if origin_of(task.website) in started and task.storage_state is None and not task.http_credentials:
            first.setdefault(task.website, task)
    missing: list[str] = []
    options: dict[str, Any] = {"headers": _navigation(config), "timeout": _PAGE_TIMEOUT_S, "follow_redirects": True}
    async with routed_client({}, **options) as client, routed_client(routes, **options) as routed:

        async def look(url: str) -> None:
            fetcher = routed if started[origin_of(url)].routes else client
            try:
                async with fetcher.stream("GET", url) as response:
                    if response.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                        missing.append(url)
            except (httpx.HTTPError, httpx.InvalidURL):
                # The browser will find it as well, and report it as the site's fault.
                return

        await for_each(list(first)[:_MAX_PAGES], look, at_once=_AT_ONCE)
    if missing:
        url = min(missing, key=list(first).index)
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        name = started[origin_of(url)].name
        raise ConfigError(
            f"site {name} does not have {url}{more} (404), where task {first[url].task_id} begins",
            remedy="install or build what the site's cmd serves, or correct the task's website",
        )


def _navigation(config: RunConfig) -> dict[str, str]:
    return {**_NAVIGATION, "Accept-Language": config.locale, "User-Agent": config.user_agent or _USER_AGENT}
