"""The run folder: where everything is, and how it is found.

Layout (contract): `runs/<run_id>/results/<task_id>/{result.json, trajectory/, snapshots/, steps.jsonl, verdicts/}`,
`final/` if a final observation was recorded, and `downloads/` if there were any. Later epochs are in
`runs/<run_id>/epochs/<n>/results/<task_id>/`, and all episodes (`judge.store.episodes`) in
`runs/<run_id>/episodes/<n>/results/<task_id>/`.
A shard is a run of its own in `runs/<run_id>/shards/003-of-020/`.
Every step is flushed before the next begins; everything else is written atomically.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from judge.records.steps import Step
from judge.records.tasks import TASK_ID, key_of
from judge.records.verdicts import Verdict
from judge.store.bounds import bounded
from judge.store.locks import is_locked, locked
from judge.store.run_files import RUN, RUN_FILES, SUBMISSION
from shared.errors import ConfigError, WabeError
from shared.files import read_json, sha256_json, write_errors, write_json
from shared.images import SUFFIXES
from shared.models import Page
from shared.settings import Settings
from shared.snapshot import cut_snapshot
from shared.text import excerpt

RUN_SCHEMA = "wabe-run-2"
# Runs of these versions are read-only: they can be shown, scored and verified, but are never resumed or rewritten.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(/shards/[0-9]{3,4}-of-[0-9]{3,4})?")
# JSON allows these characters inside strings, but many line readers treat them as line breaks.
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
# The `result.json` of an attempt that does not count any more.
WITHDRAWN = "withdrawn.json"
_ATTEMPTS = "attempts"
_EPOCHS = "epochs"
EPISODES = "episodes"
_IN_EPOCH = re.compile(rf"/(?:{_EPOCHS}/([1-9][0-9]{{0,2}})|{EPISODES}/([1-9][0-9]{{0,8}}))/results/[^/]+$")
_FINAL = "final"
VERDICTS = "verdicts"
DOWNLOADS = "downloads"
# In that folder: those that a later verdict of the same judge replaced, because other code gave them.
_EARLIER = "earlier"
_MAX_SNAPSHOT_CHARS = 4_000_000
_MIN_FREE_BYTES = 1_000_000_000


class TaskStore:
    """One task's folder. Every attempt begins in an empty one, so files of an earlier attempt cannot count for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @property
    def epoch(self) -> int:
        """The number of the epoch or episode, from 1, derived from the folder's path."""
        match = _IN_EPOCH.search(self.folder.as_posix())
        return int(match[1] or match[2]) if match else 1

    @property
    def key(self) -> str:
        """The name of the task in this epoch, unique in the run."""
        return key_of(self.name, self.epoch)

    def begin(self) -> None:
        """Prepare for a new attempt: move all files of an earlier one to `attempts/<n>/`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        leftovers = [path for path in self.folder.iterdir() if path.name != _ATTEMPTS]
        if leftovers:
            attempts = self.folder / _ATTEMPTS
            attempts.mkdir(exist_ok=True)
            before = [int(path.name) for path in attempts.iterdir() if path.name.isdecimal()]
            target = attempts / f"{max(before, default=0) + 1:03d}"
            target.mkdir()
            for path in leftovers:
                path.rename(target / path.name)
        for name in ("trajectory", "snapshots"):
            (self.folder / name).mkdir()

    @property
    def is_interrupted(self) -> bool:
        """Whether the current attempt has begun and has no end, because its judge was stopped."""
        has_end = any((self.folder / name).exists() for name in ("result.json", WITHDRAWN))
        return (self.folder / "trajectory").is_dir() and not has_end

    def attempts(self) -> int:
        """How many attempts have begun here, including the current one."""
        before = len(list((self.folder / _ATTEMPTS).glob("*")))
        return before + any(path.name != _ATTEMPTS for path in self.folder.glob("*"))

    def write_page(self, index: int, page: Page) -> dict[str, str | None]:
        """Write a step's screenshot, unchanged from the browser, and its snapshot.

        Returns the fields of the step that refer to them: paths relative to the task's folder, and digests of the
        files. The screenshot's are `None` if there was none.
        """
        return self._write_page(page, f"trajectory/step_{index:03d}", f"snapshots/step_{index:03d}")

    def write_final_page(self, page: Page) -> dict[str, str | None]:
        """Like `write_page`, for the final observation; `trajectory/` contains only observations before an action."""
        (self.folder / _FINAL).mkdir(exist_ok=True)
        return self._write_page(page, f"{_FINAL}/screenshot", f"{_FINAL}/snapshot")

    def write_download(self, number: int, data: bytes) -> str:
        """Write a downloaded file, and return its path. A name of the page's would be data, so it has none."""
        (self.folder / DOWNLOADS).mkdir(exist_ok=True)
        name = f"{DOWNLOADS}/{number:03d}.bin"
        (self.folder / name).write_bytes(data)
        return name

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
        verdicts = self.folder / VERDICTS
        # In a folder that somebody else made, it may lead to any place of this machine.
        if verdicts.is_symlink():
            raise OSError(errno.ELOOP, "a link, through which nothing is written", str(verdicts))
        write_json(verdicts / f"{judge_id}.json", verdict.model_dump(mode="json"))

    def keep_verdict(self, judge_id: str, verdict: Verdict) -> None:
        """Keep a verdict that another one of the same judge will replace, in `verdicts/earlier`. Raises `OSError`."""
        digest = sha256_json(verdict.model_dump(mode="json"))
        self.write_verdict(f"{_EARLIER}/{judge_id}.{digest[:12]}", verdict)

    def read_verdict(self, judge_id: str) -> Verdict | None:
        """The stored verdict of this judge, or `None` if it is missing or unreadable."""
        with contextlib.suppress(OSError, ValueError):
            return Verdict.model_validate(read_json(self.folder / VERDICTS / f"{judge_id}.json"))
        return None


