"""Starts an installed application in its initial state: `python -m judge.plugins.apps.serve NAME --port N`.

Every start begins with a fresh copy of the state, so that a site with `restart = true` is the same for every attempt.
The application replaces this process.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from judge.plugins.apps import STATE, App, apps_folder, is_installed, load_apps, programs, the_app
from shared.errors import WabeError
from shared.settings import Settings

# Nothing answers at this port, so a request of the application to another machine ends here.
_NOWHERE = "http://127.0.0.1:9"
_LOCAL = "127.0.0.1,localhost"


def command_of(app: App, place: Path, state: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """The command that starts the application, and the variables that it gets besides the environment."""
    values = {"bin": programs(app, place), "app": place, "state": state, "here": app.folder, "port": port}

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE)
    exceptions = {"no_proxy": _LOCAL, "NO_PROXY": _LOCAL}
    described = app.description
    own = {name: filled(text) for name, text in described.env.items()}
    return [filled(word) for word in described.cmd], {**proxies, **exceptions, "HOME": str(state), **own}


def fresh_state(place: Path, port: int, state: Path | None = None) -> Path:
    """A copy of the initial state, which replaces the one of an earlier start: in `state`, or else on this port."""
    state = (state or place.with_name(f"{place.name}-{port}.state")).absolute()
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(place / STATE, state)
    return state


def start(name: str, port: int, settings: Settings, environ: Mapping[str, str], state: Path | None = None) -> None:
    """Replace this process by the application, with its state in a folder. Raises `WabeError`."""
    app = the_app(name, load_apps(settings.scenarios_folder))
    place = apps_folder(settings.cache_folder) / name
    if not is_installed(app, place):
        raise WabeError(f"{name} {app.description.version} is not installed: wabe apps install {name}")
    state = fresh_state(place, port, state)
    words, variables = command_of(app, place, state, port)
    path = f"{programs(app, place)}{os.pathsep}{settings.path}"
    os.chdir(state)
    os.execvpe(words[0], words, {**environ, "PATH": path, **variables})


def main() -> None:
    """Start the application named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, help="the folder of its state, which is replaced")
    options = parser.parse_args()
    settings = Settings.from_environ()
    try:
        start(options.name, options.port, settings, settings.environ, options.state)
    except (WabeError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
