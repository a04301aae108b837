"""The run folder: its layout, locking, and size limits of its records.

Layout (contract): `runs/<run_id>/results/<task_id>/{result.json, trajectory/, snapshots/, steps.jsonl, verdicts/}`,
and `final/` if a final observation was recorded. Later epochs are in `runs/<run_id>/epochs/<n>/results/<task_id>/`.
A shard is a run of its own in `runs/<run_id>/shards/003-of-020/`.
Every step is flushed before the next begins; everything else is written atomically.

Files must stay small enough to be read, so all text from a participant, a page or a judge model goes through `bounded`
before it is stored. A limit is a field's size in bytes as written, in which one character takes up to six.
"""

import bisect
import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from judge.config import MAX_STEPS
from judge.records.steps import Step
from judge.records.tasks import TASK_ID, key_of
from judge.records.verdicts import Verdict
from judge.trajectory.files import load_trajectory as load_trajectory
from shared.errors import ConfigError, WabeError
from shared.files import MAX_FILE_BYTES, read_json, write_errors, write_json
from shared.images import SUFFIXES
from shared.models import Page, Record
from shared.settings import Settings
from shared.snapshot import cut_snapshot
from shared.text import excerpt, without_surrogates

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

RUN_SCHEMA = "wabe-run-2"
# Runs of these versions are read-only: they can be shown, scored and verified, but are never resumed or rewritten.
OLDER_RUN_SCHEMAS = ("wabe-run-1",)
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(/shards/[0-9]{3,4}-of-[0-9]{3,4})?")
# JSON allows these characters inside strings, but many line readers treat them as line breaks.
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
_ATTEMPTS = "attempts"
_EPOCHS = "epochs"
_IN_EPOCH = re.compile(rf"/{_EPOCHS}/([1-9][0-9]{{0,2}})/results/[^/]+$")
_FINAL = "final"

# Space in a file for data independent of the number of steps or tasks: the task, answer, key points, reason,
# and what the judge fetched.
_REST_BYTES = 6_000_000
# The limit for a step in `result.json`, including its repeated thought and action line and its screenshot's score.
MAX_STEP_BYTES = (MAX_FILE_BYTES - _REST_BYTES) // MAX_STEPS
# A submission is one JSON object, and leaderboard pages read objects of at most 16 MiB (DuckDB's default).
MAX_ENTRIES_BYTES = 15_000_000
_MAX_SNAPSHOT_CHARS = 4_000_000
_MAX_HOLDER_BYTES = 300
_LOCK_ATTEMPTS = 10
_DEFAULT_LIMIT = 2_000
_LIMITS: Mapping[str, int] = MappingProxyType(
    {
        # Step
        "url": 3_000,
        "title": 1_000,
        "dialog": 1_500,
        "reply": 10_000,
        "feedback": 3_000,
        "refused": 2_500,
        "flags": 500,
        # Action and Outcome
        "tool": 200,
        "params": 6_000,
        "thought": 4_000,
        "message": 3_000,
        "line": 3_000,
        # The end of an attempt
        "final_answer": 120_000,
        "error": 12_000,
        # Verdict
        "reason": 12_000,
        "key_points": 200_000,
        "Response": 4_000,
        "evidence": 40_000_000,
    }
)
# The nesting depth of an action's `params` in `result.json`, by which each of their lines is indented.
_DEPTH = 4
# Characters that `steps.jsonl` writes as an escape of six bytes, and how many bytes that adds to their UTF-8.
_ESCAPED_IN_LINES = (("\x85", 4), ("\u2028", 3), ("\u2029", 3))

R = TypeVar("R", bound=Record)


