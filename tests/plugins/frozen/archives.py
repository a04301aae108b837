"""Recording and replaying in this process, with the plug-in's own interceptors and without a judge."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool
from judge.plugins.frozen.exchanges import Recording
from judge.plugins.frozen.recording import RecordingInterceptor
from judge.plugins.frozen.seam import FORMAT, WaczArchive
from judge.plugins.frozen.wacz import write_wacz
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task
from judge.sites import NetworkPolicy

Take = Callable[[], Sequence[LedgerEntry]]


@dataclass
class Recorder:
    """The walks of an archive."""

    walks: list[RecordingInterceptor] = field(default_factory=list)

    def begin(self, task: Task) -> RecordingInterceptor:
        """The next walk. The first one of a task is its reference."""
        is_first = all(each.walk.task_id != task.task_id for each in self.walks)
        name = f"{len(self.walks) + 1:03}-{task.task_id}"
        self.walks.append(RecordingInterceptor(name, task.secrets, task_id=task.task_id, is_reference=is_first))
        return self.walks[-1]

    def saved(self, path: Path) -> WaczArchive:
        """Write the archive, and open it as the judge does."""
        exchanges = tuple(exchange for each in self.walks for exchange in each.exchanges)
        write_wacz(path, Recording(tuple(each.walk for each in self.walks), exchanges))
        return FORMAT.open(path)


@asynccontextmanager
async def recording(
    pool: BrowserPool, policy: NetworkPolicy, recorder: Recorder, task: Task
) -> AsyncIterator[PlaywrightBrowser]:
    """A browser whose requests are recorded as the next walk."""
    async with pool.browser(policy, recorder.begin(task)) as browser:
        yield browser


@asynccontextmanager
async def replaying(
    pool: BrowserPool, policy: NetworkPolicy, archive: WaczArchive, task: Task
) -> AsyncIterator[tuple[PlaywrightBrowser, Take]]:
    """A browser whose requests an archive answers, and what takes their grades."""
    replay = archive.replay(task.task_id, task.secrets)
    async with pool.browser(policy, replay.interceptor) as browser:
        yield browser, replay.take
