"""Reports for the live page and the page of all runs, made from the runs' records when somebody opens one.

What a run's folder has as its report is never served: anybody may have put it there, and no signature covers it.
"""

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from judge.report.build import write_report
from judge.report.output import write
from judge.store.layout import RunStore

# Each keeps its pages on the disk.
_MAX_REPORTS = 20


class Reports:
    """The reports and comparisons that were opened last. Their pages are in temporary folders, which end with this."""

    def __init__(self) -> None:
        self._reports: dict[tuple[str, ...], _Report] = {}
        self._making = asyncio.Lock()

    async def file(self, stores: Sequence[RunStore], name: str) -> Path | None:
        """The file of this name in the report of a run, or in the comparison of several; `None` if there is none.

        The report is made with its first file, and again with its front page if a run has changed. Raises a
        `ConfigError` for a run that cannot be read.
        """
        key = tuple(store.run_id for store in stores)
        async with self._making:
            # Taken out, so that it becomes the newest.
            report = self._reports.pop(key, None)
            if report is None or (name == "index.html" and report.state != await asyncio.to_thread(_state_of, stores)):
                # In a thread: reading a long run takes a while and must not delay an assessment.
                report = await asyncio.to_thread(_Report, stores)
            self._reports[key] = report
            while len(self._reports) > _MAX_REPORTS:
                self._reports.pop(next(iter(self._reports)))
        return report.path(name)


class _Report:
    """An `Output` whose pages are files of its own, and whose other files stay where the run has them."""

    def __init__(self, stores: Sequence[RunStore]) -> None:
        self.state = _state_of(stores)
        self._folder = Path(tempfile.mkdtemp(prefix="wabe-report-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files: dict[str, Path] = {}
        write_report(stores, self)

    def page(self, name: str, html: str) -> None:
        """Write a page."""
        # Numbered: names within a report are not used as paths.
        path = self._folder / f"{len(self._files)}{Path(name).suffix}"
        write(path, html)
        self._files[name] = path

    # A table is a text file, like a page.
    table = page

    def file(self, name: str, source: Path) -> None:
        """Note where a file is."""
        self._files[name] = source

    def path(self, name: str) -> Path | None:
        """The file of this name. Links are refused because they could point anywhere."""
        path = self._files.get(name)
        return path if path is not None and path.is_file() and not path.is_symlink() else None


def _state_of(stores: Sequence[RunStore]) -> tuple[int, int]:
    """Changes when an attempt or a verdict is added or replaced: how many records there are, and the newest one."""
    records = [store.folder / name for store in stores for name in ("run.json", "results.json")]
    tasks = [task for store in stores for task in store.tasks()]
    records += [task.folder / name for task in tasks for name in ("result.json", "verdicts")]
    times = [path.stat().st_mtime_ns for path in records if path.exists()]
    return len(times), max(times, default=0)