class TaskStore:
    """One task's folder. Every attempt begins in an empty one, so files of an earlier attempt cannot count for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 1, derived from the folder's path."""
        found = _IN_EPOCH.search(self.folder.as_posix())
        return int(found[1]) if found else 1

    @property
    def key(self) -> str:
        """The name of the task in this epoch, unique in the run."""
        return key_of(self.name, self.epoch)

    def begin(self) -> None:
        """Prepare for a new attempt: move all files of an earlier one to `attempts/<n>/`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        left = [path for path in self.folder.iterdir() if path.name != _ATTEMPTS]
        if left:
            attempts = self.folder / _ATTEMPTS
            attempts.mkdir(exist_ok=True)
            before = [int(path.name) for path in attempts.iterdir() if path.name.isdecimal()]
            target = attempts / f"{max(before, default=0) + 1:03d}"
            target.mkdir()
            for path in left:
                path.rename(target / path.name)
        for name in ("trajectory", "snapshots"):
            (self.folder / name).mkdir()

    def attempts(self) -> int:
        """How many attempts have begun here, including the current one."""
        before = len(list((self.folder / _ATTEMPTS).glob("*")))
        return before + any(path.name != _ATTEMPTS for path in self.folder.glob("*"))

    def write_page(self, index: int, page: Page) -> dict[str, str | None]:
        """Write a step's screenshot, unchanged from the browser, and its snapshot.

        Returns the fields of the step that refer to them: paths relative to the task's folder, and digests of the
        files. Those of the screenshot are `None` if there was none.
        """
        return self._write_page(page, f"trajectory/step_{index:03d}", f"snapshots/step_{index:03d}")

    def write_final_page(self, page: Page) -> dict[str, str | None]:
        """Like `write_page`, for the final observation; `trajectory/` contains only observations before an action."""
        (self.folder / _FINAL).mkdir(exist_ok=True)
        return self._write_page(page, f"{_FINAL}/screenshot", f"{_FINAL}/snapshot")

    def _write_page(self, page: Page, screenshot: str, snapshot: str) -> dict[str, str | None]:
        text = cut_snapshot(page.snapshot, _MAX_SNAPSHOT_CHARS).encode("utf-8", "backslashreplace")
        files = {"snapshot": (f"{snapshot}.yaml", text)}
        if page.screenshot is not None:
            files["screenshot"] = (f"{screenshot}.{SUFFIXES.get(page.media_type, 'jpg')}", page.screenshot)
        fields: dict[str, str | None] = {"screenshot": None, "screenshot_sha256": None}
        for kind, (name, data) in files.items():
            (self.folder / name).write_bytes(data)
            fields |= {kind: name, f"{kind}_sha256": hashlib.sha256(data).hexdigest()}
        return fields

    def append_step(self, step: Step) -> Step:
        """Append one line to `steps.jsonl`; it is handed to the operating system before this returns.

        Returns the step as recorded: within the limits of `bounded`.
        """
        step = bounded(step)
        line = json.dumps(step.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)
        line = line.translate(_LINE_BREAKS) + "\n"
        # One unbuffered write: if the process is killed, the line is complete or absent; readers skip a torn last line.
        with (self.folder / "steps.jsonl").open("ab", buffering=0) as stream:
            stream.write(line.encode("utf-8", "backslashreplace"))
        return step

    def write_result(self, result: dict[str, Any]) -> None:
        """Write `result.json` atomically; once it exists, the attempt is over."""
        write_json(self.folder / "result.json", result)

    def write_verdict(self, judge_id: str, verdict: Verdict) -> None:
        """Write `verdicts/<method>-<digest>.json` atomically. Raises `OSError`, also where `verdicts` is a link."""
        verdicts = self.folder / "verdicts"
        # In a folder that somebody else made, it may lead to any place of this machine.
        if verdicts.is_symlink():
            raise OSError(errno.ELOOP, "a link, through which nothing is written", str(verdicts))
        write_json(verdicts / f"{judge_id}.json", verdict.model_dump(mode="json"))

    def read_verdict(self, judge_id: str) -> Verdict | None:
        """The stored verdict of this judge, or `None` if it is missing or unreadable."""
        with contextlib.suppress(OSError, ValueError):
            return Verdict.model_validate(read_json(self.folder / "verdicts" / f"{judge_id}.json"))
        return None


class RunStore:
    """One run's folder under `<output_dir>/runs/<run_id>`. The id of a shard is `<run_id>/shards/003-of-020`."""

    def __init__(self, output_dir: Path, run_id: str) -> None:
        if not RUN_ID.fullmatch(run_id):
            raise ConfigError(
                f"run id {run_id[:60]!r} is not usable as a folder name",
                remedy="use letters, digits, '.', '_' and '-', starting with a letter or digit",
            )
        self.output_dir = output_dir
        self.run_id = run_id
        self.folder = output_dir / "runs" / run_id
        self.results = self.folder / "results"
        self.logs = self.folder / "logs"
        # The folder for reports and exports of the run.
        self.derived = self.folder

    @property
    def is_being_judged(self) -> bool:
        """Whether a process holds the folder as its judge. Always false on file systems without locks."""
        return _is_locked(self.folder / ".judge.lock")

    @property
    def is_in_progress(self) -> bool:
        """Whether a process holds the folder or a shard in it. Always false on file systems without locks."""
        return any(_is_locked(path) for path in (*self.folder.glob(".*.lock"), *self.folder.glob("shards/*/.*.lock")))

    @contextlib.contextmanager
    def held(self, by: Literal["judge", "runner"]) -> Iterator[None]:
        """Lock the folder as its only judge (which writes results) or its only runner (`agentbeats-run`).

        A folder that was created for this is removed again if no run began in it. Raises `ConfigError` if another
        process holds the lock, or the folder cannot be written.
        """
        made = [path for path in (self.output_dir, self.folder.parent, self.folder) if not path.exists()]
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with _locked(self.folder / f".{by}.lock", f"run {self.run_id}"):
                yield
        finally:
            if self.folder in made and not self.has_begun:
                shutil.rmtree(self.folder, ignore_errors=True)
                with contextlib.suppress(OSError):
                    for parent in reversed(made[:-1]):
                        parent.rmdir()

    def shards(self) -> "list[RunStore]":
        """The shards that have begun, in numerical order."""
        return [store for store in _stores(self.output_dir, f"{self.run_id}/shards/") if store.has_begun]

    @property
    def has_begun(self) -> bool:
        """Whether a run was recorded here; a run that never started leaves only logs."""
        return any((self.folder / name).exists() for name in ("run.json", "results", "results.json"))

    def create(self) -> None:
        """Create the folders and point `<output_dir>/results` at this run, unless it is a shard."""
        with self._writing():
            self.results.mkdir(parents=True, exist_ok=True)
            if "/" not in self.run_id:
                link_latest(self.output_dir, self.results)

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return write_errors(f"cannot write under {self.output_dir}", "choose another --output-dir or free some space")

    def task(self, task_id: str, epoch: int = 1) -> TaskStore:
        """The folder of one task in one epoch. Ids are validated again here, because they become paths."""
        if not TASK_ID.fullmatch(task_id):
            raise WabeError(f"task id {task_id[:60]!r} is not usable as a folder name")
        results = self.results if epoch == 1 else self.folder / _EPOCHS / str(epoch) / "results"
        return TaskStore(results / task_id)

    def tasks(self) -> Iterator[TaskStore]:
        """Every task folder of the run, epoch by epoch, in name order."""
        for results in (self.results, *later_results(self.folder)):
            if results.is_dir():
                for folder in sorted(results.iterdir()):
                    if folder.is_dir():
                        yield TaskStore(folder)

    def write_run(self, record: dict[str, Any]) -> None:
        """Write `run.json` atomically."""
        write_json(self.folder / "run.json", record)

    def read_run(self) -> dict[str, Any] | None:
        """The stored `run.json`, or `None` if it is missing or damaged.

        Raises `ConfigError` if a newer version wrote it. A record without a version counts as old.
        """
        path = self.folder / "run.json"
        with contextlib.suppress(OSError, ValueError):
            value = read_json(path)
            if isinstance(value, dict):
                version = value.get("schema_version", OLDER_RUN_SCHEMAS[-1])
                if version not in (RUN_SCHEMA, *OLDER_RUN_SCHEMAS):
                    raise ConfigError(
                        f"{path}: unknown schema_version {excerpt(str(version))}",
                        remedy=f"upgrade wabe; this version reads up to {RUN_SCHEMA}",
                    )
                return value
        return None

    def write_submission(self, submission: dict[str, Any]) -> None:
        """Write `results.json` atomically."""
        write_json(self.folder / "results.json", submission)


