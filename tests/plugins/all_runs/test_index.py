"""The list of all runs and submissions, and the index that makes it fast."""

import json
import os
import shutil
from pathlib import Path

import pytest

from helpers.recorded import recorded_run
from helpers.results import a_finished_run, a_result, a_verdict
from helpers.runs import write_synthetic_run
from judge.plugins.all_runs.index import RunIndex
from judge.plugins.all_runs.listing import ListedRun, listed_run, pooled
from judge.plugins.all_runs.notes import NotesFolder, RunNotes
from judge.results.statistics import AttemptCounts
from judge.store.layout import RunStore


@pytest.fixture
def recorded(tmp_path: Path) -> RunStore:
    """A run of two epochs as the judge recorded it."""
    run = recorded_run()
    shutil.copytree(run, tmp_path / "runs" / run.name)
    return RunStore(tmp_path, run.name)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was read rather than taken from the index."""
    results: list[str] = []

    def run(store: RunStore) -> ListedRun:
        results.append(store.run_id)
        return listed_run(store)

    monkeypatch.setattr("judge.plugins.all_runs.index.listed_run", run)
    return results


def test_a_run_is_listed_with_everything_that_lists_show(recorded: RunStore) -> None:
    (run,) = RunIndex(recorded.output_dir).runs()
    assert run.model_dump(exclude={"key", "id", "task_set"}) == {
        "kind": "run",
        "scenario": "recorded_run/scenario.toml",
        "participant": "recorded: replay 0.1.0",
        "agent": "replay",
        "version": "0.1.0 · recorded · 4079f7b7e195",
        "judge": "checks",
        "state": "finished",
        "worked_on": 1795444494.04971,
        "rate": 66.7,
        "low": 0.0,
        "high": 100.0,
        "scored": 3,
        "total": 3,
        "name": "recorded",
        "model": None,
        "revision": "4079f7b7e195",
        "epochs": 2,
        "episodes": None,
        "tallies": {"one_lamp": (2, 2, 2), "red_rugs": (0, 2, 2), "chair_price": (2, 2, 2)},
        "metadata": (),
    }
    assert (run.day, run.moment) == ("2026-11-23", "2026-11-23 14:34")


def test_what_did_not_change_is_taken_from_the_index(recorded: RunStore, reads: list[str]) -> None:
    first = RunIndex(recorded.output_dir).runs()
    assert reads == [recorded.run_id]
    # Another process, which finds the index on the disk.
    assert RunIndex(recorded.output_dir).runs() == first
    assert reads == [recorded.run_id]


def test_what_changed_is_read_again_and_what_was_deleted_is_gone(recorded: RunStore, reads: list[str]) -> None:
    index = RunIndex(recorded.output_dir)
    index.runs()
    recorded.write_run({**(recorded.read_run() or {}), "state": "cancelled"})
    assert [run.state for run in index.runs()] == ["interrupted"]
    other = a_finished_run(recorded.output_dir, a_result("t1", verdict=a_verdict("success")))
    assert len(index.runs()) == 2
    assert reads == [recorded.run_id, recorded.run_id, other.run_id]
    shutil.rmtree(recorded.folder)
    assert [run.id for run in index.runs()] == [other.run_id]
    assert [run.id for run in RunIndex(recorded.output_dir).runs()] == [other.run_id]


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"format": "0", "entries": {}}', b'{"entries": 3}', b"\xff"])
def test_an_index_that_is_missing_damaged_or_of_another_version_is_rebuilt(
    recorded: RunStore, content: bytes | None
) -> None:
    first = RunIndex(recorded.output_dir).runs()
    path = recorded.output_dir / "view" / "index.json"
    whole = path.read_bytes()
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert RunIndex(recorded.output_dir).runs() == first
    assert path.read_bytes() == whole


def test_a_read_only_folder_is_listed_without_an_index(recorded: RunStore) -> None:
    (recorded.output_dir / "view").write_text("in the way of the index")
    assert len(RunIndex(recorded.output_dir).runs()) == 1


def test_without_runs_nothing_is_written(tmp_path: Path) -> None:
    assert RunIndex(tmp_path).runs() == []
    assert list(tmp_path.iterdir()) == []


def test_whether_a_run_is_in_progress_is_not_kept(recorded: RunStore) -> None:
    recorded.write_run({**(recorded.read_run() or {}), "state": "running"})
    index = RunIndex(recorded.output_dir)
    with recorded.held("judge"):
        assert [run.state for run in index.runs()] == ["running"]
    assert [run.state for run in index.runs()] == ["interrupted"]


def test_tags_and_notes_are_listed_and_not_kept_in_the_index(recorded: RunStore, reads: list[str]) -> None:
    index = RunIndex(recorded.output_dir)
    index.runs()
    NotesFolder(recorded.output_dir).write(recorded.run_id, RunNotes(tags=("best",), note="secret thought"))
    (run,) = index.runs()
    assert (run.tags, run.note) == (("best",), "secret thought")
    assert reads == [recorded.run_id]
    assert "secret thought" not in (recorded.output_dir / "view" / "index.json").read_text()


def test_the_files_of_runs_stay_as_they_are(recorded: RunStore) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        result = ((path, path.stat()) for path in recorded.folder.rglob("*"))
        return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in result}

    before = files()
    RunIndex(recorded.output_dir).runs()
    NotesFolder(recorded.output_dir).write(recorded.run_id, RunNotes(note="x"))
    assert files() == before


def test_submissions_in_a_folder_are_listed_and_other_files_are_not(recorded: RunStore, tmp_path: Path) -> None:
    folder = tmp_path / "submissions"
    (folder / "team").mkdir(parents=True)
    shutil.copy(recorded.folder / "results.json", folder / "team" / "ours.json")
    submission = json.loads((recorded.folder / "results.json").read_text())
    (folder / "two.json").write_text(json.dumps([submission, {"results": [{"detail": {"success_rate": 12.5}}]}]))
    shutil.copy(recorded.folder / "run.json", folder / "run.json")
    (folder / "notes.txt").write_text("x")
    results = {run.id: run for run in RunIndex(tmp_path, [folder]).runs() if run.kind == "submission"}
    assert sorted(results) == ["team/ours.json", "two.json #1", "two.json #2"]
    ours = results["team/ours.json"]
    assert (ours.scenario, ours.agent, ours.judge, ours.rate, ours.state) == (
        "recorded_run/scenario.toml",
        "replay",
        "checks",
        66.7,
        "submission",
    )
    assert results["two.json #2"].rate == 12.5
    assert len({run.key for run in results.values()}) == 3


def test_no_link_in_a_folder_of_submissions_is_followed(recorded: RunStore, tmp_path: Path) -> None:
    folder, outside = tmp_path / "submissions", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    shutil.copy(recorded.folder / "results.json", outside / "results.json")
    (folder / "link.json").symlink_to(outside / "results.json")
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    os.mkfifo(folder / "pipe.json")
    assert [run.kind for run in RunIndex(tmp_path, [folder]).runs()] == ["run"]


@pytest.mark.parametrize(
    "detail",
    [
        {"success_rate": 1e300},
        {"success_rate": -1},
        {"success_rate": 50, "confidence_interval_95": [0, 1000]},
        {"success_rate": 50, "judge": 3},
        {"tasks": []},
    ],
    ids=str,
)
def test_a_submission_without_a_usable_rate_is_listed_as_damaged(tmp_path: Path, detail: dict[str, object]) -> None:
    (tmp_path / "odd.json").write_text(json.dumps({"results": [{"detail": detail}]}))
    assert [run.state for run in RunIndex(tmp_path / "none", [tmp_path]).runs()] == ["damaged"]


def test_odd_characters_of_somebody_elses_file_are_bounded_and_in_one_line(tmp_path: Path) -> None:
    odd = "<b>\n\ud800\x1b[31m" + "x" * 5_000
    detail: dict[str, object] = {
        "success_rate": 50.0,
        "judge": {"method": odd, "model": odd},
        "provenance": {"identity": {"name": odd, "card_name": odd, "model": odd, "scenario": odd}},
        "tasks": [{"task_id": odd, "verdict": "success", "epoch": 1}],
    }
    (tmp_path / "odd.json").write_text(json.dumps({"results": [{"winner": odd, "detail": detail}]}))
    folder = tmp_path / "none"
    (run,) = RunIndex(folder, [tmp_path]).runs()
    texts = [run.scenario, run.agent, run.version, run.judge, run.participant, *run.tallies]
    assert all(text and len(text) <= 200 and text.startswith("<b>") for text in texts)
    assert not any(character in str(text) for text in texts for character in "\n\ud800\x1b")
    assert RunIndex(folder, [tmp_path]).runs() == [run]


def test_attempts_of_several_runs_are_pooled_by_task(tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        store = write_synthetic_run(tmp_path, run_id, tasks=4, steps=1)
        outcomes = {"a": "success", "b": "aborted"}
        entries = [{"task_id": task, "verdict": outcome, "epoch": 1} for task, outcome in outcomes.items()]
        store.write_submission({"results": [{"detail": {"success_rate": 100.0, "tasks": entries}}]})
    assert pooled(RunIndex(tmp_path).runs()) == {"a": AttemptCounts(2, 2, 2), "b": AttemptCounts(0, 0, 2)}
