"""File helpers: atomic writes, bounded reads, digests. Nothing half-written is ever seen under its final name."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

# The most that is read of one file of a run. `judge.record_limits` keeps everything that is written below it.
MAX_FILE_BYTES = 64_000_000


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` under `path` in one step: a temporary sibling, flushed to the disk, then renamed."""
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


def read_bytes(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """A whole file. Raises `OSError`, or `ValueError` for more than `max_bytes`."""
    if path.stat().st_size > max_bytes:
        raise ValueError(f"larger than {max_bytes} bytes")
    return path.read_bytes()


def read_json(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> Any:
    """Read JSON. Raises `OSError` or `ValueError` (also for files over `max_bytes` and for endless nesting)."""
    try:
        return json.loads(read_bytes(path, max_bytes=max_bytes))
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
