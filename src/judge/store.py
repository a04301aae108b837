"""The run folder: what runners write and judges read.

Layout (contract): `runs/<run_id>/results/<task_id>/{result.json, trajectory/, snapshots/, steps.jsonl, verdicts/}`.
Every step is flushed before the next begins; everything else is written atomically.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from judge.files import read_json, write_json
from judge.record_limits import MAX_SNAPSHOT_CHARS, bounded
from judge.run_lock import locked
from judge.trajectory.files import load_trajectory as load_trajectory
from judge.trajectory.record import Trajectory
from judge.trajectory.schemas import OLDER_RUN_SCHEMAS, RUN_SCHEMA
from shared.errors import ConfigError, WabeError
from shared.models import TASK_ID, Page, Step, Verdict
from shared.settings import Settings
from shared.snapshot import cut_snapshot
from shared.text import excerpt

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}
# JSON lets these stand in a text as they are, but many readers of lines end a line at them.
_LINE_BREAKS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
_ATTEMPTS = "attempts"


class TaskStore:
    """One task's folder. An attempt begins in an empty one, so nothing of an earlier attempt can count for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._steps_path = folder / "steps.jsonl"

    def begin(self) -> None:
        """Make room for a new attempt: everything that an earlier one left moves to `attempts/<n>/`."""
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
        """How many attempts have begun here, the present one among them."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        before = len(list((self.folder / _ATTEMPTS).iterdir())) if _ATTEMPTS in names else 0
        return before + any(name != _ATTEMPTS for name in names)

    def write_page(self, index: int, page: Page) -> dict[str, str | None]:
        """Write a step's screenshot, byte for byte as the browser gave it, and its snapshot.

        Returns the fields of the step that name them: paths relative to the task's folder, and digests of the bytes
        written. The screenshot's are `None` when there was none.
        """
        snapshot = cut_snapshot(page.snapshot, MAX_SNAPSHOT_CHARS).encode("utf-8", "backslashreplace")
        files = {"snapshot": (f"snapshots/step_{index:03d}.yaml", snapshot)}
        if page.screenshot is not None:
            suffix = _SUFFIXES.get(page.media_type, "jpg")
            files["screenshot"] = (f"trajectory/step_{index:03d}.{suffix}", page.screenshot)
        fields: dict[str, str | None] = {"screenshot": None, "screenshot_sha256": None}
        for kind, (name, data) in files.items():
            (self.folder / name).write_bytes(data)
            fields |= {kind: name, f"{kind}_sha256": hashlib.sha256(data).hexdigest()}
        return fields

    def append_step(self, step: Step) -> Step:
        """Append one line to `steps.jsonl`; it is in the system's hands before this returns.

        Returns the step as it was recorded: within `judge.record_limits`.
        """
        step = bounded(step)
        line = json.dumps(step.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)
        line = line.translate(_LINE_BREAKS) + "\n"
        # One unbuffered write: a kill leaves the line whole or absent, and readers skip a torn last line.
        with self._steps_path.open("ab", buffering=0) as stream:
            stream.write(line.encode("utf-8", "backslashreplace"))
        return step

    def write_result(self, result: dict[str, Any]) -> None:
        """Write `result.json` atomically: its presence says that the episode is over."""
        write_json(self.folder / "result.json", result)

    def read_result(self) -> dict[str, Any] | None:
        """The stored `result.json`, or `None` when there is none that can be read."""
        with contextlib.suppress(OSError, ValueError):
            value = read_json(self.folder / "result.json")
            return value if isinstance(value, dict) else None
        return None

    def write_verdict(self, judge_id: str, verdict: Verdict) -> None:
        """Write `verdicts/<method>-<digest>.json` atomically."""
        write_json(self.folder / "verdicts" / f"{judge_id}.json", verdict.model_dump(mode="json"))

    def read_verdict(self, judge_id: str) -> Verdict | None:
        """The stored verdict of this very judge, or `None`."""
        with contextlib.suppress(OSError, ValueError):
            return Verdict.model_validate(read_json(self.folder / "verdicts" / f"{judge_id}.json"))
        return None

    def trajectory(self) -> Trajectory:
        """What stands on disk. Raises `TrajectoryError`."""
        return load_trajectory(self.folder)


class RunStore:
    """One run's folder under `<output_dir>/runs/<run_id>`."""

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

    @contextlib.contextmanager
    def held(self, by: Literal["judge", "runner"]) -> Iterator[None]:
        """Hold the folder as its only judge (whoever writes results) or its only runner (`agentbeats-run`).

        A folder that was made for this and in which no run began is gone afterwards. Raises `ConfigError` when another
        process holds it, or it cannot be written.
        """
        made = [path for path in (self.output_dir, self.folder.parent, self.folder) if not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            with locked(self.folder / f".{by}.lock", f"run {self.run_id}"):
                yield
        finally:
            if self.folder in made and not self.has_begun:
                remove_tree(self.folder)
                with contextlib.suppress(OSError):
                    for parent in reversed(made[:-1]):
                        parent.rmdir()

    @property
    def has_begun(self) -> bool:
        """Whether a run was recorded here; logs alone are those of one that never started."""
        return any((self.folder / name).exists() for name in ("run.json", "results", "results.json"))

    def create(self) -> None:
        """Make the folders and point `<output_dir>/results` at this run."""
        try:
            self.results.mkdir(parents=True, exist_ok=True)
            link_latest(self.output_dir, self.results)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"cannot write under {self.output_dir}: {error.strerror or error}",
            remedy="choose another --output-dir or free some space",
        )

    def task(self, task_id: str) -> TaskStore:
        """The folder of one task; ids are checked again here, since they become paths."""
        if not TASK_ID.fullmatch(task_id):
            raise WabeError(f"task id {task_id[:60]!r} is not usable as a folder name")
        return TaskStore(self.results / task_id)

    def tasks(self) -> Iterator[TaskStore]:
        """Every task folder of the run, in name order."""
        if self.results.is_dir():
            for folder in sorted(self.results.iterdir()):
                if folder.is_dir():
                    yield TaskStore(folder)

    def write_run(self, record: dict[str, Any]) -> None:
        """Write `run.json` atomically."""
        write_json(self.folder / "run.json", record)

    def read_run(self) -> dict[str, Any] | None:
        """The stored `run.json`, or `None` when it is missing or damaged.

        Raises `ConfigError` for one of a newer version. One without a version counts as old.
        """
        path = self.folder / "run.json"
        with contextlib.suppress(OSError, ValueError):
            value = read_json(path)
            if isinstance(value, dict):
                version = value.get("schema_version", OLDER_RUN_SCHEMAS[-1])
                if version not in (RUN_SCHEMA, *OLDER_RUN_SCHEMAS):
                    raise ConfigError(
                        f"{path}: schema_version {excerpt(str(version))} is not known to this version of wabe",
                        remedy=f"upgrade wabe; this one reads up to {RUN_SCHEMA}",
                    )
                return value
        return None

    def write_submission(self, submission: dict[str, Any]) -> None:
        """Write `results.json` atomically."""
        write_json(self.folder / "results.json", submission)


