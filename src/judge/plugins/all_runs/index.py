"""The list of all local runs, and of submissions in folders, kept in an index so that thousands are listed at once.

The index is a cache in `<output_dir>/view/index.json`: an entry counts as long as the files that it was made from have
not changed, and deleting the index only means that every run is read again.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from judge.plugins.all_runs.listing import ListedRun, current, listed_run, listed_submissions
from judge.plugins.all_runs.notes import NotesFolder, RunNotes
from judge.store.layout import RUN_ID, RunStore
from judge.store.run_files import EPISODE_COUNTS, RUN, SUBMISSION
from shared.files import read_json, write_json
from shared.models import Record

# Increased when the same files are listed in another way.
_VERSION = 1
_FORMAT = f"{_VERSION}: {', '.join(ListedRun.model_fields)}"
# What is listed of a run or shard comes from these.
_LISTED_FILES = (RUN.name, SUBMISSION.name, EPISODE_COUNTS.name)
# Of a folder of submissions, which may be anybody's.
_MAX_FILES = 10_000
_MAX_DEPTH = 4

# Of each file, the run first's: when it was changed, its size and its inode; empty for a missing one. What has
# no such file is read each time.
Stamp = tuple[tuple[int, ...], ...]


class _IndexEntry(Record):
    stamp: Stamp
    listed: tuple[ListedRun, ...]


class _Index(Record):
    format: str
    entries: dict[str, _IndexEntry]


_INDEX = TypeAdapter(_Index)


class RunIndex:
    """Lists the runs below `output_dir` and the submissions in `folders`."""

    def __init__(self, output_dir: Path, folders: Sequence[Path] = ()) -> None:
        self.output_dir = output_dir
        self.folders = folders
        self._path = output_dir / "view" / "index.json"
        self._entries: dict[str, _IndexEntry] | None = None

    def runs(self) -> list[ListedRun]:
        """All of them with their present state, tags and notes, the newest first."""
        if self._entries is None:
            self._entries = self._read()
        before, entries = self._entries, {}
        runs: list[ListedRun] = []
        for key, stamp, load in self._sources():
            entry = before.get(key)
            if entry is None or entry.stamp != stamp or not stamp[0]:
                entry = _IndexEntry(stamp=stamp, listed=load())
            entries[key] = entry
            runs += (self._current(run) for run in entry.listed)
        if entries != before:
            self._entries = entries
            self._write(entries)
        notes, none = NotesFolder(self.output_dir).read_all(), RunNotes()
        own = {each.key: notes.get(each.key, none) for each in runs}
        runs = [
            each.model_copy(update={"tags": own[each.key].tags, "note": own[each.key].note})
            if own[each.key] is not none
            else each
            for each in runs
        ]
        return sorted(runs, key=lambda each: (each.worked_on, each.key), reverse=True)

    def _current(self, run: ListedRun) -> ListedRun:
        return current(run, RunStore(self.output_dir, run.id)) if run.state == "running" else run

    def _sources(self) -> Iterator[tuple[str, Stamp, Callable[[], tuple[ListedRun, ...]]]]:
        """Everything that may be listed: its name in the index, its stamp, and how it is read."""
        runs = self.output_dir / "runs"
        for name in sorted(path.name for path in runs.iterdir()) if runs.is_dir() else ():
            if RUN_ID.fullmatch(name):
                yield name, _stamp_of_run(self.output_dir, name), partial(_runs_in, self.output_dir, name)
        for folder in self.folders:
            for path in _submission_files(folder):
                name = path.relative_to(folder).as_posix()
                yield os.path.realpath(path), _stamp([str(path)]), partial(listed_submissions, path, name)

    def _read(self) -> dict[str, _IndexEntry]:
        with suppress(OSError, ValueError, ValidationError):
            index = _INDEX.validate_python(read_json(self._path))
            if index.format == _FORMAT:
                return dict(index.entries)
        return {}

    def _write(self, entries: dict[str, _IndexEntry]) -> None:
        if not entries and not self._path.exists():
            return
        # On a full or read-only disk, the runs are read again the next time.
        with suppress(OSError):
            write_json(self._path, _Index(format=_FORMAT, entries=entries).model_dump(mode="json"))


def _runs_in(output_dir: Path, run_id: str) -> tuple[ListedRun, ...]:
    """The run; none if nothing was recorded in its folder."""
    store = RunStore(output_dir, run_id)
    return (listed_run(store),) if store.has_begun or store.shards() else ()


def _stamp_of_run(output_dir: Path, run_id: str) -> Stamp:
    # Joined as texts: for thousands of runs, joining paths would take longer than asking for their files.
    folder = f"{output_dir}/runs/{run_id}"
    stamp = _stamp(f"{folder}/{name}" for name in (*_LISTED_FILES, "shards"))
    if stamp[-1]:
        shards = RunStore(output_dir, run_id).shards()
        stamp += _stamp(f"{shard.folder}/{name}" for shard in shards for name in _LISTED_FILES)
    return stamp


def _stamp(paths: Iterable[str]) -> Stamp:
    stamps: list[tuple[int, ...]] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            stamps.append(())
    return tuple(stamps)


def _submission_files(folder: Path) -> Iterator[Path]:
    """The JSON files in the folder. Links are not followed: they could lead to any file of this machine."""
    count = 0
    for parent, folders, names in os.walk(folder):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else []
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix == ".json" and path.is_file() and not path.is_symlink():
                count += 1
                if count > _MAX_FILES:
                    return
                yield path
