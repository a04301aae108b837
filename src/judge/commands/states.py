"""Storage states that commands write and read: files that give access to an account."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.records.access import StorageState, read_storage_state
from shared.errors import ConfigError
from shared.fields import Invalid
from shared.files import read_errors, read_json

_MAX_BYTES = 4_000_000


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a storage state readable by this user only, because it gives access to the account."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An existing file would keep its permissions; O_EXCL then also refuses a link.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(state, stream)


def load_state(path: Path) -> StorageState:
    """Read a storage state. Raises `ConfigError`, which shows no value."""
    with read_errors(path, "create it with: wabe tasks login URL --user NAME --output FILE"):
        value = read_json(path, max_bytes=_MAX_BYTES)
    try:
        return read_storage_state(value)
    except Invalid as error:
        raise ConfigError(f"{path}: {error.problem}", remedy=error.remedy) from None
