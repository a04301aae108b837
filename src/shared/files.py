"""Files: bounded reads of foreign files (bytes, text, JSON), atomic writes, digests.

Reading raises only `OSError` or a `ValueError` whose text is the reason; `reason_of` words both.
"""

import codecs
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from shared.errors import ConfigError, WabeError
from shared.strict_json import parse_json

# The largest file of a read run; `judge.store` keeps everything written below it.
MAX_FILE_BYTES = 64_000_000
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
# Git LFS reads nothing longer as a pointer.
_MAX_POINTER_BYTES = 1024
# Logs may be larger than what is read as a whole.
_MAX_DIGESTED_BYTES = 1_000_000_000
_READ_AT_ONCE = 1 << 16
# UTF-32 first: its byte order mark begins with UTF-16's.
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class LfsPointer(ValueError):
    """A file is a Git LFS pointer: it names the content, which was not fetched."""

    def __init__(self) -> None:
        super().__init__("a Git LFS pointer, not the file itself: run `git lfs pull`")


@contextmanager
def opened(path: Path, *, max_bytes: int | None = MAX_FILE_BYTES, buffering: int = -1) -> Iterator[BinaryIO]:
    """A regular file, opened to be read. Raises `ValueError` for anything else, and for a larger file.

    The only way in which files of runs, archives and labels are read: somebody else may have put them there.
    """
    # Without O_NONBLOCK, opening a FIFO waits for a writer. Reading a device may never end, so check the handle's type.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        # Before anything is read: a sparse file takes no space on the disk.
        if max_bytes is not None and status.st_size > max_bytes:
            raise ValueError(f"larger than {max_bytes} bytes")
        with os.fdopen(handle, "rb", buffering=buffering, closefd=False) as stream:
            yield stream
    except OSError as error:
        # Errors of an open handle do not name the file.
        error.filename = error.filename or os.fspath(path)
        raise
    finally:
        os.close(handle)


def read_file(path: Path, *, max_bytes: int = MAX_FILE_BYTES, head_bytes: int | None = None) -> bytes:
    """The bytes of a regular file, or the first `head_bytes` of it.

    A Git LFS pointer is refused: its text is not the file's content.
    """
    with opened(path, max_bytes=max_bytes if head_bytes is None else None) as stream:
        # It may have grown since.
        data = stream.read(max_bytes + 1 if head_bytes is None else head_bytes)
    if len(data) > max_bytes:
        raise ValueError(f"larger than {max_bytes} bytes")
    if data.startswith(_LFS_POINTER) and len(data) <= _MAX_POINTER_BYTES:
        raise LfsPointer
    return data


def read_text(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a UTF-8 file, without a byte order mark."""
    return decode(read_file(path, max_bytes=max_bytes))


def read_end(path: Path, max_bytes: int) -> str:
    """The last bytes of a log as text; empty if it cannot be read."""
    try:
        with opened(path, max_bytes=None) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - max_bytes))
            return stream.read(max_bytes).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def read_json(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> Any:
    """The value in a JSON file, see `parse_json`."""
    return parse_json(read_text(path, max_bytes=max_bytes))


def decode(data: bytes) -> str:
    """`data` as UTF-8, without a byte order mark."""
    for mark, name in _OTHER_MARKS:
        if data.startswith(mark):
            raise ValueError(f"{name} text: save it as UTF-8")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line}: not UTF-8 text") from None


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be read, without its path."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error)[:300] or type(error).__name__


@contextmanager
def read_errors(where: object, remedy: str = "", *, kind: type[WabeError] = ConfigError) -> Iterator[None]:
    """An `OSError` or `ValueError` in the body becomes an error of that kind, with its location."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise kind(reason_of(error), location=str(where), remedy=remedy) from None


@contextmanager
def write_errors(where: object, remedy: str = "") -> Iterator[None]:
    """An `OSError` in the body becomes a `ConfigError`. Values that cannot be serialised remain internal errors."""
    try:
        yield
    except OSError as error:
        raise ConfigError(reason_of(error), location=str(where), remedy=remedy) from None


def write_atomic(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Write `data` under `path` in one step: a temporary sibling, flushed to the disk, then renamed.

    A partly written file is never visible under the final name; without `flush`, a power cut may still leave one.
    A device or a pipe is written to, not replaced. Raises `OSError`, which names `path` even where the system names no
    file (a full disk).
    """
    part = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            if flush:
                stream.flush()
                os.fsync(stream.fileno())
        # `mkstemp` creates files that only their owner can read, but others read runs too, such as outside a container.
        part.chmod(0o644)
        part.replace(path)
    # Also on Ctrl-C and cancellation, so that no partial file stays behind.
    except BaseException as error:
        if part is not None:
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def copy_file(source: Path, target: Path, *, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Copy the bytes of a regular file. Raises `OSError` or `ValueError`."""
    with opened(source, max_bytes=max_bytes) as stream, target.open("wb") as copy:
        shutil.copyfileobj(stream, copy)


def join_lines(parts: Iterable[Path], target: Path) -> None:
    """Write the lines of all parts into one file, in one step. Raises `OSError` or `ValueError`."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as whole:
            for path in parts:
                with opened(path, max_bytes=None) as stream:
                    last = b"\n"
                    while block := stream.read(_READ_AT_ONCE):
                        whole.write(block)
                        last = block[-1:]
                # The last line may have been torn.
                whole.write(b"" if last == b"\n" else b"\n")
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def size_of(folder: Path) -> int:
    """The bytes of all files below the folder; links are not followed, and hard links count once."""
    sizes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            # A file may vanish meanwhile.
            with suppress(OSError):
                status = Path(parent, name).lstat()
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def require_writable(path: Path) -> None:
    """Raise the `OSError` that `write_atomic` would raise: find out before hours of work rather than after."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        return


def write_json(path: Path, value: Any) -> None:
    """Write `value` atomically as indented JSON. NaN and infinities are refused: JSON has no such numbers."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A lone surrogate (from a page or a participant) has no UTF-8 form; keep it visible instead of failing.
    write_atomic(path, (text + "\n").encode("utf-8", "backslashreplace"))


def canonical_json(value: Any) -> bytes:
    r"""The canonical form of a JSON value, for digests: keys sorted, no white space, non-ASCII as ``\uXXXX``.

    Writing and reading back does not change it: a surrogate pair has the same form as the character that a JSON reader
    decodes it to. Raises `ValueError` for NaN and infinities.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def sha256_json(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal. Raises `OSError` or `ValueError`."""
    digest = hashlib.sha256()
    # Not `hashlib.file_digest`: its buffer takes longer to make than most files of a run take to read.
    with opened(path, max_bytes=_MAX_DIGESTED_BYTES, buffering=0) as stream:
        while part := stream.read(_READ_AT_ONCE):
            digest.update(part)
    return digest.hexdigest()
