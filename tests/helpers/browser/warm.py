"""Browsers that outlive the assessment that started them, for tests in which a new browser is not the point."""

from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool

# Each holds a browser for every task that was ever played at the same time.
MAX_POOLS = 2
# Of the folder that all of them have their files in; their processes name it in their environment.
WARM_PREFIX = "warm"
_ANYWHERE = Path("folder")


class WarmBrowsers:
    """Stands in for `judge.browser.pool.browser_pool`: assessments whose browsers are started alike share a pool.

    Each task still gets a context of its own, and a browser is replaced after a fault, as within an assessment.
    `folder` is where temporary files are made meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[Hashable, tuple[BrowserPool, AsyncExitStack]] = {}

    @asynccontextmanager
    async def pool(self, settings: BrowserSettings) -> AsyncIterator[BrowserPool]:
        config = settings.config
        key = (*settings.command(_ANYWHERE), settings.config_file(), config.call_timeout_s, *config.actions)
        if key not in self._open:
            while len(self._open) >= MAX_POOLS:
                _, oldest = self._open.pop(next(iter(self._open)))
                await oldest.aclose()
            stack = AsyncExitStack()
            self._open[key] = (await stack.enter_async_context(browser_pool(settings)), stack)
        yield self._open[key][0]

    def folders(self) -> list[Path]:
        """The folders of the browsers that go on."""
        slots = (slot for pool, _ in self._open.values() for slot in pool._slots)
        # One that is being started may have no server yet.
        return [slot._server.folder for slot in slots if hasattr(slot, "_server")]

    async def aclose(self) -> None:
        for _, stack in self._open.values():
            await stack.aclose()