def later_results(folder: Path) -> list[Path]:
    """The results folders of a run's epochs after the first, in order."""
    found = [path for path in (folder / _EPOCHS).glob("*/results") if _IN_EPOCH.search(f"{path.as_posix()}/x")]
    return sorted(found, key=lambda path: int(path.parent.name))


def new_run_id() -> str:
    """A new id: the time first, so that names sort by age, then random letters, so that no two runs collide."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def output_folder(option: Path | None, settings: Settings | None = None) -> Path:
    """The folder that contains `runs/`: `--output-dir`, else `WABE_OUTPUT_DIR`, else `.output`."""
    return option or Path((settings or Settings.from_environ()).output_dir or ".output")


def runs_in(output_dir: Path) -> list[RunStore]:
    """Every run, sharded or not, that was begun under `output_dir`, oldest first."""
    return [store for store in _stores(output_dir) if store.has_begun or store.shards()]


def _stores(output_dir: Path, under: str = "") -> list[RunStore]:
    """The folders in `runs/<under>` whose names can be ids, in name order."""
    folder = output_dir / "runs" / under
    names = sorted(f"{under}{path.name}" for path in folder.iterdir()) if folder.is_dir() else []
    return [RunStore(output_dir, name) for name in names if RUN_ID.fullmatch(name)]


def newest_run(output_dir: Path) -> RunStore | None:
    """The run that was started or resumed last, or `None`.

    `<output_dir>/results` points at it; without that link it is the last one by name.
    """
    # Not `Path.resolve`, which raises for links that form a loop.
    target = Path(os.path.realpath(output_dir / "results")).parent
    if target.parent == Path(os.path.realpath(output_dir / "runs")) and target.is_dir():
        return RunStore(output_dir, target.name)
    found = runs_in(output_dir)
    return found[-1] if found else None


def run_of(folder: Path) -> RunStore | None:
    """The run or shard whose folder this is, judging by its path; `None` if it does not belong to a run."""
    path = folder.resolve()
    whole = path.parent.parent if path.parent.name == "shards" else path
    run_id = path.relative_to(whole.parent).as_posix()
    if whole.parent.name != "runs" or not RUN_ID.fullmatch(run_id):
        return None
    return RunStore(whole.parent.parent, run_id)


def resolve_run(argument: str, output_dir: Path) -> RunStore:
    """A run by id, by its folder, or `latest`.

    Raises `ConfigError` if there is none, a newer version wrote it, or its shards were not merged.
    """
    store = find_run(argument, output_dir)
    if not store.has_begun and store.shards():
        raise ConfigError(f"run {store.run_id} is in shards", remedy=f"merge them: wabe merge {argument}")
    store.read_run()
    return store


def find_run(argument: str, output_dir: Path) -> RunStore:
    """Like `resolve_run`, but also finds runs whose shards were not merged. Raises `ConfigError` if there is none."""
    path = Path(argument)
    if argument in ("", "latest"):
        newest = newest_run(output_dir)
        if newest is None:
            raise ConfigError(f"no run under {output_dir / 'runs'}", remedy="run agentbeats-run first")
        store = newest
    elif (output_dir / "runs" / argument).is_dir() and RUN_ID.fullmatch(argument):
        store = RunStore(output_dir, argument)
    elif path.is_dir() and (found := run_of(path)) is not None:
        store = found
    elif (path / "run.json").is_file():
        home = output_dir / "runs" / path.resolve().name
        raise ConfigError(f"{argument} is not in a folder named runs, as every run is", remedy=f"move it to {home}")
    else:
        raise ConfigError(f"no run {argument!r} under {output_dir / 'runs'}", remedy="give a run id or a run's folder")
    return store


def bounded(record: R) -> R:
    """The record with every field cut to its limit; equal to the argument if all are within their limits.

    A field without its own limit may take 2,000 bytes, so that fields added later are bounded as well.
    """
    cut = {
        name: made
        for name in type(record).model_fields
        if (made := _bounded(value := getattr(record, name), _LIMITS.get(name, _DEFAULT_LIMIT))) is not value
    }
    # The judge's description is in every verdict; a copy for each task would use too much memory.
    return record.model_copy(update=cut) if cut else record


def written_bytes(value: Any) -> int:
    """An upper bound for a JSON value's bytes in `result.json`, `steps.jsonl` or a verdict's file."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    escapes = sum(added * text.count(character) for character, added in _ESCAPED_IN_LINES)
    return len(text.encode("utf-8", "backslashreplace")) + escapes + 2 * _DEPTH * text.count("\n")


