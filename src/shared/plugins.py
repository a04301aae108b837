"""Plug-ins: each is a capability that a run can do without, in one folder, described by one record.

Settings, facts and columns are fields of a class, declared as those of the core are. They become fields of the core's
own records, so that everything that follows from a declaration follows for them as well.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from shared.errors import ConfigError
from shared.fields import Table
from shared.models import Record
from shared.seams import Seam

T = TypeVar("T")


class ReportSection(NamedTuple):
    """A section of the report's first page."""

    title: str
    lines: Sequence[str]


class Facts(Record):
    """Facts of an attempt, stored under their names in `result.json` (`ResultKey`)."""

    @staticmethod
    def contradictions(attempt: Any) -> Iterable[str]:
        """What contradicts them in an attempt (`judge.trajectory.record.Attempt`): mismatches for `wabe verify`."""
        return ()


@dataclass(frozen=True)
class Plugin:
    """An entry point of `wabe.plugins`. All hooks are here, and each may be left out.

    The module of this record is imported with the core's records, so it imports only `shared` and `judge.records`.
    Functions import what they need when they are called.
    """

    settings: Sequence[type[BaseModel]] = ()
    """Classes whose fields have a `Setting` each: a `Table`'s are keys of `[config]`, with option, `--resume` and
    checksum, a `Record`'s are options of `wabe run` and of no scenario.
    """
    results: Callable[[Any], Any] | None = None
    """What follows from a run's results (`judge.runner.followers.Follower`), for its `RunOptions`, or `None`.

    Called before the run exists; raises `ConfigError`.
    """
    configured: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Settings that follow from a run's `judge.runner.start.Start` and from the settings so far, if these can be used.

    Raises `ConfigError`.
    """
    validated: Callable[..., tuple[list[str], list[str]]] | None = None
    """Problems and notes of trying a scenario: `wabe tasks validate FILE --variants`; with `write`, kept beside it."""
    measured: Callable[[Path], str | None] | None = None
    """What the owner of a scenario measured of its checks, in words, for leaderboards; `None` if nothing."""
    facts: type[Facts] | None = None
    """What is recorded of an attempt, and what contradicts it."""
    columns: Callable[[], type[Any]] | None = None
    """A frozen dataclass, keywords only, whose fields (`judge.results.columns.column`) are columns of rows."""
    tools: Callable[[], Mapping[str, Any]] | None = None
    """What participants may call beside the core's tools (`judge.records.tools.Tool`), by name."""
    part: Callable[[Any], Any] | None = None
    """Makes the part of an attempt (`judge.episode.part.AttemptPart`) called first, for an `AttemptStage`."""
    run: Callable[[], type[Any]] | None = None
    """The part of a run (`judge.results.part.RunPart`): totals in its submission, a section of its report, and more."""


PLUGINS: Seam[Plugin] = Seam("plugins", "plug-in")


@functools.cache
def plugins() -> Mapping[str, Plugin]:
    """All installed plug-ins by name, ours first."""
    return {name: PLUGINS.load(name) for name in PLUGINS.names()}


def extended(record: type[T], hook: Literal["settings", "facts", "columns"]) -> type[T]:
    """The record with the fields of all plug-ins after its own. Raises `ConfigError` for a taken name."""
    for name, added in _added(record, hook):
        if taken := _names(added) & _names(record):
            problem = f"plug-in {name} declares {min(taken)!r}, which there is already"
            raise ConfigError(problem, remedy="rename it there, or uninstall one of the two")
        metaclass: Any = type(record)
        body = {"__module__": record.__module__, "__doc__": record.__doc__}
        record = metaclass(record.__name__, (added, record), body)
        if is_dataclass(added):
            record = dataclass(frozen=True, kw_only=True)(record)
    return record


def _added(record: type[Any], hook: Literal["settings", "facts", "columns"]) -> Iterator[tuple[str, type[Any]]]:
    """By plug-in, what it declares for the record."""
    for name, plugin in plugins().items():
        if hook == "settings":
            yield from (
                (name, each) for each in plugin.settings if issubclass(each, Table) == issubclass(record, Table)
            )
        elif hook == "columns":
            yield from [(name, plugin.columns())] if plugin.columns else []
        elif plugin.facts:
            yield name, plugin.facts


def _names(record: type[Any]) -> set[str]:
    return {each.name for each in fields(record)} if is_dataclass(record) else set(record.model_fields)
