"""Internal errors while `wabe score` judges."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.exploding import Exploding
from helpers.results import a_finished_run, a_result, a_verdict
from judge.commands.app import app
from judge.plugins.rejudging import score_command
from judge.store.layout import RunStore


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """A finished run of three tasks that were not judged yet."""
    return a_finished_run(tmp_path, *(a_result(name, verdict=a_verdict("unscored")) for name in ("t0", "t1", "t2")))


def test_the_command_names_the_folder_and_exits_with_1(run: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_command, "open_judge", lambda *_, **__: Exploding(KeyError("t1")))
    result = CliRunner().invoke(app, ["score", "run-1", "--output-dir", str(run.output_dir)])
    line = next(line for line in result.stdout.splitlines() if line.startswith("t1"))
    assert result.exit_code == 1
    assert "internal error while judging (KeyError)" in line
    assert "2 success, 0 failure, 1 unscored" in result.stdout


def test_the_command_scores_the_rest_of_a_run_with_a_damaged_folder(
    run: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_command, "open_judge", lambda *_, **__: Exploding())
    (run.task("t1").folder / "result.json").write_text("{")
    result = CliRunner().invoke(app, ["score", "run-1", "--output-dir", str(run.output_dir)])
    assert result.exit_code == 1
    assert "2 success, 0 failure, 0 unscored, 0 aborted, 1 broken" in result.stdout
