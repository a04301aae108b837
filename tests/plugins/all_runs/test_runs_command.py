"""`wabe runs`: what it lists, and that no damaged folder stops it."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result, a_verdict
from helpers.runs import write_synthetic_run
from judge.commands.app import command_app
from judge.plugins.all_runs.filters import run_filters
from judge.plugins.all_runs.notes import NotesFolder, RunNotes
from judge.report.build import make_report
from judge.store.layout import RunStore
from shared.errors import ConfigError


def a_run(folder: Path, run_id: str, **record: Any) -> RunStore:
    store = RunStore(folder, run_id)
    store.create()
    known = {
        "state": "completed",
        "participants": {"white_agent": "http://127.0.0.1:1/"},
        "scenario": {"name": "demo/scenario.toml"},
        "config": {},
    }
    store.write_run(known | record)
    return store


def run_list(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(command_app("runs"), ["--output-dir", str(folder), *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(run_list(folder, "--json"))}


def test_a_run_is_listed_with_its_scenario_participant_state_and_success_rate(tmp_path: Path) -> None:
    store = a_run(tmp_path, "20260101-000000-aa")
    store.write_submission({"results": [{"detail": {"success_rate": 58.8}}]})
    assert run_list(tmp_path).splitlines() == [
        "RUN                 SCENARIO            PARTICIPANT  STATE     SUCCESS RATE",
        "20260101-000000-aa  demo/scenario.toml  white_agent  finished  58.8 %",
    ]
    assert json.loads(run_list(tmp_path, "--json")) == [
        {
            "run_id": "20260101-000000-aa",
            "id": "20260101-000000-aa",
            "scenario": "demo/scenario.toml",
            "participant": "white_agent",
            "state": "finished",
            "success_rate": 58.8,
            "name": None,
            "model": None,
            "revision": None,
            "epochs": 1,
            "episodes": None,
            "agent": "white_agent",
            "version": None,
            "judge": None,
            "tags": [],
            "note": "",
            "last_started_at": 1_767_225_600.0,
        }
    ]


def test_a_run_is_listed_with_who_played_it(tmp_path: Path) -> None:
    identity = {"name": "night", "card_name": "my agent", "card_version": "2", "model": "gemini-3", "revision": "abc"}
    a_run(tmp_path, "r1", identity=identity)
    assert "night: my agent 2 (gemini-3)" in run_list(tmp_path)
    row = rows(tmp_path)["r1"]
    assert (row["name"], row["model"], row["revision"]) == ("night", "gemini-3", "abc")


def test_the_list_is_narrowed_by_every_declared_filter(tmp_path: Path) -> None:
    a_run(tmp_path, "20260101-000000-aa", identity={"card_name": "mine"})
    a_run(tmp_path, "20260301-000000-bb", identity={"card_name": "theirs"})
    NotesFolder(tmp_path).write("20260301-000000-bb", RunNotes(tags=("best",)))
    options = {
        "--search": "-theirs",
        "--scenario": "DEMO",
        "--agent": "=mine",
        "--state": "finished",
        "--since": "2026-01-01",
        "--until": "2026-01-31",
    }
    assert {f"--{name}" for name, _, _ in run_filters()} == {*options, "--judge", "--tag", "--where"}
    narrowed = json.loads(run_list(tmp_path, "--json", *(word for pair in options.items() for word in pair)))
    assert [row["id"] for row in narrowed] == ["20260101-000000-aa"]
    assert [row["id"] for row in json.loads(run_list(tmp_path, "--json", "--tag", "best"))] == ["20260301-000000-bb"]
    assert json.loads(run_list(tmp_path, "--json", "--judge", "webjudge")) == []


def test_a_day_that_is_none_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    completed = CliRunner().invoke(command_app("runs"), ["--output-dir", str(tmp_path), "--since", "soon"])
    assert isinstance(completed.exception, ConfigError)
    assert str(completed.exception) == "wabe runs: key 'since': 'soon' is not a day (write it like 2026-11-23)"


def test_a_run_as_the_judge_records_it_is_finished(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("success")))
    assert rows(tmp_path)[store.run_id]["success_rate"] == 100.0


def test_without_a_scored_task_there_is_no_rate(tmp_path: Path) -> None:
    a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("unscored")))
    assert rows(tmp_path)["run-1"]["success_rate"] is None
    assert run_list(tmp_path).splitlines()[1].split()[-1] == "-"


def test_the_newest_run_is_first(tmp_path: Path) -> None:
    for run_id in ("20260101-000000-aa", "20260301-000000-cc", "20260201-000000-bb"):
        a_run(tmp_path, run_id)
    assert [run_id[:6] for run_id in rows(tmp_path)] == ["202603", "202602", "202601"]


@pytest.mark.parametrize(
    ("recorded", "state"),
    [("cancelled", "interrupted"), ("stopped", "interrupted"), ("failed", "failed"), ("running", "interrupted")],
)
def test_a_run_that_did_not_finish_has_no_rate(tmp_path: Path, recorded: str, state: str) -> None:
    a_run(tmp_path, "r1", state=recorded)
    row = rows(tmp_path)["r1"]
    assert (row["state"], row["success_rate"]) == (state, None)


def test_a_run_is_running_as_long_as_its_judge_holds_the_folder(tmp_path: Path) -> None:
    store = a_run(tmp_path, "r1", state="running")
    with store.held("judge"):
        assert rows(tmp_path)["r1"]["state"] == "running"
    assert rows(tmp_path)["r1"]["state"] == "interrupted"


def test_a_run_of_a_bundled_set_that_the_judge_knows_is_named_by_the_set(tmp_path: Path) -> None:
    a_run(tmp_path, "r1", scenario=None, config={"scenario": "live"})
    assert rows(tmp_path)["r1"]["scenario"] == "live"


def test_a_run_of_a_newer_version_is_listed_as_such(tmp_path: Path) -> None:
    a_run(tmp_path, "r1", schema_version="wabe-run-99")
    assert rows(tmp_path)["r1"]["state"] == "newer version"


@pytest.mark.parametrize("name", ["run.json", "results.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"results": [{}], "state": 3}', b"\xff\xfe"])
def test_a_damaged_folder_is_listed_as_damaged(tmp_path: Path, name: str, content: bytes) -> None:
    store = a_run(tmp_path, "r1")
    a_run(tmp_path, "r2")
    (store.folder / name).write_bytes(content)
    assert {run_id: row["state"] for run_id, row in rows(tmp_path).items()} == {"r2": "finished", "r1": "damaged"}


def test_a_run_in_shards_is_listed_before_they_are_merged(tmp_path: Path) -> None:
    for index in range(2):
        a_run(tmp_path, f"r1/shards/00{index}-of-003", state="running")
    assert rows(tmp_path)["r1"]["state"] == "2 shards, not merged"


def test_a_folder_without_its_record_is_damaged(tmp_path: Path) -> None:
    (a_run(tmp_path, "r1").folder / "run.json").unlink()
    assert rows(tmp_path)["r1"]["state"] == "damaged"


def test_control_characters_in_a_name_are_not_printed(tmp_path: Path) -> None:
    a_run(tmp_path, "r1", participants={"a\x1b[31m\nb": "http://127.0.0.1:1/"})
    output = run_list(tmp_path)
    assert "\x1b" not in output
    assert len(output.splitlines()) == 2


def test_without_runs_it_names_the_command_that_starts_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(command_app("runs"), ["--output-dir", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wabe run demo" in result.stderr
    assert json.loads(run_list(tmp_path, "--json")) == []


def deleting(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(command_app("runs"), [*arguments, "--output-dir", str(folder)])


def test_named_runs_are_deleted_and_the_freed_space_is_reported(tmp_path: Path) -> None:
    for run_id in ("r1", "r2", "r3"):
        (a_run(tmp_path, run_id).folder / "large").write_bytes(bytes(1_500_000))
    completed = deleting(tmp_path, "rm", "r1", "r3", "--yes")
    assert completed.stdout.splitlines() == ["deleted r1", "deleted r3", "Freed 3.0 MB."]
    assert list(rows(tmp_path)) == ["r2"]


def test_the_notes_of_a_deleted_run_are_deleted_too(tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        a_run(tmp_path, run_id)
        NotesFolder(tmp_path).write(run_id, RunNotes(note="kept?"))
    deleting(tmp_path, "rm", "r1", "--yes")
    assert list(NotesFolder(tmp_path).read_all()) == ["r2"]


def test_an_unknown_id_deletes_nothing(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    completed = deleting(tmp_path, "rm", "r1", "r9", "--yes")
    assert isinstance(completed.exception, ConfigError)
    assert 'no run "r9"' in completed.exception.message
    assert list(rows(tmp_path)) == ["r1"]


def test_without_a_terminal_deleting_needs_to_be_confirmed_by_an_option(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    completed = deleting(tmp_path, "rm", "r1")
    assert isinstance(completed.exception, ConfigError)
    assert "--yes" in completed.exception.remedy
    assert list(rows(tmp_path)) == ["r1"]


def test_all_but_the_newest_runs_are_deleted_and_not_one_in_progress(tmp_path: Path) -> None:
    for run_id in ("r1", "r2", "r3", "r4"):
        a_run(tmp_path, run_id)
    with RunStore(tmp_path, "r1").held("judge"):
        completed = deleting(tmp_path, "prune", "--keep", "1", "--yes")
    assert completed.stdout.splitlines()[0] == "run r1 is in progress: it stays"
    assert list(rows(tmp_path)) == ["r4", "r1"]
    assert deleting(tmp_path, "prune", "--keep", "2", "--yes").stdout == "No runs to delete.\n"


def test_comparisons_of_deleted_runs_go_with_them_and_nothing_else_does(tmp_path: Path) -> None:
    runs = [write_synthetic_run(tmp_path, run_id, tasks=1) for run_id in ("r1", "r2", "r2--x")]
    for compared in ([runs[0], runs[1]], [runs[1], runs[2]], [runs[0], runs[2]]):
        make_report(compared)
    folder = tmp_path / "comparisons"
    # As older versions wrote it, and a folder that is not one of our reports.
    (folder / "r2--r1" / "runs.json").unlink(missing_ok=True)
    shutil.copytree(folder / "r1--r2", folder / "r2--r1")
    (folder / "r2--r1" / "runs.json").unlink()
    (folder / "r1--notes").mkdir()
    (folder / "r1--notes" / "index.html").write_text("mine")
    completed = deleting(tmp_path, "rm", "r1", "--yes").stdout.splitlines()
    assert completed[1:4] == [f"deleted comparison {name}" for name in ("r1--r2", "r1--r2--x", "r2--r1")]
    assert sorted(path.name for path in folder.iterdir()) == ["r1--notes", "r2--r2--x"]


def test_of_runs_with_ids_of_any_form_the_one_that_was_worked_on_last_is_kept(tmp_path: Path) -> None:
    # In name order the oldest is the last.
    a_run(tmp_path, "slurm-17/shards/000-of-001", started_at=1_700_000_000.0)
    a_run(tmp_path, "nightly", started_at=1_600_000_000.0, resumed_at=1_800_000_000.0)
    a_run(tmp_path, "20260101-000000-aa", started_at=1_767_225_600.0)
    assert list(rows(tmp_path)) == ["nightly", "20260101-000000-aa", "slurm-17"]
    assert deleting(tmp_path, "prune", "--keep", "1", "--yes").exit_code == 0
    assert list(rows(tmp_path)) == ["nightly"]


def test_an_output_folder_before_the_command_counts_for_it(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    arguments = ["--output-dir", str(tmp_path), "rm", "r1", "--yes"]
    assert CliRunner().invoke(command_app("runs"), arguments).exit_code == 0
    assert rows(tmp_path) == {}


@pytest.mark.parametrize(("answer", "remaining"), [("n", ["r1"]), ("y", [])])
def test_on_a_terminal_it_asks_before_it_deletes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    remaining: list[str],
) -> None:
    a_run(tmp_path, "r1")
    main, worker = pty.openpty()
    os.write(main, f"{answer}\n".encode())
    with os.fdopen(worker) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        command_app("runs")(["rm", "r1", "--output-dir", str(tmp_path)], standalone_mode=False)
    os.close(main)
    assert "Delete 1 run (0.0 MB)? [y/N]" in capsys.readouterr().out
    assert list(rows(tmp_path)) == remaining


@pytest.mark.slow
def test_on_a_terminal_it_is_a_table(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    main, worker = pty.openpty()
    command: list[str | Path] = [Path(sys.executable).parent / "wabe", "runs", "--output-dir", tmp_path]
    subprocess.run(command, stdout=worker, env={**os.environ, "COLUMNS": "120", "TERM": "xterm"}, check=True)
    os.close(worker)
    output = os.read(main, 10_000).decode()
    os.close(main)
    assert "┃" in output
    assert "finished" in output


def test_a_run_of_several_epochs_says_so(tmp_path: Path) -> None:
    store = a_run(tmp_path, "20260101-000000-aa", config={"epochs": 3})
    store.write_submission({"results": [{"detail": {"success_rate": 58.8}}]})
    assert "58.8 %, 3 epochs" in run_list(tmp_path)
    assert rows(tmp_path)[store.run_id]["epochs"] == 3


def test_a_rate_over_some_of_the_tasks_says_over_how_many(tmp_path: Path) -> None:
    store = a_run(tmp_path, "20260101-000000-aa")
    detail = {"success_rate": 100.0, "scored_tasks": 6, "total_tasks": 10}
    store.write_submission({"results": [{"detail": detail}]})
    assert "100.0 % (6 of 10 scored)" in run_list(tmp_path)
