"""Faster imports of large packages."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the garbage collector.

    An import creates thousands of objects that stay; the collector scans them again and again for nothing. For a model
    SDK that takes up to a fifth of the import time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
