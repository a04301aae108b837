"""`wabe report`."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helpers.runs import write_synthetic_run
from judge.commands.app import command_app
from shared.errors import ConfigError


@pytest.fixture
def app() -> typer.Typer:
    return command_app("report")


def run(app: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False, standalone_mode=False)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.output.replace("\n", "")


def test_a_run_gets_its_report_in_its_own_folder(app: typer.Typer, tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=2, steps=1)
    completed = run(app, store.run_id, "--output-dir", str(tmp_path))
    assert str(store.folder / "report" / "index.html") in completed
    assert (store.folder / "report" / "index.html").is_file()


def test_the_newest_run_is_named_latest(app: typer.Typer, tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=1, steps=1)
    run(app, "latest", "--output-dir", str(tmp_path), "--output", str(tmp_path / "here"))
    assert store.run_id in (tmp_path / "here" / "index.html").read_text()


def test_several_runs_give_a_comparison(app: typer.Typer, tmp_path: Path) -> None:
    for name in ("20260101-1", "20260102-2"):
        write_synthetic_run(tmp_path, name, tasks=2, steps=1)
    run(app, "20260101-1", "20260102-2", "--output-dir", str(tmp_path))
    assert (tmp_path / "comparisons" / "20260101-1--20260102-2" / "b" / "index.html").is_file()


def test_a_report_can_be_a_single_file_beside_the_run(app: typer.Typer, tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=2, steps=1)
    completed = run(app, store.run_id, "--output-dir", str(tmp_path), "--single-file")
    assert str(store.folder / "report.html") in completed
    assert (store.folder / "report.html").is_file()


def test_a_run_that_is_not_there_is_a_clear_error(app: typer.Typer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run 'nope'"):
        run(app, "nope", "--output-dir", str(tmp_path))


def test_the_same_run_twice_is_not_a_comparison(app: typer.Typer, tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=1, steps=1)
    with pytest.raises(ConfigError, match="twice"):
        run(app, store.run_id, str(store.folder), "--output-dir", str(tmp_path))


def test_open_shows_the_page_in_the_browser(app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    store = write_synthetic_run(tmp_path, tasks=1, steps=1)
    run(app, store.run_id, "--output-dir", str(tmp_path), "--open")
    assert opened == [(store.folder / "report" / "index.html").as_uri()]
