"""Recording and replaying in this process, with the plug-in's own interceptors and without a judge."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool
from judge.network.policy import NetworkPolicy
from judge.plugins.frozen.exchanges import SiteRecording
from judge.plugins.frozen.recording import RecordingInterceptor
from judge.plugins.frozen.seam import FORMAT, WaczArchive
from judge.plugins.frozen.wacz import write_wacz
from judge.records.ledger import LedgerEntry
from judge.records.tasks import Task

Take = Callable[[], Sequence[LedgerEntry]]


@dataclass
class Recorder:
    """The walks of an archive."""

    walks: list[RecordingInterceptor] = field(default_factory=list)

    def begin(self, task: Task, repeats: str | None = None) -> RecordingInterceptor:
        """The next walk. The first one of a task is its reference. `repeats`: the walk that it plays once more."""
        is_first = all(each.walk.task_id != task.task_id for each in self.walks)
        name = f"{len(self.walks) + 1:03}-{task.task_id}"
        walk = RecordingInterceptor(name, task.secrets, task_id=task.task_id, is_reference=is_first, repeats=repeats)
        self.walks.append(walk)
        return walk

    def saved(self, path: Path) -> WaczArchive:
        """Write the archive, and open it as the judge does."""
        exchanges = tuple(exchange for each in self.walks for exchange in each.exchanges)
        write_wacz(path, SiteRecording(tuple(each.walk for each in self.walks), exchanges))
        return FORMAT.open(path)


@asynccontextmanager
async def recording(
    pool: BrowserPool, policy: NetworkPolicy, recorder: Recorder, task: Task, *, is_again: bool = False
) -> AsyncIterator[PlaywrightBrowser]:
    """A browser whose requests are recorded as the next walk; `is_again`: with the actions of the walk before."""
    repeats = recorder.walks[-1].walk.name if is_again else None
    async with pool.browser(policy, recorder.begin(task, repeats)) as browser:
        yield browser


@asynccontextmanager
async def replaying(
    pool: BrowserPool, policy: NetworkPolicy, archive: WaczArchive, task: Task
) -> AsyncIterator[tuple[PlaywrightBrowser, Take]]:
    """A browser whose requests an archive answers, and what takes their grades."""
    replay = archive.replay(task.task_id, task.secrets)
    async with pool.browser(policy, replay) as browser:
        yield browser, replay.take
