"""`wabe export` as a user runs it."""

import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result
from judge.commands.app import app as wabe
from judge.records.steps import Outcome, Step, StopReason
from judge.records.tasks import Task
from judge.store.layout import RunStore
from judge.trajectory.formats import tasks_writers, writers
from shared.errors import ConfigError
from shared.models import Action, Page


@pytest.fixture
def app() -> typer.Typer:
    return wabe


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """One run of two tasks, the second one aborted."""
    run = RunStore(tmp_path / "out", "run-1")
    run.create()
    for task_id in ("t1", "t2"):
        store = run.task(task_id)
        store.begin()
        files = store.write_page(0, Page(url="https://a.test/", title="", snapshot="", screenshot=b"jpeg"))
        step = Step(
            index=0,
            url="https://a.test/",
            title="",
            **files,
            action=Action(tool="finish"),
            outcome=Outcome(ok=True, line="<page> -> FINISH"),
        )
        task = Task(task_id=task_id, website="https://a.test/", task="Do it", reference_length=1)
        stop: StopReason = "cancelled" if task_id == "t2" else "finished"
        store.write_result(a_result(task=task, steps=(step,), stop_reason=stop).to_json())
    return tmp_path / "out"


def test_what_is_written_and_what_is_left_out_is_reported(app: typer.Typer, runs: Path) -> None:
    result = CliRunner().invoke(app, ["export", "run-1", "--output-dir", str(runs)])
    assert "left out t2" in result.output
    assert "1 of 2 tasks written" in result.output
    assert "1 of 1 submission valid" in result.output
    assert result.exit_code == 1
    assert (runs / "runs/run-1/export/online-mind2web-v2/t1/trajectory/0000.jpg").read_bytes() == b"jpeg"


def test_one_epoch_is_written_at_a_time(app: typer.Typer, runs: Path) -> None:
    run = runs / "runs" / "run-1"
    (run / "epochs" / "2" / "results").mkdir(parents=True)
    (run / "results" / "t1").rename(run / "epochs" / "2" / "results" / "t1")
    first = CliRunner().invoke(app, ["export", "run-1", "--output-dir", str(runs)])
    assert "0 of 1 task written" in first.output
    assert "this is epoch 1 only; --epoch N writes another one" in first.output
    second = CliRunner().invoke(app, ["export", "run-1", "--output-dir", str(runs), "--epoch", "2"])
    assert "online-mind2web-v2-epoch-2: 1 of 1 task written" in second.output
    third = CliRunner().invoke(app, ["export", "run-1", "--output-dir", str(runs), "--epoch", "3"])
    assert "run run-1 has no epoch 3" in str(third.exception)


def test_a_valid_folder_passes(app: typer.Typer, runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "submission"
    CliRunner().invoke(app, ["export", "latest", "--output-dir", str(runs), "--output", str(target)])
    result = CliRunner().invoke(app, ["export", "--validate", str(target)])
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, f"{target}: 1 of 1 submission valid")


def test_a_broken_rule_fails_the_check_and_is_named(app: typer.Typer, runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "submission"
    CliRunner().invoke(app, ["export", "latest", "--output-dir", str(runs), "--output", str(target)])
    (target / "t1" / "trajectory" / "0000.jpg").unlink()
    result = CliRunner().invoke(app, ["export", "--validate", str(target)])
    assert result.exit_code == 1
    assert "t1: rule 4: step 0: trajectory/0000.jpg does not exist" in result.output


def test_a_table_is_a_file_or_is_printed(app: typer.Typer, runs: Path, tmp_path: Path) -> None:
    arguments = ["export", "latest", "--output-dir", str(runs), "--format"]
    completed = CliRunner().invoke(app, [*arguments, "csv"])
    target = runs / "runs" / "run-1" / "export" / "attempts.csv"
    assert (completed.exit_code, completed.output) == (0, f"{target}: 2 attempts written\n")
    assert CliRunner().invoke(app, [*arguments, "csv", "--output", "-"]).stdout == target.read_text()
    assert CliRunner().invoke(app, [*arguments, "markdown", "--output", "-"]).stdout.startswith("### WABE: `run-1`")
    CliRunner().invoke(app, [*arguments, "parquet", "--output", str(tmp_path / "a.parquet")])
    assert (tmp_path / "a.parquet").read_bytes().startswith(b"PAR1")


def test_a_damaged_task_is_missing_in_a_table_and_named(app: typer.Typer, runs: Path) -> None:
    (runs / "runs" / "run-1" / "results" / "t1" / "result.json").write_text("{")
    completed = CliRunner().invoke(
        app, ["export", "latest", "--output-dir", str(runs), "--format", "csv", "--output", "-"]
    )
    assert (completed.exit_code, len(completed.stdout.splitlines())) == (1, 2)
    assert completed.stderr.startswith("left out t1: ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["latest", "--format", "parquet", "--output", "-"], "not for printing"),
        (["latest", "--format", "online-mind2web-v2", "--output", "-"], "not for printing"),
        (["latest", "--format", "csv", "--output", "/dev/null/x"], "--output /dev/null/x: .*choose a file"),
        (["--format", "csv", "--validate", "x"], "are for folders of other benchmarks"),
        ([], "either a RUN"),
        (["latest", "--validate", "x"], "either a RUN"),
        (["none"], "no run 'none'"),
    ],
)
def test_a_mistake_is_one_clear_error(app: typer.Typer, runs: Path, arguments: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        CliRunner().invoke(app, ["export", *arguments, "--output-dir", str(runs)], catch_exceptions=False)


def test_a_format_that_is_not_known_is_refused_with_those_that_are(app: typer.Typer) -> None:
    refused = CliRunner().invoke(app, ["export", "latest", "--format", "zip"]).exception
    assert isinstance(refused, ConfigError)
    assert "unknown format 'zip'" in refused.message
    layouts = ", ".join((*writers(), *tasks_writers()))
    assert refused.remedy == f"known: {layouts}, csv, jsonl, parquet, markdown, webm, gif"


def test_a_table_has_all_epochs(app: typer.Typer, runs: Path) -> None:
    arguments = ["export", "run-1", "--output-dir", str(runs), "--format", "csv", "--epoch", "2"]
    refused = CliRunner().invoke(app, arguments).exception
    assert isinstance(refused, ConfigError)
    assert "a table has all epochs" in refused.remedy


def test_the_summary_of_an_unfinished_run_counts_what_was_not_played(app: typer.Typer, tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1"), a_result("t2"))
    shutil.rmtree(store.folder / "results" / "t2")
    text = CliRunner().invoke(
        app, ["export", "run-1", "--output-dir", str(tmp_path), "--format", "markdown", "--output", "-"]
    )
    assert "of all tasks: 50.0 %" in text.stdout
    assert "1 of 2 attempts without a result" in text.stdout
