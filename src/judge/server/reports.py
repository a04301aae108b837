"""Reports for the live page, made from a run's records when somebody opens one.

What a run's folder has as its report is never served: anybody may have put it there, and no signature covers it.
"""

import asyncio
import shutil
import tempfile
import weakref
from pathlib import Path

from judge.report.build import write_report
from judge.report.output import write
from judge.store.layout import RunStore


class Reports:
    """The reports that were made, by run. Their pages are in a temporary folder, which ends with this object."""

    def __init__(self) -> None:
        self._made: dict[str, _Report] = {}
        self._making = asyncio.Lock()

    async def file(self, store: RunStore, name: str) -> Path | None:
        """The file of a run's report with this name, `None` if the report has none.

        The report is made with its first file, and again with its front page if the run has changed. Raises a
        `ConfigError` for a run that cannot be read.
        """
        async with self._making:
            made = self._made.get(store.run_id)
            if made is None or (name == "index.html" and made.state != await asyncio.to_thread(_state_of, store)):
                # In a thread: reading a long run takes a while and must not delay an assessment.
                made = self._made[store.run_id] = await asyncio.to_thread(_Report, store)
        return made.path(name)


class _Report:
    """An `Output` whose pages are files of its own, and whose other files stay where the run has them."""

    def __init__(self, store: RunStore) -> None:
        self.state = _state_of(store)
        self._folder = Path(tempfile.mkdtemp(prefix="wabe-report-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files: dict[str, Path] = {}
        write_report(store, self)

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


def _state_of(store: RunStore) -> tuple[int, int]:
    """Changes when an attempt or a verdict is added or replaced: how many records there are, and the newest one."""
    records = [store.folder / "run.json", store.folder / "results.json"]
    records += [task.folder / name for task in store.tasks() for name in ("result.json", "verdicts")]
    times = [path.stat().st_mtime_ns for path in records if path.exists()]
    return len(times), max(times, default=0)