def verdicts_in(folder: Path) -> dict[str, Verdict | Exception]:
    """The verdicts on a task by judge id, oldest first; of one that cannot be read, why."""
    found: dict[str, Verdict | Exception] = {}
    for path in sorted((folder / VERDICTS).glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name)):
        try:
            found[path.stem] = Verdict.model_validate(read_json(path))
        except (OSError, ValueError) as error:
            found[path.stem] = error
    return found


def readable_verdicts(folder: Path) -> dict[str, Verdict]:
    """Those that can be read."""
    return {judge_id: each for judge_id, each in verdicts_in(folder).items() if isinstance(each, Verdict)}


class RunStore:
    """One run's folder: `<output_dir>/runs/<run_id>`, or a copy of it in another `folder`, which is only read.

    The id of a shard is `<run_id>/shards/003-of-020`. `asks_for_key`: reading the tasks of a sealed set needs its key.
    """

    asks_for_key = True

    def __init__(self, output_dir: Path, run_id: str, folder: Path | None = None) -> None:
        if not RUN_ID.fullmatch(run_id):
            raise ConfigError(
                f"run id {run_id[:60]!r} is not usable as a folder name",
                remedy="use letters, digits, '.', '_' and '-', starting with a letter or digit",
            )
        self.output_dir = output_dir
        self.run_id = run_id
        self.folder = folder or output_dir / "runs" / run_id
        self.results = self.folder / "results"
        self.logs = self.folder / "logs"
        # The folder for reports and exports of the run.
        self.derived = self.folder

    @property
    def is_being_judged(self) -> bool:
        """Whether a process holds the folder as its judge. Always false on file systems without locks."""
        return is_locked(self.folder / ".judge.lock")

    @property
    def is_in_progress(self) -> bool:
        """Whether a process holds the folder or a shard in it. Always false on file systems without locks."""
        return any(is_locked(path) for path in (*self.folder.glob(".*.lock"), *self.folder.glob("shards/*/.*.lock")))

    @contextlib.contextmanager
    def held(self, by: Literal["judge", "runner"]) -> Iterator[None]:
        """Lock the folder as its only judge (which writes results) or its only runner (`agentbeats-run`).

        A folder created for this is removed again if no run began in it. Raises `ConfigError` if another
        process holds the lock, or the folder cannot be written.
        """
        new_folders = [path for path in (self.output_dir, self.folder.parent, self.folder) if not path.exists()]
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with locked(self.folder / f".{by}.lock", f"run {self.run_id}"):
                yield
        finally:
            if self.folder in new_folders and not self.has_begun:
                shutil.rmtree(self.folder, ignore_errors=True)
                with contextlib.suppress(OSError):
                    for parent in reversed(new_folders[:-1]):
                        parent.rmdir()

    def shards(self) -> "list[RunStore]":
        """The shards that have begun, in numerical order."""
        stores = [store for store in _stores(self.output_dir, f"{self.run_id}/shards/") if store.has_begun]
        return stores if self.asks_for_key else [store.without_key() for store in stores]

    @property
    def has_begun(self) -> bool:
        """Whether a run was recorded here; a run that never started leaves only logs."""
        return any((self.folder / each.name).exists() for each in RUN_FILES if each.begins)

    @property
    def traces(self) -> Path:
        """The folder of `--record-trace`: beside the runs, because nothing that covers a run may cover it."""
        return self.output_dir / "traces" / self.run_id

    def create(self) -> None:
        """Create the folders and point `<output_dir>/results` at this run, unless it is a shard."""
        with self._writing():
            self.results.mkdir(parents=True, exist_ok=True)
            if "/" not in self.run_id:
                link_latest(self.output_dir, self.results)

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return write_errors(f"cannot write under {self.output_dir}", "choose another --output-dir or free some space")

    def task(self, task_id: str, epoch: int = 1) -> TaskStore:
        """The folder of one task in one epoch or episode. Ids are validated again here, because they become paths."""
        if not TASK_ID.fullmatch(task_id):
            raise WabeError(f"task id {task_id[:60]!r} is not usable as a folder name")
        if self.has_episodes:
            return TaskStore(self.episodes / str(epoch) / "results" / task_id)
        results = self.results if epoch == 1 else self.folder / _EPOCHS / str(epoch) / "results"
        return TaskStore(results / task_id)

    @property
    def episodes(self) -> Path:
        """The folder of the episodes of a served scenario."""
        return self.folder / EPISODES

    @property
    def has_episodes(self) -> bool:
        """Whether the attempts are the episodes of a served scenario, each with one task."""
        return self.episodes.is_dir()

    def without_key(self) -> Self:
        """This run for whoever shows nothing of its tasks, or has shown the key: a sealed set is not asked about."""
        self.asks_for_key = False
        return self

    @cached_property
    def is_sealed(self) -> bool:
        """Whether the run is of a sealed set: its folder has the tasks in the clear."""
        whole = self.folder / RUN.name
        # A folder of another tool may have no tasks, which is an error of whoever reads them.
        with contextlib.suppress(ConfigError):
            for path in (whole, *(task.folder / "result.json" for task in self.task_folders())):
                with contextlib.suppress(OSError, ValueError):
                    record = read_json(path)
                    if isinstance(record, dict) and ("sealed" in record or path != whole):
                        return bool(record.get("sealed"))
        return False

    def require_key(self) -> None:
        """Raise a `ConfigError` for a run of a sealed set without a key.

        Whoever has the folder has the tasks; this keeps a command in a public workflow from publishing them.
        """
        if not self.asks_for_key or not self.is_sealed:
            return
        # Imported here because the import is slow.
        from judge.store.sealing import KEY_VARIABLE, key_in

        if key_in(Settings.from_environ().seal_key) is None:
            raise ConfigError(
                f"run {self.run_id} is of a sealed task set, and this would show its tasks",
                remedy=f"set {KEY_VARIABLE} if nobody else will see it (wabe report --public needs no key)",
            )

    def tasks(self) -> Iterator[TaskStore]:
        """Every task folder of the run, to be read. Raises `ConfigError` for a sealed set without its key."""
        self.require_key()
        return self.task_folders()

    def task_folders(self) -> Iterator[TaskStore]:
        """Every task folder of the run, epoch by epoch or episode by episode, in name order."""
        for results in results_folders(self.folder):
            for folder in sorted(results.iterdir()):
                if folder.is_dir():
                    yield TaskStore(folder)

    def write_run(self, record: dict[str, Any]) -> None:
        """Write `run.json` atomically."""
        write_json(self.folder / RUN.name, record)

    def read_run(self) -> dict[str, Any] | None:
        """The stored `run.json`, or `None` if it is missing or damaged.

        Raises `ConfigError` if another version wrote it.
        """
        path = self.folder / RUN.name
        with contextlib.suppress(OSError, ValueError):
            value = read_json(path)
            if isinstance(value, dict):
                if (version := value.get("schema_version", RUN_SCHEMA)) != RUN_SCHEMA:
                    raise ConfigError(
                        f"{path}: unknown schema_version {excerpt(str(version))}",
                        remedy=f"upgrade wabe; this version reads up to {RUN_SCHEMA}",
                    )
                return value
        return None

    def write_submission(self, submission: dict[str, Any]) -> None:
        """Write `results.json` atomically."""
        write_json(self.folder / SUBMISSION.name, submission)


