"""Supports shards on machines without a shared file system: each uploads finished attempts to an object store.

The store has the same layout as the output folder. A shard that starts on another machine first fetches its files.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from judge.records.events import Event, RunStarted, Sink, TaskDone
from judge.store.layout import RunStore, TaskStore
from judge.store.run_files import uploaded
from shared.engines import ENGINES, opener_of
from shared.errors import ConfigError, WabeError
from shared.files import read_file

_log = logging.getLogger(__name__)


class ObjectStore(Protocol):
    """A store of files, created with its address. Its methods raise `ConfigError` if an operation fails.

    Names in it begin with `runs/` and the id of a run or of a shard.
    """

    def fetch(self, run_id: str, folder: Path) -> None:
        """Download the store's files of a run or shard to `folder`, replacing what was there: all of them or nothing.

        Anyone who can write to the store chooses the names: none may lead out of the folder, or differ only in case.
        """
        ...

    def shards(self, run_id: str) -> list[str]:
        """The names of the run's shards in the store, in order."""
        ...

    def put(self, source: Path, name: str) -> None:
        """Upload a file or folder, replacing any of the same name; `result.json` goes last."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, or `None` if it does not exist."""
        ...


# Opens the addresses whose scheme no other engine has.
_OTHERS = "objects"


def open_store(url: str) -> ObjectStore:
    """The object store at `url`, such as `s3://bucket/folder`. Raises `ConfigError`."""
    engine, address = opener_of(url)
    if engine is None or engine.object_store is None:
        engine = ENGINES.find(_OTHERS) if address == url else None
    if engine is None or engine.object_store is None:
        raise ConfigError(f"WABE_STORE {url}: no package for it is installed", remedy="install a plug-in that opens it")
    store: ObjectStore = engine.object_store(address)
    return store


class Uploads:
    """Uploads a shard's attempts as they end, in a separate thread, and its other files (`judge.store.run_files`)."""

    def __init__(self, objects: ObjectStore, store: RunStore) -> None:
        self._objects = objects
        self._store = store
        # A single thread, so that an older version of a file never replaces a newer one.
        self._thread = ThreadPoolExecutor(1)

    def sink(self, emit: Sink) -> Sink:
        """A sink that passes events on, and uploads the attempts that they report as done."""

        def take(event: Event) -> None:
            match event:
                case RunStarted():
                    self._later(self._files, uploaded())
                case TaskDone():
                    self._later(self._task, self._store.task(event.task_id, event.epoch))
                    self._later(self._files, uploaded(growing=True))
            emit(event)

        return take

    @contextmanager
    def finished(self) -> Iterator[None]:
        """After the body, upload what is missing. Raises `ConfigError` if that fails and the body did not."""
        try:
            yield
        except BaseException:
            self._logged(self._finish)
            raise
        self._finish()

    def _finish(self) -> None:
        self._thread.shutdown()
        for task in self._store.tasks():
            here = task.folder / "result.json"
            # Compare this file, because it changes with every change of the attempt.
            data = read_file(here) if here.is_file() else None
            if data != self._objects.read(f"{self._name(task)}/result.json"):
                self._task(task)
        self._files(uploaded())

    def _later(self, work: Callable[..., None], *arguments: Any) -> None:
        self._thread.submit(self._logged, work, *arguments)

    def _logged(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except (WabeError, OSError, ValueError) as error:
            # Only a warning, because missing files are uploaded again at the end of the run.
            _log.warning("%s", error)

    def _task(self, task: TaskStore) -> None:
        self._objects.put(task.folder, self._name(task))

    def _name(self, task: TaskStore) -> str:
        return f"{self._store.run_id}/{task.folder.relative_to(self._store.folder).as_posix()}"

    def _files(self, names: Sequence[str]) -> None:
        for name in names:
            if (self._store.folder / name).is_file():
                self._objects.put(self._store.folder / name, f"{self._store.run_id}/{name}")


def fetch_shards(url: str, run: RunStore) -> None:
    """Download the shards of a run from the object store at `url`. Raises `ConfigError`.

    A shard being played here, or whose local record is newer, is not replaced, because some of its files may
    not have been uploaded.
    """
    objects = open_store(url)
    for name in objects.shards(run.run_id):
        shard = RunStore(run.output_dir, f"{run.run_id}/shards/{name}")
        here = shard.folder / "run.json"
        stored = objects.read(f"{shard.run_id}/run.json")
        is_newer = not here.is_file() or _changed_at(stored) > _changed_at(read_file(here))
        if is_newer and not shard.is_in_progress:
            objects.fetch(shard.run_id, shard.folder)


def _changed_at(record: bytes | None) -> float:
    """When a `run.json` was last written, according to its content, in seconds since 1970; 0 if unreadable."""
    with suppress(ValueError, AttributeError):
        known = json.loads(record or b"").get
        times = [known(key) for key in ("started_at", "resumed_at", "ended_at")]
        return max((float(time) for time in times if isinstance(time, int | float)), default=0.0)
    return 0.0
