"""Exports folders for other benchmarks' evaluators: one per task, in a layout of `judge.trajectory.formats`."""

import contextlib
import functools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from judge.plugins.export.online_mind2web import WRITER as ONLINE_MIND2WEB
from judge.records.verdicts import Verdict
from judge.results.folders import FoundTask, verdicts_beside
from judge.scenario.sources import read_task_rows
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.formats import ExportedTask, FormatWriter, Source
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file, write_atomic, write_errors, write_json
from shared.models import Record


class TaskExport(Record):
    """The result for one task: its folder, or the `reason` why it was left out."""

    task_id: str
    folder: Path | None = None
    reason: str | None = None


def export_tasks(
    tasks: Iterable[TaskStore],
    output: Path,
    reference_lengths: Mapping[str, int] | None = None,
    *,
    writer: FormatWriter = ONLINE_MIND2WEB,
) -> Iterator[TaskExport]:
    """Write each task of a run as a folder under `output`; tasks that cannot be written are reported.

    Raises `ConfigError` when `output` cannot be written to.
    """
    lengths = reference_lengths or {}
    for source in tasks:
        # Because each task's folder in the output is replaced, which would delete the run.
        if Path(os.path.realpath(source.folder)).is_relative_to(os.path.realpath(output)):
            raise ConfigError(f"--output {output} holds the run itself", remedy="choose another folder")
        try:
            exported = _export_task(source, writer, lengths.get(source.name))
            with write_errors(output, "choose another --output or free some space"):
                folder = _write(source.folder, output / exported.name, exported.texts, exported.images)
            yield TaskExport(task_id=source.name, folder=folder)
        except TrajectoryError as error:
            yield TaskExport(task_id=source.name, reason=str(error))


def read_reference_lengths(path: Path) -> dict[str, int]:
    """`{task_id: human reference length}` from a dataset file. Raises `ConfigError`."""
    lengths = {task_id: row.reference_length for task_id, row in read_task_rows(path, "--dataset").items()}
    # `type`, because a bool is an int.
    return {task_id: length for task_id, length in lengths.items() if type(length) is int and length > 0}


def write_tasks(tasks: Iterable[TaskStore], path: Path) -> None:
    """Write the texts of the tasks, which some layouts do not store, as a file that `--tasks` reads."""
    rows = []
    for store in tasks:
        with contextlib.suppress(TrajectoryError):
            task = load_trajectory(store.folder).task
            known = task.model_dump(include={"website", "level", "reference_length"})
            rows.append({"task_id": store.name, "confirmed_task": task.task, **known})
    write_json(path, rows)


def _export_task(store: TaskStore, writer: FormatWriter, length: int | None) -> ExportedTask:
    """The folder of one task."""
    trajectory = load_trajectory(store.folder)
    verdicts = functools.partial(verdicts_beside, store)
    exported = writer.write(Source(store.name, trajectory, _counted(store, trajectory), verdicts, length))
    return exported if exported.name else exported._replace(name=store.name)


def _counted(store: TaskStore, trajectory: Trajectory) -> Verdict | None:
    """The verdict that counts for a task; `None` if it is unscored or aborted."""
    attempt = store.attempt() if isinstance(store, FoundTask) else trajectory.attempt
    if attempt.outcome not in ("success", "failure"):
        return None
    verdict = attempt.verdict or Verdict(outcome="failure", reason=attempt.cause or attempt.stop_reason)
    return verdict.model_copy(update={"outcome": attempt.outcome})


def _write(source: Path, target: Path, texts: Mapping[str, str], images: Iterable[tuple[str, str]]) -> Path:
    """Write a sibling, then rename it, so that the folder is complete or absent, without leftovers of an older one."""
    fresh = target.with_name(f".{target.name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    for recorded, name in images:
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            (fresh / name).write_bytes(read_file(source / recorded))
        except ValueError as error:
            raise TrajectoryError(str(error), location=str(source / recorded)) from None
    for name, text in texts.items():
        write_atomic(fresh / name, text.encode("utf-8", "backslashreplace"))
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target
