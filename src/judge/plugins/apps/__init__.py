"""`wabe apps`: real applications for scenarios: their declarations in `scenarios/apps`, and where they are installed.

Each folder there with an `app.toml` is one application. `install` installs it from a package registry into the cache;
`serve` starts an installed one in a known state.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from shared.errors import ConfigError
from shared.fields import Line, Table, at_most, did_you_mean, printable
from shared.files import read_errors, read_file, read_text
from shared.toml_text import parse_toml
from shared.validation import validated

PIP_LOCK = "requirements.lock"
NPM_LOCK = "package-lock.json"
NPM_MANIFEST = "package.json"
PREPARE = "prepare.py"
# Copied to the state folder at each start.
STATE = "state"
# Written last, so an interrupted installation has none.
_MARKER = "installed.json"
_DESCRIPTION = "app.toml"
_Words = Annotated[tuple[Line, ...], Field(min_length=1), at_most(50)]


class Description(Table):
    """What an application is and how it is started.

    `cmd` and the values of `env` may contain `{bin}` (its programs), `{app}` (its installation), `{state}` (a copy of
    its initial state), `{here}` (its folder in `scenarios/apps`) and `{port}`.
    """

    about: Line
    version: Line
    # The approximate size of the installation, for the list of applications.
    size_mb: Annotated[int, Field(ge=1)]
    cmd: _Words
    env: dict[str, Line] = Field(default_factory=dict)


@dataclass(frozen=True)
class App:
    """An application declared in `folder`."""

    name: str
    folder: Path
    description: Description

    @property
    def is_npm(self) -> bool:
        """Whether its packages are npm's; otherwise they are Python's."""
        return (self.folder / NPM_LOCK).is_file()

    @property
    def digest(self) -> str:
        """Changes with everything that was copied or run to install it."""
        names = [PIP_LOCK, NPM_MANIFEST, NPM_LOCK, PREPARE]
        files = [*(self.folder / name for name in names), *sorted((self.folder / STATE).rglob("*"))]
        digests = [(str(path.relative_to(self.folder)), read_file(path)) for path in files if path.is_file()]
        return hashlib.sha256(repr(digests).encode()).hexdigest()


_DESCRIPTION_OF = TypeAdapter(Description)


def apps_folder(cache: Path | None) -> Path:
    """Where installed applications are. Raises `ConfigError` if there is no cache folder."""
    if cache is None:
        raise ConfigError("no folder for the applications", remedy="set HOME or XDG_CACHE_HOME")
    return cache / "wabe" / "apps"


def load_apps(scenarios: Path) -> dict[str, App]:
    """Every declared application, by name. Raises `ConfigError` for a description that cannot be used."""
    apps = {}
    for path in sorted((scenarios / "apps").glob(f"*/{_DESCRIPTION}")):
        with read_errors(path, "restore the file"):
            text = read_text(path)
            tables = parse_toml(text)
        described = validated(_DESCRIPTION_OF, tables, path, toml=text)
        apps[path.parent.name] = App(path.parent.name, path.parent, described)
    return apps


def the_app(name: str, apps: Mapping[str, App]) -> App:
    """The application of this name. Raises `ConfigError` if there is none."""
    if name not in apps:
        raise ConfigError(f"unknown application {printable(name)}", remedy=did_you_mean(name, apps))
    return apps[name]


def is_installed(app: App, place: Path) -> bool:
    """Whether the installation at `place` is exactly what is declared now."""
    try:
        return bool(json.loads((place / _MARKER).read_text())["sha256"] == app.digest)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def mark_installed(app: App, place: Path) -> None:
    """Record that the installation is complete."""
    (place / _MARKER).write_text(json.dumps({"version": app.description.version, "sha256": app.digest}) + "\n")


def programs(app: App, place: Path) -> Path:
    """The folder of the application's programs."""
    return place / "node_modules" / ".bin" if app.is_npm else place / "bin"
