"""Folders for other benchmarks' evaluators: in the Online-Mind2Web schema v2, and its validation; or in webeval's.

Layouts, one folder a task: `<task_id>/result.json` and `<task_id>/trajectory/0000.jpg …`, or webeval's with the tasks'
texts in `tasks.json` beside them.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from judge.results.folders import verdicts_beside
from judge.scenario.sources import dataset_records
from judge.store import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.formats import webeval
from judge.trajectory.formats.online_mind2web import Problem, check_document, submission
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file, read_json, reason_of, write_atomic, write_json
from shared.models import Record, Task

WEBARENA = "webarena-verified"
WEBEVAL = "webeval"
FORMATS = ("online-mind2web-v2", WEBEVAL, WEBARENA)


class Exported(Record):
    """The result for one task: its folder, or in `reason` why it was left out."""

    task_id: str
    folder: Path | None = None
    reason: str | None = None


def export_tasks(
    tasks: Iterable[TaskStore],
    output: Path,
    reference_lengths: Mapping[str, int] | None = None,
    *,
    format_: str = FORMATS[0],
) -> Iterator[Exported]:
    """Write each task of a run as a folder under `output`; tasks that cannot be written are reported.

    Raises `ConfigError` when `output` cannot be written to.
    """
    lengths = reference_lengths or {}
    for source in tasks:
        if Path(os.path.realpath(source.folder)).is_relative_to(os.path.realpath(output)):
            raise ConfigError(f"--output {output} holds the run itself", remedy="choose another folder")
        try:
            texts, images = _made(source, format_, lengths.get(source.name))
            yield Exported(task_id=source.name, folder=_write(source.folder, output / source.name, texts, images))
        except TrajectoryError as error:
            yield Exported(task_id=source.name, reason=str(error))
        except OSError as error:
            raise ConfigError(
                f"{output}: {error.strerror or error}", remedy="choose another --output or free some space"
            ) from None


def validate_folder(folder: Path, reference_lengths: Mapping[str, int] | None = None) -> dict[str, list[Problem]]:
    """The problems of each submission in `folder`: one task's folder, or a folder of them.

    Raises `ConfigError` when there is no submission in it.
    """
    is_task, is_folder = (folder / "result.json").is_file(), folder.is_dir()
    found = [folder] if is_task else sorted(path for path in folder.iterdir() if path.is_dir()) if is_folder else []
    if not found:
        raise ConfigError(f"{folder}: no <task_id>/result.json in it", remedy="give the folder of a submission")
    return {path.name: _validate(path, reference_lengths or {}) for path in found}


def read_reference_lengths(path: Path) -> dict[str, int]:
    """`{task_id: human reference length}` from an Online-Mind2Web dataset file (JSON). Raises `ConfigError`."""
    remedy = "give the dataset's file"
    try:
        content = read_file(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--dataset {path}: {reason_of(error)}", remedy=remedy) from None
    rows = dataset_records(content, f"--dataset {path}")
    if not rows:
        raise ConfigError(f"--dataset {path}: no tasks in it", remedy=remedy)
    lengths: dict[str, object] = {}
    for row in rows:
        if not isinstance(row, dict) or "task_id" not in row:
            raise ConfigError(f"--dataset {path}: expected a list of tasks", remedy=remedy)
        lengths[str(row["task_id"])] = row.get("reference_length")
    return {task_id: length for task_id, length in lengths.items() if type(length) is int and length > 0}


def write_tasks(tasks: Iterable[TaskStore], path: Path) -> None:
    """Write the texts of the tasks, which webeval keeps apart, as a file that `--tasks` reads."""
    rows = []
    for store in tasks:
        with contextlib.suppress(TrajectoryError):
            rows.append(_row(load_trajectory(store.folder).task, store.name))
    write_json(path, rows)


def _row(task: Task, name: str) -> dict[str, object]:
    row = {"task_id": name, "confirmed_task": task.task, **task.model_dump(include={"website", "level"})}
    return {**row, "reference_length": task.reference_length}


def _made(store: TaskStore, format_: str, length: int | None) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The texts of a task's folder by file name, and which recorded image becomes which file."""
    trajectory = load_trajectory(store.folder)
    if format_ == WEBEVAL:
        task = trajectory.task.model_copy(update={"task_id": store.name})
        named = trajectory.model_copy(update={"task": task})
        made = webeval.export(named, verdicts_beside(store))
        return made.texts, list(made.screenshots)
    document = submission(trajectory, length)
    texts = {"result.json": json.dumps(document.document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"}
    return texts, [(recorded, f"trajectory/{name}") for recorded, name in document.screenshots]


def _write(source: Path, target: Path, texts: Mapping[str, str], images: Iterable[tuple[str, str]]) -> Path:
    """Write a sibling, then move it: the folder is there whole or not at all, without leftovers of an older one."""
    fresh = target.with_name(f".{target.name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    for recorded, name in images:
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            (fresh / name).write_bytes(read_file(source / recorded))
        except ValueError as error:
            raise TrajectoryError(f"{source / recorded}: {error}") from None
    for name, text in texts.items():
        write_atomic(fresh / name, text.encode("utf-8", "backslashreplace"))
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target


def _validate(folder: Path, reference_lengths: Mapping[str, int]) -> list[Problem]:
    try:
        document = read_json(folder / "result.json")
    except FileNotFoundError:
        return [Problem(rule="schema", text="result.json is missing")]
    except (OSError, ValueError) as error:
        return [Problem(rule="schema", text=f"result.json cannot be read: {reason_of(error)}")]
    images = folder / "trajectory"
    files = {path.name for path in images.iterdir() if path.is_file()} if images.is_dir() else set()
    known = reference_lengths.get(folder.name)
    return check_document(document, files, folder_name=folder.resolve().name, reference_length=known)
