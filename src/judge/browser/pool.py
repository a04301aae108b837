"""The browsers of an assessment: one per task running in parallel, with a new context for each task."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judge.browser.chromium import BrowserSettings
from judge.browser.display import virtual_display
from judge.browser.folders import BrowserFolder
from judge.browser.mcp_server import McpServer
from judge.browser.orphans import reaping_orphans
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.tools import offered_tools
from judge.network.guard import Guard, guarding
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import UpstreamProxy
from shared.errors import AttemptAbandoned, EnvironmentFault, ParticipantError
from shared.logs import log_context
from shared.models import ToolSpec
from shared.patience import patience

if TYPE_CHECKING:
    from judge.network.tls import Authority

# A browser gets slower and larger with use; a new one costs a second.
TASKS_PER_BROWSER = 50
# If a page hangs, starting a new browser is faster than waiting.
_RENEW_LIMIT_S = 5.0
_log = logging.getLogger(__name__)


class _Slot:
    """A browser with its server, folder and guard. `end` may be called at any time and ends them all."""

    def __init__(self, authority: "Authority | None", settings: BrowserSettings) -> None:
        self.authority = authority
        self.settings = settings
        self._stack = AsyncExitStack()
        self._server: McpServer
        self._tools: tuple[ToolSpec, ...]
        self._guard: Guard | None = None
        self.tasks = 0

    async def start(self, task_id: str, *, is_guarded: bool) -> None:
        """Raises `BrowserFault`."""
        settings = self.settings.for_task(task_id)
        if settings.xvfb is not None:
            # One for each browser, because a display has one clipboard.
            display = virtual_display(settings.xvfb, settings.config, settings.environment)
            settings = settings.on_display(await self._stack.enter_async_context(display))
        # A hosted browser connects by itself.
        if is_guarded and settings.hosted is None:
            upstream = UpstreamProxy.of(settings.config)
            self._guard = await self._stack.enter_async_context(guarding(None, upstream=upstream))
        folder = BrowserFolder()
        self._stack.callback(folder.remove)
        self._server = McpServer(settings, folder.path, self._guard.url if self._guard else None, self.authority)
        self._stack.push_async_callback(self._server.end)
        self._tools = offered_tools(await self._server.start(), settings.config.actions)

    def begin(self, policy: NetworkPolicy | None, interceptor: Interceptor | None) -> PlaywrightBrowser:
        """The browser for the next task, with network access as `policy` allows."""
        self.tasks += 1
        if self._guard and self.authority and interceptor:
            # Imported on first use, as in `_new_authority`.
            from judge.network.intercepting import intercepted

            self._guard.allow(policy, intercepted(self._guard, interceptor, self.authority))
        elif self._guard:
            self._guard.allow(policy)
        return PlaywrightBrowser(self._server, self._tools, self._guard)

    @property
    def is_alive(self) -> bool:
        return self._server.is_alive

    async def shut(self) -> None:
        """Block all network access of the task's pages."""
        if self._guard:
            await self._guard.shut()

    async def renew(self) -> None:
        """Prepare for another task. Raises `BrowserFault` or `TimeoutError`."""
        async with patience(_RENEW_LIMIT_S):
            await self._server.renew()

    async def end(self) -> None:
        await self._stack.aclose()


