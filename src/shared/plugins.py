"""Plug-ins: each is a capability that a run can do without, in one folder, described by one record.

Settings, facts and columns are fields of a class, declared as those of the core are. They become fields of the core's
own records, so that everything that follows from a declaration follows for them as well.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from shared.errors import ConfigError
from shared.models import Record
from shared.seams import Seam

T = TypeVar("T")


class ReportSection(NamedTuple):
    """A section of the report's first page."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Plugin:
    """An entry point of `wabe.plugins`. All hooks are here, and each may be left out.

    The module of this record is imported with the core's records, so it imports only `shared` and `judge.records`.
    Functions import what they need when they are called.
    """

    settings: type[BaseModel] | None = None
    """A `Table` whose fields, each with a `Setting`, are keys of `[config]`, with option, `--resume` and checksum."""
    options: type[Record] | None = None
    """A record whose fields, each with a `Setting` with an option, are options of `wabe run` and of no scenario."""
    results: Callable[[Any], Any] | None = None
    """What follows from a run's results (`judge.runner.followers.Follower`), for its `RunOptions`, or `None`.

    Called before the run exists; raises `ConfigError`.
    """
    configured: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Settings that follow from a run's `judge.runner.start.Start` and from the settings so far."""
    validated: Callable[..., tuple[list[str], list[str]]] | None = None
    """Problems and notes of trying a scenario: `wabe tasks validate FILE --variants`; with `write`, kept beside it."""
    facts: type[Record] | None = None
    """A record whose fields are facts of an attempt, stored under their names in `result.json` (`ResultKey`)."""
    columns: Callable[[], type[Any]] | None = None
    """A frozen dataclass, keywords only, whose fields (`judge.results.columns.column`) are columns of rows."""
    tools: Callable[[], Mapping[str, Any]] | None = None
    """What participants may call beside the core's tools (`judge.records.tools.Tool`), by name."""
    part: Callable[[Any], Any] | None = None
    """Makes the part of an attempt (`judge.episode.part.AttemptPart`) called first, for an `AttemptStage`."""
    run: Callable[[], type[Any]] | None = None
    """The part of a run (`judge.results.part.RunPart`): totals in its submission, a section of its report, and more."""
    verify: Callable[[Any], Iterable[str]] | None = None
    """What contradicts the plug-in's facts in a recorded attempt (`judge.trajectory.record.Attempt`): mismatches."""


PLUGINS: Seam[Plugin] = Seam("plugins", "plug-in")


@functools.cache
def plugins() -> Mapping[str, Plugin]:
    """All installed plug-ins by name, ours first."""
    return {name: PLUGINS.load(name) for name in PLUGINS.names()}


def extended(record: type[T], hook: Literal["settings", "options", "facts", "columns"]) -> type[T]:
    """The record with the fields of all plug-ins after its own. Raises `ConfigError` for a taken name."""
    for name, plugin in plugins().items():
        declared = getattr(plugin, hook)
        if declared is None:
            continue
        added = declared() if hook == "columns" else declared
        if taken := _names(added) & _names(record):
            problem = f"plug-in {name} declares {min(taken)!r}, which there is already"
            raise ConfigError(problem, remedy="rename it there, or uninstall one of the two")
        metaclass: Any = type(record)
        body = {"__module__": record.__module__, "__doc__": record.__doc__}
        record = metaclass(record.__name__, (added, record), body)
        if is_dataclass(added):
            record = dataclass(frozen=True, kw_only=True)(record)
    return record


def _names(record: type[Any]) -> set[str]:
    return {each.name for each in fields(record)} if is_dataclass(record) else set(record.model_fields)
