"""WebArena-Verified in `wabe tasks`, `wabe score` and `wabe doctor` as a user calls them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.plugins import skip_without_command
from helpers.results import a_finished_run, a_result
from judge.commands.app import app as wabe
from judge.plugins.webarena.importing import examine
from judge.plugins.webarena.package import INSTALL
from shared.errors import ConfigError
from shared.settings import Settings

HEAD = """[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"

[green_agent]
endpoint = "http://127.0.0.1:9009"
"""
TASK = """
[[tasks]]
task_id = "webarena-{}"
website = "http://127.0.0.1:3030/"
task = "t"
"""


def run_(*arguments: str) -> str:
    done = CliRunner().invoke(wabe, ["tasks", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["webarena-verified"], "--config is missing"),
        (["--subset", "hard"], "--subset is for webarena-verified"),
        (["webarena-verified", "--config", "none.json"], "none.json: No such file"),
    ],
)
def test_an_import_of_webarena_needs_the_addresses_of_its_sites(arguments: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        run_("import", *arguments)


def test_an_import_of_webarena_needs_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WABE_WEBARENA_PYTHON", raising=False)
    config = tmp_path / "sites.json"
    config.write_text('{"environments": {"__MAP__": {"urls": ["http://127.0.0.1:3030"]}}}')
    with pytest.raises(ConfigError, match=r"pip install --require-hashes -r \S+/webarena/requirements-webarena\.lock"):
        run_("import", "webarena-verified", "--config", str(config))


def test_a_login_needs_an_account(tmp_path: Path) -> None:
    skip_without_command("tasks", "login")
    config = tmp_path / "sites.json"
    config.write_text('{"environments": {"__MAP__": {"urls": ["http://127.0.0.1:3030"]}}}')
    with pytest.raises(ConfigError, match="no site has credentials"):
        run_("login", "--config", str(config), "--output", str(tmp_path / "states"))


def test_imported_tasks_that_cannot_be_passed_are_noted(tmp_path: Path) -> None:
    tasks = "".join(TASK.format(number) for number in (429, 430))
    path = tmp_path / "scenario.toml"
    path.write_text(f"{HEAD}{tasks}")
    output = run_("validate", str(path))
    assert "note: task webarena-429 cannot be passed" in output
    assert "task webarena-430 cannot be passed" not in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--method", "webarena_verified"], "--config is missing"),
        (["--method", "webarena"], "did you mean 'webarena_verified'?"),
        (["--config", "sites.json"], "only"),
    ],
)
def test_the_addresses_of_sites_belong_to_its_evaluator(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    a_finished_run(tmp_path, a_result("t1"))
    skip_without_command("score")
    error = CliRunner().invoke(wabe, ["score", "run-1", "--output-dir", str(tmp_path), *arguments]).exception
    assert isinstance(error, ConfigError)
    assert complaint in str(error)


def test_a_missing_environment_is_a_note_with_the_command_that_makes_it() -> None:
    finding = examine(Settings())
    assert finding.state == "note"
    assert "WABE_WEBARENA_PYTHON is not set" in finding.text
    assert INSTALL in finding.text


def test_a_submission_is_checked_in_its_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_command("export")
    monkeypatch.delenv("WABE_WEBARENA_PYTHON", raising=False)
    result = CliRunner().invoke(wabe, ["export", "--format", "webarena-verified", "--validate", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "WABE_WEBARENA_PYTHON is not set" in str(result.exception)