def new_run_id() -> str:
    """Time first, so that names sort by age; a few random letters, so that two runs never meet."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def link_latest(output_dir: Path, results: Path) -> None:
    """Make `<output_dir>/results` a relative link to `results`. A real folder of that name is left alone."""
    link = output_dir / "results"
    if link.exists() and not link.is_symlink():
        return
    fresh = output_dir / f".results.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    try:
        fresh.symlink_to(os.path.relpath(results, output_dir), target_is_directory=True)
        fresh.replace(link)
    except OSError:
        # File systems without links (some mounted volumes) lose the convenience, not the run.
        fresh.unlink(missing_ok=True)


def output_folder(option: Path | None, settings: Settings) -> Path:
    """Where runs are: the command line's `--output-dir`, else `WABE_OUTPUT_DIR`, else `.output`."""
    return option or Path(settings.output_dir or ".output")


def runs_in(output_dir: Path) -> list[RunStore]:
    """Every run that was begun under `output_dir`, in name order: ids begin with their time."""
    folder = output_dir / "runs"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    stores = [RunStore(output_dir, name) for name in names if RUN_ID.fullmatch(name)]
    return [store for store in stores if store.has_begun]


def newest_run(output_dir: Path) -> RunStore | None:
    """The run that was begun or gone on with last, or `None`.

    `<output_dir>/results` points at it. Where there are no links it is told by name.
    """
    # Not `Path.resolve`, which raises for links that lead back to themselves.
    pointed = Path(os.path.realpath(output_dir / "results")).parent
    if pointed.parent == Path(os.path.realpath(output_dir / "runs")) and pointed.is_dir():
        return RunStore(output_dir, pointed.name)
    found = runs_in(output_dir)
    return found[-1] if found else None


def resolve_run(argument: str, output_dir: Path) -> RunStore:
    """A run by id, by its folder, or `latest`. Raises `ConfigError` when there is none, or a newer version wrote it."""
    store = _resolve(argument, output_dir)
    store.read_run()
    return store


def _resolve(argument: str, output_dir: Path) -> RunStore:
    path = Path(argument)
    if argument in ("", "latest"):
        found = newest_run(output_dir)
        if found is None:
            raise ConfigError(f"no run under {output_dir / 'runs'}", remedy="run agentbeats-run first")
        return found
    if (output_dir / "runs" / argument).is_dir() and RUN_ID.fullmatch(argument):
        return RunStore(output_dir, argument)
    if path.is_dir() and path.resolve().parent.name == "runs":
        return RunStore(path.resolve().parent.parent, path.resolve().name)
    raise ConfigError(f"no run {argument!r} under {output_dir / 'runs'}", remedy="give a run id or a run's folder")


def remove_tree(path: Path) -> None:
    """Delete a folder of ours; one that is already gone is fine."""
    shutil.rmtree(path, ignore_errors=True)
