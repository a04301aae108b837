"""Applications: their descriptions, their installation through a fake package client, and how they are started."""

import os
import sys
from pathlib import Path

import pytest

from judge.plugins.apps import App, Description, apps_folder, is_installed, load_apps, the_app
from judge.plugins.apps.install import install
from judge.plugins.apps.serve import command_of, fresh_state, start
from shared.errors import ConfigError, WabeError
from shared.settings import Settings

# Stands for Python and for npm: writes down what it is asked, and makes a virtual environment's program of itself.
CLIENT = """#!{python} -S
import os, pathlib, shutil, sys
with open(os.environ["ASKED"], "a") as asked:
    print(*sys.argv[1:], file=asked)
if "venv" in sys.argv:
    program = pathlib.Path(sys.argv[-1]) / "bin" / "python"
    program.parent.mkdir(parents=True)
    shutil.copy(__file__, program)
if sys.argv[-1].endswith("prepare.py"):
    pathlib.Path("made").write_text("prepared")
if os.environ.get("FAILS") in sys.argv:
    print("no such version")
    sys.exit(3)
"""
DESCRIPTION = """
about = "A small application"
version = "1.0"
size_mb = 3
cmd = ["{bin}/serve", "{state}", "{here}", "--port={port}"]
env = { DATA = "{app}/data" }
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for name in ("python", "npm"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(CLIENT.replace("{python}", sys.executable))
        program.chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ASKED": str(tmp_path / "asked"),
        "WABE_SCENARIOS": str(tmp_path / "scenarios"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def declared(folder: Path, *locks: str, description: str = DESCRIPTION) -> App:
    place = folder / "scenarios" / "apps" / "small"
    place.mkdir(parents=True)
    for name in locks:
        (place / name).write_text("{}")
    (place / "app.toml").write_text(description)
    return load_apps(Settings(scenarios=str(folder / "scenarios")).scenarios_folder)["small"]


def requests_of(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


def test_python_packages_are_installed_with_hashes_into_an_environment_of_their_own(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    app, place = declared(tmp_path, "requirements.lock"), tmp_path / "cache" / "small"
    install(app, place, environ, python=str(tmp_path / "bin" / "python"))
    venv, pip = requests_of(tmp_path)
    assert venv == f"-m venv {place}"
    assert pip.startswith("-m pip install ")
    assert "--require-hashes" in pip
    assert pip.endswith(f"-r {app.folder / 'requirements.lock'}")
    assert is_installed(app, place)


def test_npm_packages_are_installed_from_the_lock_without_their_scripts(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    app, place = declared(tmp_path, "package.json", "package-lock.json"), tmp_path / "cache" / "small"
    install(app, place, environ, python=str(tmp_path / "bin" / "python"))
    (npm,) = requests_of(tmp_path)
    assert npm.startswith("ci --ignore-scripts")
    assert (place / "package-lock.json").read_text() == "{}"
    assert is_installed(app, place)


def test_the_initial_state_is_what_comes_with_it_and_what_is_prepared(tmp_path: Path, environ: dict[str, str]) -> None:
    app, place = declared(tmp_path, "requirements.lock", "prepare.py"), tmp_path / "cache" / "small"
    (app.folder / "state").mkdir()
    (app.folder / "state" / "users").write_text("ada")
    install(app, place, environ, python=str(tmp_path / "bin" / "python"))
    assert {path.name: path.read_text() for path in (place / "state").iterdir()} == {"users": "ada", "made": "prepared"}


def test_an_installation_that_fails_is_not_there_and_shows_what_the_client_said(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    app, place = declared(tmp_path, "requirements.lock"), tmp_path / "cache" / "small"
    with pytest.raises(WabeError, match="small: python failed with exit code 3\nno such version"):
        install(app, place, environ | {"FAILS": "pip"}, python=str(tmp_path / "bin" / "python"))
    assert not is_installed(app, place)


def test_a_missing_client_is_named_with_its_remedy(tmp_path: Path, environ: dict[str, str]) -> None:
    app, place = declared(tmp_path, "package.json", "package-lock.json"), tmp_path / "cache" / "small"
    with pytest.raises(ConfigError, match=r"small: cannot run npm: .*install Node\.js"):
        install(app, place, environ | {"PATH": str(tmp_path / "nothing")}, python=str(tmp_path / "bin" / "python"))


@pytest.mark.parametrize("changed", ["requirements.lock", "prepare.py", "state/users"])
def test_an_application_whose_packages_or_state_changed_is_to_be_installed_again(
    tmp_path: Path, environ: dict[str, str], changed: str
) -> None:
    app, place = declared(tmp_path, "requirements.lock"), tmp_path / "cache" / "small"
    install(app, place, environ, python=str(tmp_path / "bin" / "python"))
    (app.folder / changed).parent.mkdir(exist_ok=True)
    (app.folder / changed).write_text("changed")
    assert not is_installed(app, place)


def test_a_new_installation_removes_what_an_earlier_one_left(tmp_path: Path, environ: dict[str, str]) -> None:
    app, place = declared(tmp_path, "requirements.lock"), tmp_path / "cache" / "small"
    (place / "lib").mkdir(parents=True)
    install(app, place, environ, python=str(tmp_path / "bin" / "python"))
    assert not (place / "lib").exists()


def test_each_start_begins_with_the_same_state(tmp_path: Path) -> None:
    place = tmp_path / "small"
    (place / "state").mkdir(parents=True)
    (place / "state" / "users").write_text("ada")
    first = fresh_state(place, 9301)
    (first / "users").write_text("boris")
    (first / "more").write_text("carla")
    second = fresh_state(place, 9301)
    assert {path.name: path.read_text() for path in second.iterdir()} == {"users": "ada"}
    assert fresh_state(place, 9302) != second


def test_the_command_names_the_installation_its_state_and_the_port(tmp_path: Path) -> None:
    app = declared(tmp_path, "requirements.lock")
    words, variables = command_of(app, Path("/place"), Path("/place-1.state"), 9301)
    assert words == ["/place/bin/serve", "/place-1.state", str(app.folder), "--port=9301"]
    assert variables["DATA"] == "/place/data"


def test_an_application_reaches_no_other_machine_through_its_proxy_settings(tmp_path: Path) -> None:
    _, variables = command_of(declared(tmp_path, "requirements.lock"), Path("/place"), Path("/state"), 9301)
    assert variables["https_proxy"] == variables["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert "127.0.0.1" in variables["no_proxy"]


def test_what_is_not_installed_is_not_started_and_says_how_to_install_it(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    declared(tmp_path, "requirements.lock")
    with pytest.raises(WabeError, match=r"small 1.0 is not installed: wabe apps install small"):
        start("small", 9301, Settings.from_environ(environ), environ)


def test_an_unknown_application_is_an_error_that_suggests_a_known_one(tmp_path: Path) -> None:
    app = declared(tmp_path, "requirements.lock")
    with pytest.raises(ConfigError, match=r"unknown application 'smal' .*did you mean 'small'"):
        the_app("smal", {"small": app})


def test_a_mistake_in_a_description_names_its_file_and_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"app\.toml.*'comand'"):
        declared(tmp_path, "requirements.lock", description=DESCRIPTION.replace("cmd", "comand"))


def test_without_a_home_folder_there_is_no_place_for_applications() -> None:
    with pytest.raises(ConfigError, match="set HOME or XDG_CACHE_HOME"):
        apps_folder(Settings().cache_folder)


def test_every_bundled_application_is_pinned_and_named_as_it_is_installed() -> None:
    for app in load_apps(Settings().scenarios_folder).values():
        assert isinstance(app.description, Description)
        locks = [name for name in ("requirements.lock", "package-lock.json") if (app.folder / name).is_file()]
        assert len(locks) == 1, app.name
        text = (app.folder / locks[0]).read_text(encoding="utf-8")
        assert "://" not in text, app.name
        assert ("sha512-" if app.is_npm else "--hash=sha256:") in text, app.name
