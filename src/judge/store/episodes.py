"""The episodes of a served scenario: attempts without end, of which the newest are kept and all are counted.

Layout: `episodes/<n>/results/<task_id>/` in the run's folder, with `<n>` from 1 and never used twice, and
`episodes.json` with the counts. While an episode is open, its process holds `episodes/<n>/.open.lock`. If the process
is killed, the file stays, and the episode is counted as interrupted when the run is opened again.
"""

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from judge.records.verdicts import TaskOutcome
from judge.store.layout import RunStore, TaskStore
from judge.store.locks import is_locked, locked
from judge.store.run_files import EPISODE_COUNTS
from shared.errors import ConfigError
from shared.fields import as_mapping
from shared.files import read_json, size_of, write_errors, write_json
from shared.models import Record

_OPEN = ".open.lock"
_UNNAMED = ".new-"
# Deleting a hundred episodes takes about a second.
_COUNTS_WAIT_S = 30.0

EpisodeOutcome = Literal[TaskOutcome, "interrupted"]
# By task.
OutcomeCounts = dict[str, dict[EpisodeOutcome, NonNegativeInt]]


@dataclass(frozen=True)
class Retention:
    """How many ended episodes are kept, and how many bytes of them; the oldest ones are deleted first."""

    episodes: int = 1_000
    size_bytes: int = 5_000_000_000


class EpisodeCounts(Record):
    """What `episodes.json` holds: how the episodes ended, those that were deleted included.

    `last` is the highest number so far. `removing` are being deleted; they are already counted in `removed`.
    """

    last: NonNegativeInt = 0
    ended: OutcomeCounts = Field(default_factory=dict)
    removed: OutcomeCounts = Field(default_factory=dict)
    kept_bytes: NonNegativeInt = 0
    removed_bytes: NonNegativeInt = 0
    removing: tuple[int, ...] = ()

    @property
    def remaining(self) -> OutcomeCounts:
        """How those ended that were not deleted."""
        left = {task: _sum(ended, self.removed.get(task, {}), sign=-1) for task, ended in self.ended.items()}
        return {task: counts for task, counts in left.items() if counts}


_COUNTS = TypeAdapter(EpisodeCounts)


def number_of(counts: OutcomeCounts) -> int:
    """How many episodes these are."""
    return sum(count for each in counts.values() for count in each.values())


