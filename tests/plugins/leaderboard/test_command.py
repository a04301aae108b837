import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.plugins import skip_without_command
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


def test_rows_are_shown_as_a_table(app: typer.Typer, tmp_path: Path) -> None:
    output = run(app, "leaderboard", write(tmp_path / "a.json", a_submission()))
    assert "Success Rate" in output
    assert "id-1" in output


def test_rows_are_printed_as_json(app: typer.Typer, tmp_path: Path) -> None:
    output = run(app, "leaderboard", "--json", write(tmp_path / "a.json", a_submission()))
    row = {"id": "id-1", "Success Rate": 100.0, "Completed": 1, "# Tasks": 1, "Attempts": 1}
    known = {"Success Rate of All": 100.0, "Complete": True, "Decided By": "offline", "Recorded By": "judge"}
    [document] = json.loads(output)
    assert re.fullmatch("[0-9a-f]{8}", document.pop("Task Set"))
    unknown = (
        "Name",
        "Agent",
        "Model",
        "Revision",
        "Scenario",
        "Browser",
        "Settle",
        "Actions",
        "Shards",
        "Excluded",
        "Efficiency",
        "Corrected by Labels",
        "Labels",
        "Lower Bound",
        "Upper Bound",
    )
    assert document == row | known | dict.fromkeys(unknown)


def test_rows_of_different_task_sets_are_not_ranked_together_in_silence(app: typer.Typer, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.json", a_submission(a_result(name))) for name in ("a", "b")]
    assert "These are 2 different task sets" in run(app, "leaderboard", *files)
    assert "task sets" not in run(app, "leaderboard", files[0], files[0])


def test_rows_with_other_exclusions_are_marked_as_not_comparable(app: typer.Typer, tmp_path: Path) -> None:
    every = a_submission()
    fewer = a_submission()
    fewer["results"][0]["detail"]["excluded"] = [
        {"task_id": "t9", "reason": "valid until 2026-11-01", "by": "scenario"}
    ]
    files = [write(tmp_path / f"{name}.json", each) for name, each in (("a", every), ("b", fewer))]
    note = "comparable only with rows of the same Task Set and Excluded"
    assert note in run(app, "leaderboard", *files)
    assert note not in run(app, "leaderboard", files[1], files[1])


def test_what_is_the_same_for_all_rows_is_printed_once(app: typer.Typer, tmp_path: Path) -> None:
    def row_of(name: str, version: str) -> str:
        identity = {"card_name": "my agent", "card_version": version, "revision": "abc"}
        by_key = {"identity": identity, "settle": "auto", "environment": {"browser": "Chromium 1"}}
        return write(tmp_path / f"{name}.json", a_submission(provenance=by_key))

    output = run(app, "leaderboard", row_of("a", "1"), row_of("b", "2"))
    assert "my agent 1" in output
    assert "my agent 2" in output
    assert "2 rows, Revision abc, Browser Chromium 1, Settle auto, Attempts 1, Task Set" in output


def test_another_query_is_run_by_name(app: typer.Typer, tmp_path: Path) -> None:
    output = run(app, "leaderboard", "--query", "by_level", "--json", write(tmp_path / "a.json", a_submission()))
    assert [row["Level"] for row in json.loads(output)] == ["easy"]


def test_markup_in_an_id_stays_text(app: typer.Typer, tmp_path: Path) -> None:
    hostile = a_submission(participant_ids={"white_agent": "[red]x[/red]\x1b[31m"})
    output = run(app, "leaderboard", write(tmp_path / "a.json", hostile))
    assert "[red]x[/red]" in output
    assert "\x1b[31m" not in output


@pytest.mark.slow
def test_without_duckdb_only_the_leaderboard_is_missing_and_says_how_to_get_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['duckdb'] = None; from judge.commands.app import main; main()"
    file = write(tmp_path / "a.json", a_submission())
    scenario = str(ROOT / "scenarios" / "demo" / "scenario.toml")
    left = {
        words[0]: subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
        for words in (("tasks", "validate", scenario), ("leaderboard", file))
    }
    assert left["tasks"].returncode == 0
    assert left["leaderboard"].returncode == 2
    assert left["leaderboard"].stderr.splitlines() == [
        'error: wabe leaderboard needs DuckDB, which is not installed (pip install "wabe[leaderboard]")'
    ]


def test_the_table_says_who_recorded_the_tasks_where_it_was_not_the_judge_alone(
    app: typer.Typer, tmp_path: Path
) -> None:
    ours = write(tmp_path / "a.json", a_submission())
    theirs = write(tmp_path / "b.json", a_submission(a_result(self_recorded=True), role="agent"))
    assert "Recorded" not in run(app, "leaderboard", ours)
    assert "Recorded" in run(app, "leaderboard", ours, theirs)


@pytest.mark.parametrize("command", ["leaderboard", "merge", "report"])
@pytest.mark.parametrize(
    "result", [{"domain": "airline", "pass_rate": 40.0}, {"winner": "agent", "detail": {"domain": 1, "pass_rate": 2}}]
)
def test_a_submission_of_another_benchmark_is_named(
    app: typer.Typer, tmp_path: Path, command: str, result: dict[str, Any]
) -> None:
    skip_without_command(command)
    file = write(tmp_path / "other.json", {"participants": {"agent": "id"}, "results": [result]})
    with pytest.raises(
        ConfigError, match=r"other\.json: a submission of another benchmark: its results have 'domain', "
    ):
        CliRunner().invoke(app, [command, file], catch_exceptions=False)
    own = write(tmp_path / "own.json", a_submission())
    with pytest.raises(ConfigError, match=r"own\.json: a submission, without the run's recordings"):
        CliRunner().invoke(app, ["report", own], catch_exceptions=False)


def test_a_damaged_file_is_named_and_the_others_are_shown(app: typer.Typer, tmp_path: Path) -> None:
    damaged = write(tmp_path / "b.json", [])
    result = CliRunner().invoke(app, ["leaderboard", write(tmp_path / "a.json", a_submission()), damaged])
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
    assert result.stderr.startswith(f"left out: {damaged}: ")
    assert "id-1" in result.stdout


@pytest.mark.slow
def test_a_successful_command_prints_nothing_on_standard_error(tmp_path: Path) -> None:
    # As a process: a library's own words at its very end count as well.
    (tmp_path / "results.json").write_text(json.dumps(a_submission()))
    command = [str(Path(sys.executable).parent / "wabe"), "leaderboard", str(tmp_path / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "100.0" in done.stdout
    assert done.stderr == ""
