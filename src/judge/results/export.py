"""Exports folders for other benchmarks' evaluators, and validates those of the Online-Mind2Web schema v2.

One folder per task: `<task_id>/result.json` and `<task_id>/trajectory/0000.jpg …`; for webeval also `tasks.json` with
the tasks' texts; for WebArena-Verified `<task number>/agent_response.json` and `<task number>/network.har`.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from judge.evaluators.webarena import evaluator_trace
from judge.judges.webarena import read_trace
from judge.records.verdicts import Verdict
from judge.results.folders import FoundTask, verdicts_beside
from judge.scenario.sources import read_task_rows
from judge.scenario.webarena import task_number
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.foreign import usable_id
from judge.trajectory.formats import webeval
from judge.trajectory.formats.online_mind2web import Problem, check_document, submission
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file, read_json, reason_of, write_atomic, write_errors, write_json
from shared.models import Record
from shared.text import counted

ONLINE_MIND2WEB: Final = "online-mind2web-v2"
WEBARENA: Final = "webarena-verified"
WEBEVAL: Final = "webeval"


class Exported(Record):
    """The result for one task: its folder, or the `reason` why it was left out."""

    task_id: str
    folder: Path | None = None
    reason: str | None = None


def export_tasks(
    tasks: Iterable[TaskStore],
    output: Path,
    reference_lengths: Mapping[str, int] | None = None,
    *,
    format_: str = ONLINE_MIND2WEB,
) -> Iterator[Exported]:
    """Write each task of a run as a folder under `output`; tasks that cannot be written are reported.

    Raises `ConfigError` when `output` cannot be written to.
    """
    lengths = reference_lengths or {}
    for source in tasks:
        # Because each task's folder in the output is replaced, which would delete the run.
        if Path(os.path.realpath(source.folder)).is_relative_to(os.path.realpath(output)):
            raise ConfigError(f"--output {output} holds the run itself", remedy="choose another folder")
        try:
            name, texts, images = _made(source, format_, lengths.get(source.name))
            with write_errors(output, "choose another --output or free some space"):
                folder = _write(source.folder, output / name, texts, images)
            yield Exported(task_id=source.name, folder=folder)
        except TrajectoryError as error:
            yield Exported(task_id=source.name, reason=str(error))


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
    """`{task_id: human reference length}` from a dataset file. Raises `ConfigError`."""
    lengths = {task_id: row.reference_length for task_id, row in read_task_rows(path, "--dataset").items()}
    # `type`, because a bool is an int.
    return {task_id: length for task_id, length in lengths.items() if type(length) is int and length > 0}


def write_tasks(tasks: Iterable[TaskStore], path: Path) -> None:
    """Write the texts of the tasks, which webeval stores separately, as a file that `--tasks` reads."""
    rows = []
    for store in tasks:
        with contextlib.suppress(TrajectoryError):
            task = load_trajectory(store.folder).task
            known = task.model_dump(include={"website", "level", "reference_length"})
            rows.append({"task_id": store.name, "confirmed_task": task.task, **known})
    write_json(path, rows)


def _made(store: TaskStore, format_: str, length: int | None) -> tuple[str, dict[str, str], list[tuple[str, str]]]:
    """The name of a task's folder, its text files by name, and its images as (recorded, new name)."""
    if format_ == WEBARENA:
        return *_webarena(store), []
    trajectory = load_trajectory(store.folder)
    if format_ == WEBEVAL:
        task = trajectory.task.model_copy(update={"task_id": store.name})
        named = trajectory.model_copy(update={"task": task})
        made = webeval.export(named, verdicts_beside(store), _counted(store, trajectory))
        folder = store.folder.resolve().name
        # A folder of another tool keeps its name, unless it had to be changed to be unique.
        name = folder if trajectory.is_foreign and usable_id(folder) == store.name else store.name
        return name, made.texts, list(made.screenshots)
    document = submission(trajectory, length)
    images = [(recorded, f"trajectory/{name}") for recorded, name in document.screenshots]
    return store.name, {"result.json": _json_text(document.document)}, images


def _counted(store: TaskStore, trajectory: Trajectory) -> Verdict | None:
    """The verdict that counts for a task; `None` if it is unscored or aborted."""
    attempt = store.attempt() if isinstance(store, FoundTask) else trajectory.attempt
    if attempt is None or attempt.outcome not in ("success", "failure"):
        return None
    verdict = attempt.verdict or Verdict(outcome="failure", reason=attempt.cause or attempt.stop_reason)
    return verdict.model_copy(update={"outcome": attempt.outcome})


def _webarena(store: TaskStore) -> tuple[str, dict[str, str]]:
    """The task's number and files. The answer is unchanged: the benchmark decides whether it is readable."""
    number = task_number(store.name)
    if number is None:
        raise TrajectoryError("not a task that was imported from WebArena-Verified")
    trajectory = load_trajectory(store.folder)
    if trajectory.is_aborted:
        raise TrajectoryError(f"aborted: {trajectory.error or trajectory.stop_reason}")
    har, dropped = read_trace(trajectory)
    if dropped:
        raise TrajectoryError(f"the network trace is incomplete: {counted(dropped, 'request')} went unrecorded")
    answer = (trajectory.final_answer or "").encode("utf-8", "replace").decode()
    return str(number), {"agent_response.json": answer, "network.har": _json_text(evaluator_trace(har))}


def _json_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write(source: Path, target: Path, texts: Mapping[str, str], images: Iterable[tuple[str, str]]) -> Path:
    """Write a sibling, then rename it, so that the folder is complete or absent, without leftovers of an older one."""
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
