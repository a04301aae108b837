"""Imports of large packages, and of optional ones."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from shared.errors import ConfigError


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses the garbage collector.

    An import creates thousands of long-lived objects, which the collector scans repeatedly without result. That takes
    up to a fifth of a model SDK's import time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def optional_package(need: str, extra: str) -> Iterator[None]:
    """Wraps the import of a package that `extra` installs; `need` is the message's subject: `reports need Pillow`."""
    try:
        yield
    except ImportError:
        raise ConfigError(f"{need}, which is not installed", remedy=f'pip install "wabe[{extra}]"') from None
