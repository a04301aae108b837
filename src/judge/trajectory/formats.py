"""Layouts of trajectories, read or written (`wabe export --format NAME`): entry points of `wabe.formats`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.records.steps import Step
from judge.records.verdicts import Verdict
from judge.trajectory.record import Attempt, Trajectory
from shared.seams import Seam

if TYPE_CHECKING:
    from shared.settings import Settings


class Source(NamedTuple):
    """A task to write: its name in the run, its trajectory and its verdicts.

    `counted` is the verdict that counts, `None` for an unscored or aborted attempt; `verdicts` reads all, by judge id.
    """

    name: str
    trajectory: Trajectory
    counted: Verdict | None
    verdicts: Callable[[], Mapping[str, Verdict]]
    reference_length: int | None = None


class Turn(NamedTuple):
    """A step as writers see it.

    Its action began at `began`, in seconds since 1970. `line` is its action line if it was executed, `text` whatever is
    known of it, and `after` the page that it led to.
    """

    step: Step
    began: float
    line: str | None
    text: str
    after: Step | None


def turns(attempt: Attempt) -> Iterator[Turn]:
    """The steps; each began when the durations before it were over."""
    now = attempt.started_at
    for step, after in zip_longest(attempt.steps, attempt.observations[1:]):
        now += step.timings.observe_s + step.timings.reply_s
        outcome = step.outcome
        line = outcome.line if outcome and outcome.ok else None
        yield Turn(step, now, line, line or (outcome.message if outcome else "") or step.feedback or "", after)
        now += step.timings.act_s


class ExportedTask(NamedTuple):
    """A written task: text files by name, and images as (recorded, new name). `name` is its folder's."""

    texts: Mapping[str, str]
    images: Sequence[tuple[str, str]] = ()
    name: str = ""


class FolderCheck(NamedTuple):
    """The result of checking a folder of written tasks: what is wrong, one line each, and how many are right.

    `fault` is why it could not be checked, though everything for it is there.
    """

    problems: Sequence[str]
    valid: int
    total: int
    fault: str = ""


def _no_verdicts(_folder: Path) -> dict[str, Verdict]:
    return {}


@dataclass(frozen=True, kw_only=True)
class FormatReader:
    """Reads folders of a layout without a `result.json`.

    `files` are those that identify a folder of this layout, none in any other. `load` raises `TrajectoryError`.
    `verdicts`, which may raise it as well, come from other evaluators, by id. `task_id` is the task's id in the layout.
    """

    files: Callable[[Path], list[Path]]
    load: Callable[[Path], Trajectory]
    verdicts: Callable[[Path], dict[str, Verdict]] = _no_verdicts
    task_id: Callable[[Path], str] = lambda folder: folder.name


@dataclass(frozen=True, kw_only=True)
class FormatWriter:
    """Writes tasks in a layout.

    `write` raises `TrajectoryError` for a task that has to be left out. `check` is called for the folder of all written
    tasks, with the reference lengths by task; it raises `ConfigError` if it cannot check here. `with_tasks` says
    whether the tasks' texts are written beside them, as `tasks.json`. `finish` writes what there is once for all
    tasks into that folder; it gets the folder, those of the tasks in it, and the run's record. `folder_in` is the
    folder below the output that holds the tasks, from the same record.
    """

    write: Callable[[Source], ExportedTask]
    check: "Callable[[Path, Mapping[str, int], Settings], FolderCheck] | None" = None
    with_tasks: bool = False
    finish: Callable[[Path, Sequence[Path], Mapping[str, Any]], None] | None = None
    folder_in: Callable[[Mapping[str, Any]], str] = lambda run: ""


@dataclass(frozen=True, kw_only=True)
class TasksWriter:
    """Writes the tasks of a scenario, for others to play.

    `write` is called with the scenario's file, the ids of the tasks (all without any) and a folder. It returns the
    written tasks' ids, each with `None`, and those that are left out, each with the reason; raises `ConfigError`.
    """

    write: "Callable[[Path, Sequence[str], Path, Settings], Mapping[str, str | None]]"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A layout of trajectories that is read, written, or both; or one of tasks."""

    reader: FormatReader | None = None
    writer: FormatWriter | None = None
    tasks: TasksWriter | None = None


FORMATS: Seam[Format] = Seam("formats", "format")


def json_text(value: object) -> str:
    """A JSON document as a text file."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def reader_of(folder: Path) -> tuple[str, FormatReader] | None:
    """The layout that a folder is in, by name; `None` if it is in none of them."""
    for name in FORMATS.names():
        reader = FORMATS.load(name).reader
        if reader is not None and reader.files(folder):
            return name, reader
    return None


def writers() -> dict[str, FormatWriter]:
    """The layouts of written trajectories, by name."""
    named_writers = ((name, FORMATS.load(name).writer) for name in FORMATS.names())
    return {name: writer for name, writer in named_writers if writer is not None}


def tasks_writers() -> dict[str, TasksWriter]:
    """The layouts of tasks, by name."""
    named_writers = ((name, FORMATS.load(name).tasks) for name in FORMATS.names())
    return {name: writer for name, writer in named_writers if writer is not None}
