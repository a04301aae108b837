"""`wabe export --format webarena-verified` as a user runs it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result
from judge.commands.app import app as wabe
from shared.errors import ConfigError


def test_a_submission_to_webarena_is_checked_in_its_environment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WABE_WEBARENA_PYTHON", raising=False)
    result = CliRunner().invoke(wabe, ["export", "--format", "webarena-verified", "--validate", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "WABE_WEBARENA_PYTHON is not set" in str(result.exception)


def test_tasks_of_other_benchmarks_are_left_out_of_a_webarena_submission(tmp_path: Path) -> None:
    a_finished_run(tmp_path, a_result("t1"))
    arguments = ["export", "run-1", "--format", "webarena-verified", "--output-dir", str(tmp_path)]
    result = CliRunner().invoke(wabe, [*arguments, "--output", str(tmp_path / "made")])
    assert result.exit_code == 1
    assert "left out t1: not a task that was imported from WebArena-Verified" in result.output