def read_counts(run: RunStore) -> EpisodeCounts | None:
    """The counts of the run's episodes; `None` if there are none. Raises `ConfigError` if they cannot be read."""
    path = run.folder / EPISODE_COUNTS.name
    try:
        return _COUNTS.validate_python(read_json(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"{path}: not readable as the counts of episodes: {str(error)[:200]}",
            remedy="move it away: what is on disk is then counted again",
        ) from None


def is_open(store: TaskStore) -> bool:
    """Whether a process is playing this episode. Always false on file systems without locks."""
    return is_locked(_folder(store) / _OPEN)


def outcome_of(store: TaskStore) -> EpisodeOutcome:
    """How an episode ended that is not open."""
    with contextlib.suppress(OSError, ValueError):
        verdict = as_mapping(read_json(store.folder / "result.json")).get("verdict")
        return next((each for each in get_args(TaskOutcome) if each == verdict), "interrupted")
    return "interrupted"


def kept_counts(run: RunStore) -> OutcomeCounts:
    """How the episodes ended on disk; those that are open are left out."""
    return _counts_of(store for store in run.tasks() if not is_open(store))


def _counts_of(ended: Iterable[TaskStore]) -> OutcomeCounts:
    counts: OutcomeCounts = {}
    for store in ended:
        _add(counts, store.name, outcome_of(store))
    return counts


class EpisodeStore:
    """The episodes of one run. Thread-safe; several processes may use the same run."""

    def __init__(self, run: RunStore, retention: Retention | None = None) -> None:
        """Count what a killed process left behind. Raises `ConfigError`."""
        self.run = run
        self.retention = retention or Retention()
        self._open: dict[int, contextlib.ExitStack] = {}
        self._lock = threading.Lock()
        with write_errors(f"cannot write {run.folder}"):
            run.episodes.mkdir(parents=True, exist_ok=True)
        self._recount()

    def begin(self, task_id: str) -> TaskStore:
        """The empty folder of the next episode, locked until `end`. Raises `ConfigError`."""
        with contextlib.ExitStack() as unless_begun, write_errors(f"cannot write {self.run.episodes}"):
            # Renamed when it is complete, so that no episode is without a task or, while it is played, without a lock.
            folder = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=self.run.episodes))
            unless_begun.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o755)
            opened = unless_begun.enter_context(contextlib.ExitStack())
            opened.enter_context(locked(folder / _OPEN, "the episode"))
            (folder / "results" / task_id).mkdir(parents=True)
            with self._locked() as counts:
                number = max([counts.last, *self._numbers()]) + 1
                folder.rename(self.run.episodes / str(number))
            unless_begun.pop_all()
        self._open[number] = opened
        return self.run.task(task_id, number)

    def end(self, store: TaskStore) -> None:
        """Count an episode as its `result.json` says, and delete the oldest ones that are not to be kept.

        Raises `ConfigError`. Calling it again has no effect.
        """
        if (opened := self._open.pop(store.epoch, None)) is not None:
            with opened, self._locked() as counts:
                _add(counts.ended, store.name, outcome_of(store))
                changes = {
                    "last": max(counts.last, store.epoch),
                    "kept_bytes": counts.kept_bytes + size_of(_folder(store)),
                }
                self._write(counts.model_copy(update=changes), [store.epoch])

    def _recount(self) -> None:
        """Count what the folders show: a killed process did not count its last ones."""
        with self._locked() as counts:
            for leftover in self.run.episodes.glob(f"{_UNNAMED}*"):
                if not is_locked(leftover / _OPEN):
                    shutil.rmtree(leftover, ignore_errors=True)
            ended_stores = [store for store in self.run.tasks() if not is_open(store)]
            kept = _counts_of(ended_stores)
            both = {task: _sum(kept.get(task, {}), counts.removed.get(task, {})) for task in {**counts.removed, **kept}}
            changes = {
                "last": max([counts.last, *self._numbers()]),
                "ended": both,
                "kept_bytes": sum(size_of(_folder(store)) for store in ended_stores),
            }
            self._write(counts.model_copy(update=changes), [store.epoch for store in ended_stores])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[EpisodeCounts]:
        """The counts, which no other thread or process changes meanwhile."""
        lock = self.run.folder / ".episodes.lock"
        with self._lock, locked(lock, f"the counts of {self.run.run_id}", wait_s=_COUNTS_WAIT_S):
            counts = read_counts(self.run) or EpisodeCounts()
            # Those that a killed process has counted as deleted.
            for number in counts.removing:
                _delete(self.run.episodes / str(number))
            yield counts

    def _write(self, counts: EpisodeCounts, ended: Sequence[int]) -> None:
        """Write the counts, of which those that `ended` are now a part, and delete what is not to be kept."""
        counts = self._pruned(counts, ended)
        path = self.run.folder / EPISODE_COUNTS.name
        with write_errors(f"cannot write {path}"):
            # First: what is deleted has been counted, even if this process is killed meanwhile.
            write_json(path, counts.model_dump(mode="json"))
        for number in counts.removing:
            _delete(self.run.episodes / str(number))
        for number in ended:
            (self.run.episodes / str(number) / _OPEN).unlink(missing_ok=True)

    def _pruned(self, counts: EpisodeCounts, ended: Sequence[int]) -> EpisodeCounts:
        """The counts after the oldest episodes, which are then in `removing`, have been deleted."""
        count, size = number_of(counts.remaining), counts.kept_bytes
        removing = []
        for store in self._ended(ended) if self._is_too_much(count, size) else ():
            if not self._is_too_much(count, size):
                break
            _add(counts.removed, store.name, outcome_of(store))
            removing.append(store.epoch)
            count, size = count - 1, size - size_of(_folder(store))
        removed_bytes = counts.removed_bytes + counts.kept_bytes - size
        changes = {"kept_bytes": max(0, size), "removed_bytes": removed_bytes, "removing": tuple(removing)}
        return counts.model_copy(update=changes)

    def _is_too_much(self, count: int, size: int) -> bool:
        return count > self.retention.episodes or (size > self.retention.size_bytes and count > 0)

    def _ended(self, just_ended: Sequence[int]) -> Iterator[TaskStore]:
        """The counted episodes, the oldest first."""
        for number in self._numbers():
            folder = self.run.episodes / str(number)
            if number in just_ended or not (folder / _OPEN).exists():
                yield from map(TaskStore, (folder / "results").iterdir())

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self.run.episodes) if name.isdecimal())  # noqa: PTH208


def _folder(store: TaskStore) -> Path:
    return store.folder.parent.parent


def _delete(folder: Path) -> None:
    """Delete an episode whole: renamed first, so that nobody reads half of it."""
    doomed = folder.with_name(f"{_UNNAMED}{folder.name}-removed")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _add(counts: OutcomeCounts, task: str, outcome: EpisodeOutcome) -> None:
    of_task = counts.setdefault(task, {})
    of_task[outcome] = of_task.get(outcome, 0) + 1


def _sum(first: dict[Any, int], second: dict[Any, int], *, sign: int = 1) -> dict[Any, int]:
    totals = {name: first.get(name, 0) + sign * second.get(name, 0) for name in {**first, **second}}
    return {name: count for name, count in totals.items() if count}
