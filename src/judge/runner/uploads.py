"""Supports shards on machines without a shared file system: each uploads finished attempts to an object store.

The store has the same layout as the output folder. A shard that starts on another machine first fetches its files.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from judge.events import Event, RunStarted, Sink, TaskDone
from judge.store.layout import RUN_ID, RunStore, TaskStore
from shared.errors import ConfigError, WabeError
from shared.text import excerpt

_log = logging.getLogger(__name__)
_RECORDS = ("run.json", "results.json")


class ObjectStore:
    """The object store at `url`, such as `s3://bucket/folder`. Raises `ConfigError` if there is no package for it."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ConfigError("WABE_STORE needs fsspec", remedy="pip install 'wabe[objects]'") from None
        self._url = url
        with self._asked():
            self._files, root = url_to_fs(url)
            self._root = str(root).rstrip("/")

    def fetch(self, run_id: str, folder: Path) -> None:
        """Download the store's files of a run or shard to `folder`, replacing what was there."""
        fresh = folder.with_name(f"{folder.name}.fetched")
        shutil.rmtree(fresh, ignore_errors=True)
        found = self._files_of(run_id)
        taken: dict[str, str] = {}
        for name, path in found.items():
            target = fresh / name
            # An absolute name would replace the folder.
            if ".." in target.parts or not target.is_relative_to(fresh) or "\0" in name:
                raise ConfigError(f"WABE_STORE: {excerpt(name, 200)} leads out of its folder", remedy="remove it")
            if (before := taken.setdefault(name.casefold(), name)) != name:
                what = f"{excerpt(name, 200)} differs from {excerpt(before, 200)} only in case"
                raise ConfigError(f"WABE_STORE: {what}", remedy="remove one of the two")
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._asked():
                self._files.get_file(path, str(target))
        if found:
            # All or nothing, so that an interrupted fetch starts again.
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)

    def shards(self, run_id: str) -> list[str]:
        """The names of the run's shards in the store, in order."""
        found = {name.partition("/")[0] for name in self._files_of(f"{run_id}/shards")}
        return sorted(name for name in found if RUN_ID.fullmatch(f"{run_id}/shards/{name}"))

    def put(self, source: Path, name: str) -> None:
        """Upload a file or folder, replacing any of the same name; `result.json` goes last."""
        target = f"{self._root}/runs/{name}"
        files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
        with self._asked():
            if source.is_dir() and self._files.exists(target):
                self._files.rm(target, recursive=True)
            # An attempt with a result counts as complete, so its other files must be there first.
            for path in sorted(files, key=lambda path: (path.name == "result.json", path)):
                whole = f"{target}/{path.relative_to(source).as_posix()}" if path != source else target
                self._files.makedirs(whole.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(path), whole)

    def read(self, name: str) -> bytes | None:
        """The content of a file, or `None` if it does not exist."""
        path = f"{self._root}/runs/{name}"
        with self._asked():
            # fsspec caches listings, but other shards upload meanwhile.
            self._files.invalidate_cache()
            return bytes(self._files.cat_file(path)) if self._files.exists(path) else None

    def _files_of(self, folder: str) -> dict[str, str]:
        """The paths of the files in a folder below `runs`, by their names in it."""
        root = f"{self._root}/runs/{folder}"
        with self._asked():
            self._files.invalidate_cache()
            return {str(path).rpartition(f"runs/{folder}/")[2]: str(path) for path in self._files.find(root)}

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        # Each store's package raises its own kinds of errors; fsspec's message names a missing package.
        except Exception as error:  # noqa: BLE001
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise ConfigError(f"WABE_STORE {self._url}: {reason}", remedy="check the address and its keys") from None


class Uploads:
    """Uploads a shard's attempts as they end, in a separate thread, and its records at the end."""

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
                    self._later(self._records)
                case TaskDone():
                    self._later(self._task, self._store.task(event.task_id, event.epoch))
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
            # Compare this file, because it changes whenever the attempt does.
            data = here.read_bytes() if here.is_file() else None
            if data != self._objects.read(f"{self._name(task)}/result.json"):
                self._task(task)
        self._records()

    def _later(self, work: Callable[..., None], *arguments: Any) -> None:
        self._thread.submit(self._logged, work, *arguments)

    def _logged(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except (WabeError, OSError) as error:
            # Only a warning, because missing files are uploaded again at the end of the run.
            _log.warning("%s", error)

    def _task(self, task: TaskStore) -> None:
        self._objects.put(task.folder, self._name(task))

    def _name(self, task: TaskStore) -> str:
        return f"{self._store.run_id}/{task.folder.relative_to(self._store.folder).as_posix()}"

    def _records(self) -> None:
        for name in _RECORDS:
            if (self._store.folder / name).is_file():
                self._objects.put(self._store.folder / name, f"{self._store.run_id}/{name}")


def fetch_shards(url: str, run: RunStore) -> None:
    """Download the shards of a run from the object store at `url`. Raises `ConfigError`.

    A shard that is being played here, or whose local record is newer, is not replaced, because some of its files may
    not have been uploaded.
    """
    objects = ObjectStore(url)
    for name in objects.shards(run.run_id):
        shard = RunStore(run.output_dir, f"{run.run_id}/shards/{name}")
        here = shard.folder / "run.json"
        stored = objects.read(f"{shard.run_id}/run.json")
        is_newer = not here.is_file() or _changed_at(stored) > _changed_at(here.read_bytes())
        if is_newer and not shard.is_in_progress:
            objects.fetch(shard.run_id, shard.folder)


def _changed_at(record: bytes | None) -> float:
    """When a `run.json` was last written, according to its content, in seconds since 1970; 0 if unreadable."""
    with suppress(ValueError, AttributeError):
        known = json.loads(record or b"").get
        times = [known(key) for key in ("started_at", "resumed_at", "ended_at")]
        return max((float(time) for time in times if isinstance(time, int | float)), default=0.0)
    return 0.0
