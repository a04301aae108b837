"""A host whose browser is scripted: it goes where it is sent, and the task is to reach one page."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from helpers.episode.scripted import HOME, ScriptedBrowser
from judge.config import RunConfig
from judge.environment.host import EnvironmentHost, Episodes, HostSettings, untimed
from judge.environment.opening import Unrecorded
from judge.episode.attempts import AttemptSetup
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.network.policy import NetworkPolicy
from judge.records.tasks import Task
from shared.settings import Settings

GOAL = f"{HOME}goal"
CHECKS = ({"kind": "page", "url": "/goal"}, {"kind": "page", "url": "/error", "not": True})
GO: Mapping[str, Any] = MappingProxyType({"tool": "browser_navigate", "params": {"url": GOAL}})
LEAVE: Mapping[str, Any] = MappingProxyType({"tool": "browser_navigate", "params": {"url": f"{HOME}other"}})
FINISH: Mapping[str, Any] = MappingProxyType({"tool": "finish", "params": {"answer": "done"}})


async def navigates(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
    if tool == "browser_navigate":
        browser.goes_to(params["url"])


@asynccontextmanager
async def hosting(
    folder: Path,
    opened: Callable[[], ScriptedBrowser] = lambda: ScriptedBrowser(navigates),
    *,
    checks: Sequence[Mapping[str, Any]] = CHECKS,
    task: Mapping[str, Any] = MappingProxyType({}),
    names: Sequence[str] = ("first", "second", "third"),
    host: HostSettings | None = None,
    judge: Judge | None = None,
    episodes: Episodes | None = None,
    **config: Any,
) -> AsyncIterator[EnvironmentHost]:
    """A host with a task of each name; `opened` makes the browser of each attempt."""
    settings = RunConfig(**{"judge_model": "offline", "settle": "real-time", "max_steps": 4, **config})

    @asynccontextmanager
    async def browser(_: NetworkPolicy, *args: object, **kwargs: object) -> AsyncIterator[ScriptedBrowser]:
        yield opened()

    known = {"website": HOME, "task": "Reach the goal.", "checks": checks, **task}
    tasks = [Task.model_validate({"task_id": name, **known}) for name in names]
    judge = judge or open_judge(settings, Settings(), cache_dir=None)
    setup = AttemptSetup(untimed(settings), browser, judge)
    new_host = EnvironmentHost(
        setup, tasks, episodes or Unrecorded(folder), host or HostSettings(), name="scripted", version="1"
    )
    try:
        yield new_host
    finally:
        await new_host.aclose()
