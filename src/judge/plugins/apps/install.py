"""Installs an application from its package registry, with pinned versions, through the registry's client."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.plugins.apps import NPM_LOCK, NPM_MANIFEST, PIP_LOCK, PREPARE, STATE, App, mark_installed
from shared.errors import ConfigError, WabeError
from shared.files import reason_of, write_errors

_LAST_LINES = 12
_NPM = ("npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")


def install(app: App, place: Path, environ: Mapping[str, str], *, python: str = sys.executable) -> None:
    """Install the application at `place`, replacing what is there.

    Raises `ConfigError` if a program is missing, and `WabeError` with the end of its output if one fails.
    """
    with write_errors(place, "free space there, or set XDG_CACHE_HOME"):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    if app.is_npm:
        for name in (NPM_MANIFEST, NPM_LOCK):
            shutil.copyfile(app.folder / name, place / name)
        # Packages' install scripts could fetch from anywhere; none of these applications needs them.
        _run(app, _NPM, place, environ)
        own_python = python
    else:
        _run(app, (python, "-m", "venv", str(place)), place, environ)
        own_python = str(place / "bin" / "python")
        words = (
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
        )
        _run(app, (own_python, *words, "-r", str(app.folder / PIP_LOCK)), place, environ)
    _prepare(app, place, own_python, environ)
    mark_installed(app, place)


def _prepare(app: App, place: Path, python: str, environ: Mapping[str, str]) -> None:
    """Make the initial state: the files that come with the description, then what `prepare.py` adds."""
    state = place / STATE
    if (app.folder / STATE).is_dir():
        shutil.copytree(app.folder / STATE, state)
    state.mkdir(exist_ok=True)
    if (app.folder / PREPARE).is_file():
        _run(app, (python, str(app.folder / PREPARE)), state, environ)


def _run(app: App, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    program = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        remedy = "install Node.js with npm" if program == "npm" else "reinstall Python with its venv module"
        raise ConfigError(f"{app.name}: cannot run {program}: {reason_of(error)}", remedy=remedy) from None
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise WabeError(f"{app.name}: {program} failed with exit code {done.returncode}\n{end}")
