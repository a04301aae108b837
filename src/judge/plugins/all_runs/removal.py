"""Deletes runs: only complete runs, only inside the output folder, and none in progress."""

import contextlib
import os
import shutil
from pathlib import Path

from judge.store.layout import RUN_ID, RunStore, link_latest, runs_in
from shared.errors import ConfigError
from shared.files import size_of
from shared.text import excerpt

_DOOMED = ".removed-"


def removable(output_dir: Path, run_id: str) -> RunStore:
    """The run of that id, which may be unfinished or damaged.

    Raises `ConfigError` if there is none, if it is in progress, or if its folder is outside the output folder.
    """
    # Refuses shards and paths: deleting one shard would break the run.
    if not RUN_ID.fullmatch(run_id) or "/" in run_id or not os.path.lexists(output_dir / "runs" / run_id):
        raise _missing(output_dir, run_id)
    store = RunStore(output_dir, run_id)
    if Path(os.path.realpath(store.folder)) != Path(os.path.realpath(output_dir), "runs", run_id):
        raise ConfigError(f"{store.folder} is or lies behind a link", remedy="delete it where it really is")
    if not store.folder.is_dir():
        raise ConfigError(f"{store.folder} is not a folder", remedy="delete it yourself")
    if store.is_in_progress:
        raise ConfigError(f"run {run_id} is in progress", remedy="wait until it ends, or stop it")
    return store


def _missing(output_dir: Path, run_id: str) -> ConfigError:
    return ConfigError(f"no run {excerpt(run_id)} under {output_dir / 'runs'}", remedy="`wabe runs` lists their ids")


def remove(store: RunStore) -> int:
    """Delete the run's folder with its shards. Returns the bytes freed.

    Raises `ConfigError` if it is in progress, or another process has deleted it.

    The folder is renamed first, so that an interruption does not leave a partial run; the next call deletes the rest.
    """
    doomed = store.folder.with_name(f"{_DOOMED}{store.run_id}-{os.getpid()}")
    # Holding a folder creates it.
    if not store.folder.is_dir():
        raise _missing(store.output_dir, store.run_id)
    with contextlib.ExitStack() as locks:
        for part in (store, *(RunStore(store.output_dir, f"{store.run_id}/shards/{name}") for name in _shards(store))):
            # Held until the folder is renamed, so that no shard can be resumed meanwhile.
            locks.enter_context(part.held("runner"))
            locks.enter_context(part.held("judge"))
        freed = size_of(store.folder)
        try:
            store.folder.rename(doomed)
        except FileNotFoundError:
            raise _missing(store.output_dir, store.run_id) from None
    if store.traces.is_dir():
        shutil.rmtree(store.traces, ignore_errors=True)
    # Another process may be deleting the same leftovers.
    for leftover in store.folder.parent.glob(f"{_DOOMED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if doomed.exists():
        raise ConfigError(f"{doomed}: not all of it could be deleted", remedy="check who owns the files in it")
    _link_newest(store.output_dir)
    return freed


def _shards(store: RunStore) -> list[str]:
    folder = store.folder / "shards"
    if folder.is_symlink() or not folder.is_dir():
        return []
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    return [name for name in names if RUN_ID.fullmatch(f"{store.run_id}/shards/{name}")]


def _link_newest(output_dir: Path) -> None:
    """Point `<output_dir>/results` at the newest remaining run if it pointed at a deleted one."""
    link = output_dir / "results"
    # `exists` follows the link, so it is false if the target is gone.
    if not link.is_symlink() or link.exists():
        return
    link.unlink(missing_ok=True)
    remaining = [store for store in runs_in(output_dir) if store.results.is_dir()]
    if remaining:
        link_latest(output_dir, remaining[-1].results)
