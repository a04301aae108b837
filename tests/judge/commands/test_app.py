"""The command line as a whole: what it offers, and what a command has to wait for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.results import a_submission
from judge.commands.app import MODULES, app

SCORE_IS_MADE_OF = """
import sys
from judge.commands.app import app
app(["score", "--help"], prog_name="wabe", standalone_mode=False)
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_the_help_names_every_command_with_a_line_of_what_it_does() -> None:
    lines = CliRunner().invoke(app, ["--help"]).output.partition("Commands:")[2].strip().splitlines()
    said = dict(line.split(None, 1) for line in lines)
    assert list(said) == list(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_every_command_has_a_help_of_its_own(name: str) -> None:
    answer = CliRunner().invoke(app, [name, "--help"])
    assert answer.exit_code == 0
    assert f"{name} [OPTIONS]" in answer.output


def test_a_mistyped_command_gets_a_suggestion() -> None:
    answer = CliRunner().invoke(app, ["leaderbord"])
    assert answer.exit_code == 2
    assert "'leaderboard'" in answer.output


def test_scoring_waits_for_no_server_no_browser_and_no_database() -> None:
    done = subprocess.run([sys.executable, "-c", SCORE_IS_MADE_OF], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "judge" in loaded
    assert loaded.isdisjoint({"a2a", "mcp", "playwright", "duckdb", "sqlalchemy", "starlette", "uvicorn", "jsonschema"})


def test_a_successful_command_prints_nothing_on_standard_error(tmp_path: Path) -> None:
    # As a process: a library's own words at its very end count as well.
    (tmp_path / "results.json").write_text(json.dumps(a_submission()))
    command = [str(Path(sys.executable).parent / "wabe"), "leaderboard", str(tmp_path / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "100.0" in done.stdout
    assert done.stderr == ""
