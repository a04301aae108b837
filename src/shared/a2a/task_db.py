"""Whether a SQLite file can be used, said before anything depends on it."""

import contextlib
import sqlite3
from pathlib import Path

from shared.errors import ConfigError


def usable_database(path: Path) -> Path:
    """`path`, with its folder made. Raises `ConfigError` when no database can be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS probe (x)")
            connection.execute("DROP TABLE probe")
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"{path}: cannot keep tasks there: {error}", remedy="choose a file that can be written"
        ) from None
    return path
