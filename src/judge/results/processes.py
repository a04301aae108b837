"""Work on the tasks of a large run in several processes."""

import gc
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

_MAX_PROCESSES = 4

R = TypeVar("R")


def in_processes(do: Callable[..., R], *arguments: Sequence[Any], at_once: int = 1) -> Iterator[R]:
    """The result of `do` for each set of arguments, in order; `at_once` of them are passed to a process together."""
    # Limited, because the largest task takes a few hundred megabytes.
    workers = min(os.cpu_count() or 1, _MAX_PROCESSES)
    context = multiprocessing.get_context("spawn")
    with warnings.catch_warnings():
        # A run ends everything that this process has started, multiprocessing's own helper with it: it starts again.
        warnings.filterwarnings("ignore", "resource_tracker: process died", UserWarning)
        executor = ProcessPoolExecutor(workers, context, initializer=_begin)
    with executor as pool:
        yield from pool.map(do, *arguments, chunksize=at_once)


def _begin() -> None:
    # Ctrl-C goes to every process, but only the command itself reports it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The many nodes of a page form no cycles, and looking for some among them takes about a tenth of the time.
    gc.set_threshold(50_000)