def clip_text(text: str, limit: int) -> str:
    """`text` cut to at most `limit` written bytes; if cut, it ends with a note of its original length."""
    text = without_surrogates(text)
    # A character takes at most six bytes, so most texts need not be written to be measured.
    if 6 * len(text) + 2 <= limit or (len(text) <= limit and written_bytes(text) <= limit):
        return text
    mark = f"… ({len(text)} characters)"
    room = limit - written_bytes(mark)
    kept = bisect.bisect_right(range(max(room, 0) + 1), room + 2, key=lambda size: written_bytes(text[:size])) - 1
    return text[: max(kept, 0)] + mark


def fit(value: Any, limit: int) -> Any:
    """A JSON value in at most `limit` written bytes: its longest strings are cut, all to the same length.

    If even cutting them is not enough, the value is replaced by an object with the beginning of its JSON.
    """
    made, longest = value, limit
    while written_bytes(made) > limit:
        longest //= 4
        if longest < 50:
            return {"…": clip_text(json.dumps(value, ensure_ascii=False), limit - 100)}
        made = _clipped(value, longest)
    return made


def first_of(texts: Sequence[str], limit: int, *, note: bool = True) -> tuple[str, ...]:
    """As many of the first texts as fit into `limit` written bytes, then (with `note`) how many are missing."""
    if written_bytes(texts) <= limit:
        return tuple(texts)
    kept: list[str] = []
    # 100 bytes are kept for the note.
    left = limit - 100
    for text in texts:
        short = clip_text(text, limit // 4)
        left -= written_bytes([short])
        if left < 0:
            break
        kept.append(short)
    missing = len(texts) - len(kept)
    return (*kept, f"… {missing} more") if note and missing else tuple(kept)


def _bounded(value: Any, limit: int) -> Any:
    match value:
        case str():
            return clip_text(value, limit)
        case Record():
            return bounded(value)
        case dict():
            return fit(value, limit)
        case tuple() if all(isinstance(item, str) for item in value):
            return first_of(value, limit)
        case tuple():
            return tuple(_bounded(item, limit) for item in value)
    return value


def _clipped(value: Any, longest: int) -> Any:
    match value:
        case str():
            return clip_text(value, longest)
        case Mapping():
            return {clip_text(str(key), longest): _clipped(item, longest) for key, item in value.items()}
        case list() | tuple():
            return [_clipped(item, longest) for item in value]
    return value


@contextlib.contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` while the body runs. Raises `ConfigError` that names the process holding it.

    The kernel releases the lock when the process ends, however it ends. On a file system without locks (some mounted
    volumes) this logs a warning and continues without a lock.
    """
    with write_errors(f"cannot write {path}", "check who owns the folder, and the disk's space"):
        # Python opens files close-on-exec, so no browser or participant started meanwhile inherits the lock.
        stream = open(path, "a+b", buffering=0, opener=_open_no_link)  # noqa: SIM115
    with stream:
        try:
            _take_lock(stream.fileno())
        except BlockingIOError:
            stream.seek(0)
            holder = (stream.read(_MAX_HOLDER_BYTES) or b"").decode("utf-8", "replace").strip()
            raise ConfigError(
                f"{what} is being written by {holder or 'another process'}", remedy="wait until it ends, or stop it"
            ) from None
        except OSError as error:
            _log.warning(
                "%s: this file system has no locks (%s), so a second process could write here too", what, error.strerror
            )
        # On a full disk the message cannot name the holder, but the lock still holds.
        with contextlib.suppress(OSError):
            stream.truncate(0)
            stream.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


def _take_lock(file: int) -> None:
    if sys.platform == "win32":
        return None
    for _ in range(_LOCK_ATTEMPTS - 1):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A process that only checks whether the folder is in use (`_is_locked`) holds the lock for an instant.
        time.sleep(0.005)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open_no_link(path: str, flags: int) -> int:
    """An opener that refuses links: the lock file is written, and a link could point to any of the user's files."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def link_latest(output_dir: Path, results: Path) -> None:
    """Make `<output_dir>/results` a relative link to `results`. A real folder of that name is left alone."""
    link = output_dir / "results"
    if link.exists() and not link.is_symlink():
        return
    fresh = output_dir / f".results.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    try:
        fresh.symlink_to(os.path.relpath(results, output_dir), target_is_directory=True)
        # In one step, so that readers always find a link.
        fresh.replace(link)
    except OSError:
        # On a file system without links (some mounted volumes), only this convenience is missing.
        fresh.unlink(missing_ok=True)


def _is_locked(path: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        with path.open("rb") as stream:
            # Shared, so that two processes that only look do not take each other for the holder.
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
