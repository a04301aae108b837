"""Browsers that live on from one test of a process to the next, each with a new context, as between a run's tasks.

Starting a browser with its server takes a second of CPU, which is more than most tests need for the rest. Tests of
processes, and those that kill some, are marked `own_browser`.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.browser import pool
from judge.browser.chromium import BrowserSettings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import TASKS_PER_BROWSER, BrowserPool
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy

# More that wait for a test take memory.
_IDLE_BROWSERS = 2
_IDLE_KINDS = 2


class _LastingPool(BrowserPool):
    """A pool that outlives a test. Its folders are not in the test's own temporary folder, which the test removes."""

    async def _started(self, *args: Any) -> Any:
        during = tempfile.tempdir
        tempfile.tempdir = None
        try:
            return await super()._started(*args)
        finally:
            tempfile.tempdir = during

    async def rest(self) -> None:
        """Prepare what was returned for the next test, now: no time passes in this loop between two tests."""
        await asyncio.gather(*self._waiting)
        surplus, self._waiting = self._waiting[_IDLE_BROWSERS:], self._waiting[:_IDLE_BROWSERS]
        for slot in await asyncio.gather(*surplus):
            if slot:
                await self._end_slot(slot)


class _BorrowedPool(BrowserPool):
    """A kept pool during one test, whose own limits hold meanwhile."""

    def __init__(self, settings: BrowserSettings, plain: _LastingPool, intercepted: _LastingPool) -> None:
        self._settings = settings
        self._plain, self._intercepted = plain, intercepted

    @asynccontextmanager
    async def browser(
        self,
        policy: NetworkPolicy | None,
        interceptor: Interceptor | None = None,
        *,
        task_id: str = "",
        changes: Mapping[str, Any] = MappingProxyType({}),
    ) -> AsyncIterator[PlaywrightBrowser]:
        own_pool = self._intercepted if interceptor else self._plain
        async with own_pool.browser(policy, interceptor, task_id=task_id, changes=changes) as browser:
            browser._server.settings = self._settings.changed(changes)
            yield browser


class KeptBrowsers:
    """The pools of a process, by everything that a browser is started with."""

    def __init__(self) -> None:
        # The loop in which they live; none are kept before it runs.
        self.loop: asyncio.AbstractEventLoop | None = None
        # Not during tests of processes.
        self.is_lending = True
        self._pools: dict[Hashable, tuple[_LastingPool, _LastingPool]] = {}
        self._borrowed: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def pool(
        self, settings: BrowserSettings, *, is_guarded: bool = True, tasks_per_browser: int = TASKS_PER_BROWSER
    ) -> AsyncIterator[BrowserPool]:
        """As `judge.browser.pool.browser_pool`."""
        is_own = settings.hosted is not None or settings.xvfb is not None or tasks_per_browser != TASKS_PER_BROWSER
        if is_own or not self.is_lending or self.loop is not asyncio.get_running_loop():
            started = pool.browser_pool(settings, is_guarded=is_guarded, tasks_per_browser=tasks_per_browser)
            async with started as own:
                yield own
            return
        key = _started_with(settings, is_guarded=is_guarded)
        # The one used last is at the end.
        browser = self._pools.pop(key, None) or (_new(settings, is_guarded), _new(settings, is_guarded))
        self._pools[key] = browser
        self._borrowed[key] += 1
        try:
            yield _BorrowedPool(settings, *browser)
        finally:
            self._borrowed[key] -= 1
            for each in browser:
                await each.rest()
            idle = [other for other in self._pools if not self._borrowed[other]]
            for other in idle[: max(0, len(idle) - _IDLE_KINDS)]:
                await self._end(self._pools.pop(other))

    async def end(self) -> None:
        """End all of them."""
        while self._pools:
            await self._end(self._pools.popitem()[1])

    async def _end(self, pools: tuple[_LastingPool, _LastingPool]) -> None:
        for each in pools:
            await each.end()


def _new(settings: BrowserSettings, is_guarded: bool) -> _LastingPool:
    return _LastingPool(settings, is_guarded=is_guarded, tasks_per_browser=TASKS_PER_BROWSER)


def _started_with(settings: BrowserSettings, *, is_guarded: bool) -> Hashable:
    """What makes a process of one browser another than that of the next."""
    folder, proxy = Path("/folder"), "http://proxy.example"
    return (
        is_guarded,
        *settings.command(folder, proxy),
        settings.config_file(proxy),
        *sorted(settings.environ(folder).items()),
        settings.config.actions,
        str(settings.config.upstream_proxy),
        settings.config.upstream_resolves,
    )


# Tests without fixtures and fixtures of modules ask it, too.
KEPT = KeptBrowsers()
browser_pool = KEPT.pool
