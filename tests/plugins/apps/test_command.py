"""`wabe apps install`: lists what there is, installs what is named; the package clients are fakes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.commands.app import app
from judge.plugins.apps import apps_folder, load_apps, mark_installed
from shared.errors import ConfigError
from shared.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("large", "small"):
        folder = tmp_path / "scenarios" / "apps" / name
        folder.mkdir(parents=True)
        (folder / "app.toml").write_text(f'about = "A {name} one"\nversion = "1.0"\nsize_mb = 3\ncmd = ["serve"]\n')
        (folder / "package.json").write_text("{}")
        (folder / "package-lock.json").write_text("{}")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\necho "$PWD" >> "{tmp_path}/asked"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("WABE_SCENARIOS", str(tmp_path / "scenarios"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")
    return Settings.from_environ()


def installed_by(tmp_path: Path) -> list[str]:
    request = tmp_path / "asked"
    return [Path(line).name for line in request.read_text().splitlines()] if request.exists() else []


def test_without_a_name_the_applications_are_listed_and_nothing_is_installed(
    tmp_path: Path, settings: Settings
) -> None:
    place = apps_folder(settings.cache_folder) / "small"
    place.mkdir(parents=True)
    mark_installed(load_apps(settings.scenarios_folder)["small"], place)
    result = CliRunner().invoke(app, ["apps", "install"])
    rows = [line for line in result.output.splitlines() if "npm" in line]
    assert [("large" in row, "yes" in row) for row in rows] == [(True, False), (False, True)]
    assert installed_by(tmp_path) == []


def test_what_is_named_is_installed_once(tmp_path: Path, settings: Settings) -> None:
    first = CliRunner().invoke(app, ["apps", "install", "small"])
    second = CliRunner().invoke(app, ["apps", "install", "small"])
    assert f"small 1.0: installed in {apps_folder(settings.cache_folder) / 'small'}" in first.output
    assert second.output == "small 1.0: installed already\n"
    assert installed_by(tmp_path) == ["small"]


def test_what_is_installed_is_installed_again_on_request(tmp_path: Path, settings: Settings) -> None:
    for again in ([], ["--again"]):
        CliRunner().invoke(app, ["apps", "install", "small", *again])
    assert installed_by(tmp_path) == ["small", "small"]


def test_all_of_them_are_installed(tmp_path: Path, settings: Settings) -> None:
    CliRunner().invoke(app, ["apps", "install", "all"])
    assert installed_by(tmp_path) == ["large", "small"]


def test_nothing_is_installed_if_one_name_is_unknown(tmp_path: Path, settings: Settings) -> None:
    result = CliRunner().invoke(app, ["apps", "install", "small", "larg"])
    assert isinstance(result.exception, ConfigError)
    assert "did you mean 'large'" in str(result.exception)
    assert installed_by(tmp_path) == []
