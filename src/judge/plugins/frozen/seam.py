"""Implements the judge's seam for archives (`judge.network.archives`) with WACZ files."""

from collections.abc import Sequence
from pathlib import Path

from judge.network.archives import LOG_IN
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import MATCHER
from judge.plugins.frozen.replay import ReplayInterceptor
from judge.plugins.frozen.wacz import ArchiveContents, read_wacz
from shared.text import counted, one_line

_MAX_LISTED = 2


class WaczArchive:
    """An open archive. Its index is built once."""

    def __init__(self, archive: ArchiveContents) -> None:
        self._archive = archive
        self._index = Index(archive.recording)
        self.digest = archive.digest
        self.matcher = MATCHER

    @property
    def clock_ms(self) -> int:
        """The start of the recording."""
        return self._archive.recording.clock_ms

    @property
    def origins(self) -> frozenset[str]:
        """The recorded origins, with their schemes."""
        return self._archive.recording.origins

    def unplayable(self, task_id: str) -> str | None:
        """See `judge.network.archives.Archive`."""
        checked = self._archive.checked
        if checked is None or checked.matcher != MATCHER:
            return None
        for task in checked.of_tasks:
            if task.task_id == task_id and task.decisive_misses:
                urls_text = ", ".join(one_line(each, 100) for each in task.decisive_misses[:_MAX_LISTED])
                count = counted(len(task.decisive_misses), "request")
                return f"its reference walk needs {count} not in the archive: {urls_text}"
        return None

    def plays(self, task_id: str) -> int:
        """See `judge.network.archives.Archive`."""
        return sum(walk.task_id == task_id for walk in self._archive.recording.walks)

    def replay(self, task_id: str, secrets: Sequence[str]) -> ReplayInterceptor:
        """See `judge.network.archives.Archive`."""
        return ReplayInterceptor(self._index, self._walk_of(task_id), secrets)

    def _walk_of(self, task_id: str) -> str:
        """The walk to prefer: of several of the task, its reference."""
        walks = [walk for walk in self._archive.recording.walks if walk.task_id == task_id]
        if task_id == LOG_IN:
            walks = [walk for walk in self._archive.recording.walks if walk.name.startswith(LOG_IN)]
        walks.sort(key=lambda walk: not walk.is_reference)
        return walks[0].name if walks else ""


class WaczFormat:
    """The format."""

    def open(self, path: Path) -> WaczArchive:
        """Read an archive. Raises `ConfigError` for anything wrong with it."""
        return WaczArchive(read_wacz(path))


FORMAT = WaczFormat()
