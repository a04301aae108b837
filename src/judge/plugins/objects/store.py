"""Opens the object stores that fsspec has packages for: S3, Google Cloud Storage, Azure, folders and others."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.store.layout import RUN_ID
from shared.engines import Engine
from shared.errors import ConfigError
from shared.text import excerpt


class FsspecStore:
    """The object store at `url`, such as `s3://bucket/folder`. Raises `ConfigError` if there is no package for it."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ConfigError("WABE_STORE needs fsspec", remedy="pip install 'wabe[objects]'") from None
        self._url = url
        with self._store_errors():
            self._files, root = url_to_fs(url)
            self._root = str(root).rstrip("/")

    def fetch(self, run_id: str, folder: Path) -> None:
        """Download the store's files of a run or shard to `folder`, replacing what was there."""
        fresh = folder.with_name(f"{folder.name}.fetched")
        shutil.rmtree(fresh, ignore_errors=True)
        names = self._files_of(run_id)
        digests: dict[str, str] = {}
        for name, path in names.items():
            target = fresh / name
            # An absolute name would replace the folder.
            if ".." in target.parts or not target.is_relative_to(fresh) or "\0" in name:
                raise ConfigError(f"WABE_STORE: {excerpt(name, 200)} leads out of its folder", remedy="remove it")
            if (before := digests.setdefault(name.casefold(), name)) != name:
                what = f"{excerpt(name, 200)} differs from {excerpt(before, 200)} only in case"
                raise ConfigError(f"WABE_STORE: {what}", remedy="remove one of the two")
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._store_errors():
                self._files.get_file(path, str(target))
        if names:
            # All or nothing, so that an interrupted fetch starts again.
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)

    def shards(self, run_id: str) -> list[str]:
        """The names of the run's shards in the store, in order."""
        shard_names = {name.partition("/")[0] for name in self._files_of(f"{run_id}/shards")}
        return sorted(name for name in shard_names if RUN_ID.fullmatch(f"{run_id}/shards/{name}"))

    def put(self, source: Path, name: str) -> None:
        """Upload a file or folder, replacing any of the same name; `result.json` goes last."""
        target = f"{self._root}/runs/{name}"
        files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
        with self._store_errors():
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
        with self._store_errors():
            # fsspec caches listings, but other shards upload meanwhile.
            self._files.invalidate_cache()
            return bytes(self._files.cat_file(path)) if self._files.exists(path) else None

    def _files_of(self, folder: str) -> dict[str, str]:
        """The paths of the files in a folder below `runs`, by their names in it."""
        root = f"{self._root}/runs/{folder}"
        with self._store_errors():
            self._files.invalidate_cache()
            return {str(path).rpartition(f"runs/{folder}/")[2]: str(path) for path in self._files.find(root)}

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        # Each store's package raises its own kinds of errors; fsspec's message names a missing package.
        except Exception as error:  # noqa: BLE001
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise ConfigError(f"WABE_STORE {self._url}: {reason}", remedy="check the address and its keys") from None


ENGINE = Engine(object_store=FsspecStore)
