"""Plug-ins: each is a capability that a run can do without, in one folder, described by one record.

Settings, facts and columns are fields of a class, declared as the core's are. They become fields of the core's
own records, so that everything that follows from a declaration follows for them as well.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from shared.errors import ConfigError
from shared.models import Record
from shared.seams import Seam

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class ReportSection(NamedTuple):
    """A section of the report's first page."""

    title: str
    lines: Sequence[str]


class PluginOptions(Record):
    """Options of `wabe run` that no scenario can set."""


class Facts(Record):
    """Facts of an attempt, stored under their names in `result.json` (`ResultKey`)."""

    @staticmethod
    def contradictions(attempt: Any) -> Iterable[str]:
        """What contradicts them in an attempt (`judge.trajectory.record.Attempt`): mismatches for `wabe verify`."""
        return ()


class Trial(NamedTuple):
    """Plays attempts on a scenario: `run(scenario, settings, write=…)` returns problems and notes.

    With `write`, it keeps beside the scenario what it has found.
    """

    help: str
    run: Callable[..., tuple[list[str], list[str]]]


@dataclass(frozen=True)
class Plugin:
    """An entry point of `wabe.plugins`. All hooks are here, and each may be left out.

    The module of this record is imported with the core's records, so it imports only `shared` and `judge.records`.
    Functions import what they need when they are called.
    """

    declares: Sequence[type[BaseModel]] = ()
    """Classes whose fields are added to the core's records: of a `Table` to `[config]` (each with a `Setting`: option,
    `--resume`, checksum), of `PluginOptions` to the options of a run, of `Facts` to an attempt.
    """
    results: Callable[[Any], Any] | None = None
    """What follows from a run's results (`judge.runner.followers.Follower`), for its `RunOptions`, or `None`.

    Called before the run exists; raises `ConfigError`.
    """
    configured: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Settings that follow from a run's `judge.runner.start.Start` and from the settings so far, if these can be used.

    Raises `ConfigError`.
    """
    tries: Mapping[str, Trial] = field(default_factory=dict)
    """What `wabe tasks validate` can try on a scenario, by the name of the option."""
    measured: Callable[[Path], str | None] | None = None
    """What the owner of a scenario measured of its checks, in words, for leaderboards; `None` if nothing."""
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


def extended(record: type[T], kind: type[BaseModel] | None = None) -> type[T]:
    """The record with the fields that plug-ins declare in classes of this kind, or as columns, after its own.

    Raises `ConfigError` for a taken name.
    """
    for name, added in _columns() if kind is None else declared(kind):
        if taken := _names(added) & _names(record):
            problem = f"plug-in {name} declares {min(taken)!r}, which there is already"
            raise ConfigError(problem, remedy="rename it there, or uninstall one of the two")
        metaclass: Any = type(record)
        body = {"__module__": record.__module__, "__doc__": record.__doc__}
        record = metaclass(record.__name__, (added, record), body)
        if is_dataclass(added):
            record = dataclass(frozen=True, kw_only=True)(record)
    return record


def declared(kind: type[M]) -> Iterator[tuple[str, type[M]]]:
    """The classes of this kind, each with the name of the plug-in that declares it."""
    for name, plugin in plugins().items():
        yield from ((name, each) for each in plugin.declares if issubclass(each, kind))


def _columns() -> Iterator[tuple[str, type[Any]]]:
    return ((name, plugin.columns()) for name, plugin in plugins().items() if plugin.columns)


def _names(record: type[Any]) -> set[str]:
    return {each.name for each in fields(record)} if is_dataclass(record) else set(record.model_fields)
