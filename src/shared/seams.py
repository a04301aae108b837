"""Seams: installed packages can add to them, through entry points of the group `wabe.<kind>`.

Built-in parts use the same seams (`pyproject.toml`). Listing names imports nothing; finding one imports its module.
Names of our own distribution come first, and no other package can replace them.
"""

import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import Field

from shared.errors import ConfigError
from shared.fields import closest
from shared.imports import collector_paused
from shared.models import Record

OWN = "wabe"
OWN_PLUGINS = "judge.plugins."
_PREFIX = "wabe."
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
T = TypeVar("T")


class PluginInfo(Record):
    """A plug-in that took part in a verdict: the name of the distribution, or of our own folder, and its version."""

    name: str = Field(max_length=200)
    version: str = Field(max_length=200)
    code_checksum: str = Field(max_length=100)


class SeamEntry:
    """One entry point of a seam."""

    def __init__(self, point: EntryPoint) -> None:
        self.name = point.name
        self.group = point.group
        self.module, _, self.attribute = point.value.partition(":")
        self._point = point

    @property
    def package(self) -> str:
        """The distribution that declares it."""
        return self._point.dist.name if self._point.dist else "unknown"

    @property
    def is_own(self) -> bool:
        """Whether it belongs to WABE itself, plug-in or not."""
        return self.package == OWN

    @property
    def title(self) -> str:
        """The plug-in that it belongs to; WABE's have the name of their folder."""
        if self.is_own and self.module.startswith(OWN_PLUGINS):
            return self.module.removeprefix(OWN_PLUGINS).partition(".")[0]
        return self.package

    @functools.cached_property
    def has_code(self) -> bool:
        """Whether its module exists. Imports neither the module nor the packages that it is in."""
        return file_of(self.module) is not None

    def plugin(self) -> PluginInfo | None:
        """The plug-in that it belongs to; `None` for the core."""
        if self.is_own and not self.module.startswith(OWN_PLUGINS):
            return None
        version = self._point.dist.version if self._point.dist else "unknown"
        return PluginInfo(name=self.title, version=version, code_checksum=_checksum(self.module, is_own=self.is_own))

    def load(self) -> object:
        """The object that it names. Raises `ConfigError` if its module cannot be imported."""
        try:
            with collector_paused():
                return self._point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            of = f" of {self.package}" if self._point.dist else ""
            raise ConfigError(
                f"{self.group.removeprefix(_PREFIX)} {self.name!r}{of} cannot be imported: {error}",
                remedy="install what it needs, or uninstall the package",
            ) from error


@dataclass(frozen=True)
class Seam(Generic[T]):
    """One kind of thing that packages can add. `what` names one of them in messages."""

    kind: str
    what: str

    def entries(self) -> dict[str, SeamEntry]:
        """All entry points whose code exists, by name."""
        entries_by_name: dict[str, SeamEntry] = {}
        for entry in declared(_PREFIX + self.kind):
            if entry.has_code:
                entries_by_name.setdefault(entry.name, entry)
        return entries_by_name

    def names(self) -> tuple[str, ...]:
        """The names, without importing anything: our first, in alphabetical order."""
        return tuple(self.entries())

    def entry(self, name: str) -> SeamEntry | None:
        """The entry point of this name, if its code exists."""
        # Our first, because reading what every installed package declares takes much longer.
        own = next((entry for entry in _own(_PREFIX + self.kind) if entry.name == name and entry.has_code), None)
        return own or self.entries().get(name)

    def find(self, name: str) -> T | None:
        """The object of this name, or `None`. Raises `ConfigError` if it cannot be imported."""
        entry = self.entry(name)
        loaded: T | None = None if entry is None else entry.load()  # type: ignore[assignment]
        return loaded

    def load(self, name: str) -> T:
        """The object of this name. Raises `ConfigError` if it is unknown or cannot be imported."""
        entry = self.find(name)
        if entry is None:
            names = self.names()
            raise ConfigError(
                f"unknown {self.what} {name[:80]!r}", remedy=f"{closest(name, names)}one of: {', '.join(names)}"
            )
        return entry

    def resolve(self, text: str) -> T:
        """The object of this name, or the one at `module:attribute`. Raises `ConfigError`.

        Imports whatever `text` says: only for what the user of this machine wrote, on the command line or in the
        environment, never for a scenario or a request.
        """
        if not _REFERENCE.fullmatch(text):
            return self.load(text)
        point = EntryPoint(name=text, value=text, group=_PREFIX + self.kind)
        loaded: T = SeamEntry(point).load()  # type: ignore[assignment]
        return loaded

    def plugin(self, name: str) -> PluginInfo | None:
        """The plug-in that provides this name; `None` for an unknown name and for the core."""
        entry = self.entry(name)
        return entry.plugin() if entry else None


@functools.cache
def declared(group: str) -> tuple[SeamEntry, ...]:
    """The entry points of a group in installed packages, with or without code: ours first, then by package and name."""
    return (*_own(group), *_of_others(group))


def _of_others(group: str) -> list[SeamEntry]:
    entries = map(SeamEntry, importlib.metadata.entry_points(group=group))
    return sorted((each for each in entries if not each.is_own), key=lambda each: each.title)


@functools.cache
def _own(group: str) -> tuple[SeamEntry, ...]:
    try:
        points = importlib.metadata.distribution(OWN).entry_points
    except importlib.metadata.PackageNotFoundError:
        return ()
    return tuple(SeamEntry(point) for point in points if point.group == group)


def without_code() -> Iterator[SeamEntry]:
    """Entry points whose code is missing."""
    for group in sorted(name for name in importlib.metadata.entry_points().groups if name.startswith(_PREFIX)):
        yield from (entry for entry in declared(group) if not entry.has_code)


@functools.cache
def installed_plugins() -> dict[str, PluginInfo]:
    """The installed plug-ins, by name."""
    groups = [name for name in importlib.metadata.entry_points().groups if name.startswith(_PREFIX)]
    plugins = [entry.plugin() for group in sorted(groups) for entry in declared(group) if entry.has_code]
    return {plugin.name: plugin for plugin in plugins if plugin is not None}


def file_of(module: str) -> Path | None:
    """The file of a module, or the folder of a namespace package, without importing anything."""
    path: list[str] | None = None
    name, origin = "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        try:
            # For inner names not the function of `importlib.util`, which imports the packages above them.
            spec = find_spec(name) if path is None else PathFinder.find_spec(name, path)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
        origin = spec.origin or next(iter(path), None)
    return Path(origin) if origin else None


@functools.cache
def _checksum(module: str, *, is_own: bool) -> str:
    """SHA-256 over the Python files and texts of a plug-in: of its folder, of its package, or of its only module."""
    parts = module.split(".")
    file = file_of(".".join(parts[:3]) if is_own else parts[0])
    if file is None:
        return "unknown"
    root = file.parent if file.name == "__init__.py" else file
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if path.is_file() and path.suffix != ".pyc":
            data = path.read_bytes().replace(b"\r\n", b"\n")
            name = path.relative_to(root.parent).as_posix()
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
