"""Checks that a program over MCP has what it needs, and a scenario's sites the start pages of its tasks.

A participant cannot be blamed for a 404.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
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
_OVER_MCP = ["wabe", "participant", "mcp"]
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


def require_programs(members: Iterable[Member], environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` if a program over MCP lacks something."""
    for member in members:
        words = _words(member)
        if words[: len(_OVER_MCP)] == _OVER_MCP:
            for is_there, subject, text in examined(words[len(_OVER_MCP) :], {**environ, **member.env}):
                if not is_there:
                    raise ConfigError(f"{member.name}: {subject}: {text}")


def examined(options: Sequence[str], environ: Mapping[str, str] | None = None) -> list[tuple[bool, str, str]]:
    """What the participant `mcp` with these options says that its program needs: whether it is there, what, a text."""
    words = [sys.executable, "-m", "participants", "mcp", *options, "--check"]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environ)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def served_folder(member: Member, scenario_dir: Path) -> Path | None:
    """The folder that a command with Python's web server serves; other commands are not understood."""
    words = [word.replace("{scenario_dir}", str(scenario_dir)) for word in _words(member)]
    if member.is_agent or "http.server" not in words:
        return None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in _FOLDER_OPTIONS:
            # A relative one is relative to where this process, and so its child, runs.
            return Path(value if equals else following)
    return None


def _words(member: Member) -> list[str]:
    try:
        return shlex.split(member.cmd or "")
    # Its start will say so.
    except ValueError:
        return []


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
