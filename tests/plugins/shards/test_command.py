"""`wabe merge`, as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from helpers.results import a_result, a_submission
from judge.commands.app import app as wabe
from shared.errors import ConfigError


@pytest.fixture
def app() -> typer.Typer:
    return wabe


def write(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def run(app: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_shards_become_one_file(app: typer.Typer, tmp_path: Path) -> None:
    shards = [write(tmp_path / f"{n}.json", a_submission(a_result(f"t{n}"))) for n in range(3)]
    output = run(app, "merge", *shards, "--output", str(tmp_path / "all.json"))
    assert "3 tasks of 3 files, 3 scored, success rate 100.0 %, of all tasks 100.0 %\n" in output
    merged = json.loads((tmp_path / "all.json").read_text())
    assert merged["results"][0]["detail"]["total_tasks"] == 3


def test_without_an_output_the_merged_submission_is_printed(app: typer.Typer, tmp_path: Path) -> None:
    output = run(app, "merge", write(tmp_path / "a.json", a_submission()))
    assert json.loads(output)["participants"] == {"white_agent": "id-1"}


def test_shards_that_clash_are_named(app: typer.Typer, tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", a_submission())
    second = write(tmp_path / "b.json", a_submission(a_result(stop_reason="max_steps")))
    with pytest.raises(ConfigError, match=r"b\.json: task 't1' differs from the one in .*a\.json"):
        run(app, "merge", first, second)


def test_an_output_that_cannot_be_written_is_named(app: typer.Typer, tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", a_submission())
    with pytest.raises(ConfigError, match=r"a\.json/x: .*another --output"):
        run(app, "merge", first, "--output", first + "/x")
