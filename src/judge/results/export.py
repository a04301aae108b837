"""Submission folders for other benchmarks' evaluators: a run in the Online-Mind2Web schema v2, and its validation.

Layout: `<task_id>/result.json` and `<task_id>/trajectory/0000.jpg …`, one folder a task.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from judge.scenario.sources import dataset_records
from judge.trajectory.files import load_trajectory
from judge.trajectory.formats.online_mind2web import Problem, Submission, check_document, submission
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file, read_json, reason_of, write_json
from shared.models import Record

WEBARENA = "webarena-verified"
FORMATS = ("online-mind2web-v2", WEBARENA)


class Exported(Record):
    """The result for one task: its folder, or in `reason` why it was left out."""

    task_id: str
    folder: Path | None = None
    reason: str | None = None


def export_tasks(
    folders: Iterable[Path], output: Path, reference_lengths: Mapping[str, int] | None = None
) -> Iterator[Exported]:
    """Write each task folder of a run as a submission folder under `output`; tasks that cannot be written are reported.

    Raises `ConfigError` when `output` cannot be written to.
    """
    lengths = reference_lengths or {}
    for source in folders:
        if Path(os.path.realpath(source)).is_relative_to(os.path.realpath(output)):
            raise ConfigError(f"--output {output} holds the run itself", remedy="choose another folder")
        try:
            made = submission(load_trajectory(source), lengths.get(source.name))
            yield Exported(task_id=source.name, folder=_write(source, output / source.name, made))
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


def _write(source: Path, target: Path, made: Submission) -> Path:
    """Write a sibling, then move it: a submission is there whole or not at all, without leftovers of an older one."""
    fresh = target.with_name(f".{target.name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "trajectory").mkdir(parents=True)
    for recorded, name in made.screenshots:
        try:
            (fresh / "trajectory" / name).write_bytes(read_file(source / recorded))
        except ValueError as error:
            raise TrajectoryError(f"{source / recorded}: {error}") from None
    write_json(fresh / "result.json", made.document)
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
