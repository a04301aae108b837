"""File helpers: atomic writes, digests, and the bounded reads of `shared.reading`.

Nothing half-written is ever seen under its final name.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from shared.reading import MAX_BYTES
from shared.reading import decode as decode
from shared.reading import parse_toml as parse_toml
from shared.reading import read_file as read_file
from shared.reading import read_json as read_json
from shared.reading import read_text as read_text
from shared.reading import reason_of as reason_of

# The most that is read of one file of a run. `judge.record_limits` keeps everything that is written below it.
MAX_FILE_BYTES = MAX_BYTES


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` under `path` in one step: a temporary sibling, flushed to the disk, then renamed.

    Raises `OSError`, which names `path` even where the system names no file (a full disk).
    """
    try:
        _write_atomic(path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _write_atomic(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` atomically as indented JSON. NaN and infinities are refused: no reader agrees on them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A lone surrogate (from a page or a participant) has no UTF-8 form; keep it visible instead of failing.
    write_atomic(path, (text + "\n").encode("utf-8", "backslashreplace"))


def canonical_json(value: Any) -> bytes:
    r"""The one form of a JSON value that digests are made of: keys sorted, no white space, non-ASCII as ``\uXXXX``.

    It survives writing and reading back: two halves of a surrogate pair and the character that they stand for, which a
    JSON reader makes of them, have the same form. Raises `ValueError` for NaN and infinities.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def sha256_json(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal. Raises `OSError`."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