def results_folders(folder: Path) -> list[Path]:
    """The results folders of a run: the first epoch's, then later epochs', or of its episodes, in order."""
    inside = (path for name in (_EPOCHS, EPISODES) for path in (folder / name).glob("*/results"))
    folders = [path for path in inside if _IN_EPOCH.search(f"{path.as_posix()}/x")]
    later = sorted(folders, key=lambda path: int(path.parent.name))
    return [path for path in (folder / "results", *later) if path.is_dir()]


def new_run_id() -> str:
    """A new id: the time first, so that names sort by age, then random letters, so that no two runs collide."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def output_folder(option: Path | None, settings: Settings | None = None) -> Path:
    """The folder that contains `runs/`: `--output-dir`, else `WABE_OUTPUT_DIR`, else `.output`."""
    return option or Path((settings or Settings.from_environ()).output_dir or ".output")


def runs_in(output_dir: Path) -> list[RunStore]:
    """Every run, sharded or not, that was begun under `output_dir`, oldest first."""
    return [store for store in _stores(output_dir) if store.has_begun or store.shards()]


def recorded_runs(output_dir: Path) -> Iterator[tuple[RunStore, dict[str, Any]]]:
    """These runs with their `run.json`, the newest first; those that another version recorded are left out."""
    for store in reversed(runs_in(output_dir)):
        with contextlib.suppress(ConfigError):
            record = store.read_run() or {}
            yield store, record


def _stores(output_dir: Path, under: str = "") -> list[RunStore]:
    """The folders in `runs/<under>` whose names can be ids, in name order."""
    folder = output_dir / "runs" / under
    names = sorted(f"{under}{path.name}" for path in folder.iterdir()) if folder.is_dir() else []
    return [RunStore(output_dir, name) for name in names if RUN_ID.fullmatch(name)]


def newest_run(output_dir: Path) -> RunStore | None:
    """The run started or resumed last, or `None`.

    `<output_dir>/results` points at it; without that link it is the last one by name.
    """
    # Not `Path.resolve`, which raises for links that form a loop.
    target = Path(os.path.realpath(output_dir / "results")).parent
    if target.parent == Path(os.path.realpath(output_dir / "runs")) and target.is_dir():
        return RunStore(output_dir, target.name)
    run_stores = runs_in(output_dir)
    return run_stores[-1] if run_stores else None


def run_of(folder: Path) -> RunStore | None:
    """The run or shard whose folder this is, judging by its path; `None` if it does not belong to a run."""
    path = folder.resolve()
    whole = path.parent.parent if path.parent.name == "shards" else path
    run_id = path.relative_to(whole.parent).as_posix()
    if whole.parent.name != "runs" or not RUN_ID.fullmatch(run_id):
        return None
    return RunStore(whole.parent.parent, run_id)


def run_at(folder: Path, output_dir: Path) -> RunStore | None:
    """The run or shard in this folder, wherever it is; `None` for a folder without a `run.json`.

    Reports of several runs go to `output_dir`.
    """
    path = folder.resolve()
    if not (path / "run.json").is_file():
        return None
    if (run_store := run_of(path)) is not None:
        return run_store
    run_id = path.name
    with contextlib.suppress(OSError, ValueError):
        # The folder of a copy may have any name.
        record = read_json(path / "run.json")
        run_id = str(record.get("run_id") or run_id) if isinstance(record, dict) else run_id
    return RunStore(output_dir, run_id if RUN_ID.fullmatch(run_id) else "run", path)


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
            raise ConfigError(f"no run under {output_dir / 'runs'}", remedy="start one: wabe run demo")
        store = newest
    elif (output_dir / "runs" / argument).is_dir() and RUN_ID.fullmatch(argument):
        store = RunStore(output_dir, argument)
    elif path.is_dir() and (run_store := run_of(path)) is not None:
        store = run_store
    elif (path / "run.json").is_file():
        home = output_dir / "runs" / path.resolve().name
        raise ConfigError(f"{argument} is not in a folder named runs, as every run is", remedy=f"move it to {home}")
    else:
        raise ConfigError(
            f"no run {argument!r} under {output_dir / 'runs'}",
            remedy="give a run id or a run's folder; wabe runs lists them",
        )
    return store


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


def free_space(output_dir: Path) -> tuple[str, bool]:
    """The space left for results in a sentence, and whether it is enough (a task needs about 2 MB).

    The folder may not exist yet; then its nearest parent decides.
    """
    existing = next(path for path in (output_dir, *output_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 1e9:.1f} GB free for {output_dir}"
    if free >= _MIN_FREE_BYTES:
        return text, True
    return f"{text}: too little; free some or choose --output-dir", False
