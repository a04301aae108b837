"""`wabe export --format harbor`: which scenario is meant, and what is reported."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from helpers.plugins import skip_without_command
from helpers.scenario.texts import AGENTS
from judge.commands.app import app as wabe
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.files import sha256_file

TASK = """
[[tasks]]
task_id = "{}"
website = "http://127.0.0.1:9180/"
task = "Go there."
"""
CHECKED = 'checks = [{ kind = "page", url = "/there" }]\n'


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """One task with a check, and one without."""
    path = tmp_path / "set" / "shop.toml"
    path.parent.mkdir()
    path.write_text(
        f'{AGENTS}[config]\njudge_model = "offline"\n{TASK.format("t1")}{CHECKED}{TASK.format("t2")}', "utf-8"
    )
    return path


@pytest.fixture
def run(tmp_path: Path, scenario: Path) -> str:
    """The id of a run of the scenario."""
    store = RunStore(tmp_path / "out", "run-1")
    store.create()
    recorded = {"name": "set/shop.toml", "path": str(scenario), "sha256": sha256_file(scenario)}
    (store.folder / "run.json").write_text(json.dumps({"schema_version": "wabe-run-2", "scenario": recorded}))
    return store.run_id


def export(tmp_path: Path, *arguments: str) -> Result:
    skip_without_command("export")
    options = ["--format", "harbor", "--output-dir", str(tmp_path / "out")]
    return CliRunner().invoke(wabe, ["export", *arguments, *options])


def test_what_is_written_and_what_is_left_out_is_reported(tmp_path: Path, scenario: Path) -> None:
    done = export(tmp_path, str(scenario))
    target = tmp_path / "out" / "export" / "shop" / "harbor"
    left_out, written_line = done.stdout.splitlines()
    assert left_out.startswith("left out t2: the task declares no checks")
    assert written_line == f"{target}: 1 of 2 tasks written"
    assert done.exit_code == 1
    assert [path.name for path in target.iterdir()] == ["t1"]


def test_some_tasks_of_a_bundled_scenario(tmp_path: Path) -> None:
    done = export(tmp_path, "demo", "--task", "red_rugs", "--task", "oak_desks", "--output", str(tmp_path / "here"))
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'here'}: 2 of 2 tasks written\n")


def test_a_run_gives_its_own_scenario(tmp_path: Path, scenario: Path, run: str) -> None:
    assert "1 of 1 task written" in export(tmp_path, run, "--task", "t1").stdout
    assert (tmp_path / "out" / "runs" / run / "export" / "harbor" / "t1" / "task.toml").is_file()
    scenario.write_text(scenario.read_text() + "# edited")
    done = export(tmp_path, run)
    assert isinstance(done.exception, ConfigError)
    assert "its scenario has been changed or removed since" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.toml"], "nothing.toml"),
        (["nobody"], "no run 'nobody'"),
        (["demo", "--task", "unknown"], "not in this scenario"),
        (["demo", "--epoch", "2"], "are for folders of other benchmarks"),
        (["demo", "--output", "-"], "not for printing"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = export(tmp_path, *arguments)
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)
