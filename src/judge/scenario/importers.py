"""Sources of tasks: entry points of `wabe.importers`. Their names are what `wabe tasks import NAME` takes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judge.records.tasks import Task
from judge.scenario.models import SiteEntry
from shared.seams import Seam
from shared.settings import Settings


class ImportRequest(NamedTuple):
    """What to import, as given on the command line. `names` is the value of `--tasks`."""

    settings: Settings
    names: Sequence[str] = ()
    seeds: str | None = None
    success: str | None = None
    config: Path | None = None
    subset: str | None = None
    level: str | None = None
    limit: int | None = None
    output: Path | None = None
    # A file or folder that the source is read from, named after it.
    path: Path | None = None


class ImportedTasks(NamedTuple):
    """The tasks, the `[config]` of their scenario, the sites that serve them, and notes for the user."""

    tasks: Sequence[Task]
    settings: Mapping[str, Any]
    sites: Sequence[SiteEntry] = ()
    notes: Sequence[str] = ()


def _no_warnings(_task_ids: Iterable[str]) -> list[str]:
    return []


@dataclass(frozen=True, kw_only=True)
class Importer:
    """A source of tasks.

    `run` raises `ConfigError`. `takes` are the fields of `ImportRequest` that it reads besides `output`, `level` and
    `limit`; others are refused. `warnings` are about tasks of a scenario, by their ids. `log_in` logs in to the sites
    that a file names, and saves what tasks on them need to a folder. `check_kind` is the kind of check that its tasks
    have and others hardly do: `wabe agreement --truth NAME` compares with the checks of tasks that have it.
    """

    run: Callable[[ImportRequest], ImportedTasks]
    takes: Collection[str] = ()
    warnings: Callable[[Iterable[str]], list[str]] = _no_warnings
    log_in: Callable[[Path, Path], None] | None = None
    check_kind: str | None = None


IMPORTERS: Seam[Importer] = Seam("importers", "source of tasks")


def importer_warnings(task_ids: Sequence[str]) -> list[str]:
    """What the importers know about tasks, by their ids."""
    return [warning for name in IMPORTERS.names() for warning in IMPORTERS.load(name).warnings(task_ids)]