class BrowserPool:
    """Lends browsers, each to one task at a time. A returned browser is immediately prepared for the next task.

    A browser is closed after `tasks_per_browser` tasks, and after any task that did not end normally, because a fault
    leaves it in an unknown state. New ones are started on demand.
    """

    def __init__(self, settings: BrowserSettings, *, is_guarded: bool, tasks_per_browser: int) -> None:
        self._settings = settings
        self._is_guarded = is_guarded
        self._tasks_per_browser = 1 if settings.hosted and settings.hosted.is_per_task else tasks_per_browser
        # For the browsers whose requests are intercepted; browsers of other tasks do not trust it.
        self._authority: Authority | None = None
        # One for each returned browser; its result is the prepared browser, or `None` if it was ended.
        self._waiting: list[asyncio.Task[_Slot | None]] = []
        self._slots: set[_Slot] = set()

    @property
    def size(self) -> int:
        """How many browsers are open, or just being opened or closed."""
        return len(self._slots)

    @asynccontextmanager
    async def browser(
        self,
        policy: NetworkPolicy | None,
        interceptor: Interceptor | None = None,
        *,
        task_id: str = "",
        changes: Mapping[str, Any] = MappingProxyType({}),
    ) -> AsyncIterator[PlaywrightBrowser]:
        """A browser for one task, without any trace of earlier ones, with network access as `policy` allows.

        Without a policy, all access is blocked. In pools without guards, and of hosted browsers, it is unrestricted.
        An `interceptor` needs a guard. `task_id` goes into the address of a hosted browser.
        `changes` are settings of this task that differ from the others'.
        Raises `BrowserFault` if no browser can be started.
        """
        authority = None
        if interceptor is not None:
            if not self._is_guarded or self._settings.hosted is not None:
                # Otherwise the requests would reach the network.
                raise ValueError("an interceptor needs a guard")
            authority = self._authority = self._authority or _new_authority()
        settings = self._settings.changed(changes)
        slot = await self._take_slot(authority, settings) or await self._started(authority, settings, task_id)
        is_sound = False
        try:
            yield slot.begin(policy, interceptor)
            is_sound = True
        # The participant failed or gave up, and the browser works.
        except (ParticipantError, AttemptAbandoned):
            is_sound = True
            raise
        finally:
            self._waiting.append(asyncio.create_task(self._made_ready(slot, is_sound=is_sound)))

    async def _take_slot(self, authority: "Authority | None", settings: BrowserSettings) -> _Slot | None:
        """A ready browser, or else one in preparation; `None` if there is none.

        One of another kind (with or without an authority, with other settings) is closed, so that there are never more
        browsers than tasks.
        """
        while self._waiting:
            waiting = next((each for each in self._waiting if each.done()), self._waiting[0])
            self._waiting.remove(waiting)
            try:
                # Shielded, so that the browser is prepared for another task even if this one is cancelled.
                slot = await asyncio.shield(waiting)
            except asyncio.CancelledError:
                self._waiting.append(waiting)
                raise
            if slot and slot.is_alive and slot.authority is authority and slot.settings == settings:
                return slot
            if slot:
                # If it died between two tasks, no task is affected.
                await self._end_slot(slot)
        return None

    async def _started(self, authority: "Authority | None", settings: BrowserSettings, task_id: str) -> _Slot:
        slot = _Slot(authority, settings)
        # Before it starts, so that `end` also ends a browser just starting.
        self._slots.add(slot)
        async with AsyncExitStack() as unless_started:
            unless_started.push_async_callback(self._end_slot, slot)
            # What a browser logs later may be about another task.
            with log_context(task=None, attempt=None):
                await slot.start(task_id, is_guarded=self._is_guarded)
            unless_started.pop_all()
        return slot

    async def _made_ready(self, slot: _Slot, *, is_sound: bool) -> _Slot | None:
        """The slot with a new context; otherwise ends the slot and returns `None`."""
        try:
            # First, so that pages of the last task can send nothing more.
            await slot.shut()
            if is_sound and slot.tasks < self._tasks_per_browser:
                await slot.renew()
                return slot
        except (EnvironmentFault, TimeoutError, OSError) as error:
            _log.info("a browser is replaced: %s", str(error) or "it hangs")
        await self._end_slot(slot)
        return None

    async def _end_slot(self, slot: _Slot) -> None:
        await _despite_cancellation(slot.end)
        self._slots.discard(slot)

    async def end(self) -> None:
        """End every browser. None of them may still be lent out."""
        for each in self._waiting:
            each.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        await asyncio.gather(*(slot.end() for slot in self._slots))


def _new_authority() -> "Authority":
    """Imported on first use, because the import takes some 40 ms and few runs need it."""
    from judge.network.tls import Authority

    return Authority()


@asynccontextmanager
async def browser_pool(
    settings: BrowserSettings, *, is_guarded: bool = True, tasks_per_browser: int = TASKS_PER_BROWSER
) -> AsyncIterator[BrowserPool]:
    """A pool that starts browsers on demand, and ends and removes all of them however the body ends."""
    pool = BrowserPool(settings, is_guarded=is_guarded, tasks_per_browser=tasks_per_browser)
    async with reaping_orphans():
        try:
            yield pool
        finally:
            await _despite_cancellation(pool.end)


async def _despite_cancellation(work: Callable[[], Awaitable[None]]) -> None:
    """Finish `work` even if cancelled, then re-raise the cancellation."""
    task = asyncio.ensure_future(work())
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            is_cancelled = True
    task.result()
    if is_cancelled:
        raise asyncio.CancelledError
