"""Deleting runs: what is deleted, and what never is."""

import shutil
from pathlib import Path
from typing import Literal

import pytest

from helpers.results import a_finished_run, a_result
from judge.plugins.all_runs.removal import removable, remove
from judge.store.layout import RunStore, newest_run, runs_in
from shared.errors import ConfigError


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Three runs, the last one the newest."""
    for run_id in ("r1", "r2", "r3"):
        a_finished_run(tmp_path / "out", a_result("t1"), run_id=run_id)
    return tmp_path / "out"


def ids(output: Path) -> list[str]:
    return [store.run_id for store in runs_in(output)]


def test_a_run_is_deleted_with_everything_in_it_and_its_size_is_returned(output: Path) -> None:
    size = sum(path.stat().st_size for path in (output / "runs" / "r2").rglob("*") if path.is_file())
    freed = remove(removable(output, "r2"))
    # The lock files name a process each.
    assert size < freed < size + 200
    assert sorted(path.name for path in (output / "runs").iterdir()) == ["r1", "r3"]


def test_a_run_that_another_process_has_deleted_meanwhile_is_named(output: Path) -> None:
    one, other = removable(output, "r1"), removable(output, "r1")
    remove(one)
    with pytest.raises(ConfigError, match='no run "r1" under'):
        remove(other)
    assert sorted(path.name for path in (output / "runs").iterdir()) == ["r2", "r3"]


def test_two_processes_may_delete_the_same_folder_at_once(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = shutil.rmtree

    def both_delete(path: Path, ignore_errors: bool = False) -> None:
        delete(path)
        delete(path, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", both_delete)
    remove(removable(output, "r1"))
    assert ids(output) == ["r2", "r3"]


def test_files_that_a_merged_run_shares_with_its_shards_are_counted_once(output: Path) -> None:
    results = output / "runs" / "r1" / "results"
    (results / "a").write_bytes(bytes(1_000_000))
    (results / "b").hardlink_to(results / "a")
    assert 1_000_000 < remove(removable(output, "r1")) < 1_500_000


def test_without_the_newest_run_the_link_leads_to_the_next(output: Path) -> None:
    remove(removable(output, "r3"))
    assert (output / "results").resolve() == (output / "runs" / "r2" / "results").resolve()
    for run_id in ("r1", "r2"):
        remove(removable(output, run_id))
    assert not (output / "results").is_symlink()
    assert newest_run(output) is None


@pytest.mark.parametrize("by", ["judge", "runner"])
@pytest.mark.parametrize("part", ["r1", "r1/shards/000-of-002"])
def test_a_run_in_progress_is_never_deleted(output: Path, part: str, by: Literal["judge", "runner"]) -> None:
    store = removable(output, "r1")
    RunStore(output, part).create()
    with RunStore(output, part).held(by):
        with pytest.raises(ConfigError, match="r1 is in progress"):
            removable(output, "r1")
        # One that began after it was looked at.
        with pytest.raises(ConfigError, match="is being written by process"):
            remove(store)
    assert "r1" in ids(output)


@pytest.mark.parametrize(
    "run_id", ["none", "", ".", "..", "../runs/r1", "r1/results", "r1/shards/000-of-002", "/", "*"]
)
def test_nothing_but_the_id_of_a_run_names_one(output: Path, run_id: str) -> None:
    (output / "runs" / "r1" / "shards" / "000-of-002").mkdir(parents=True)
    with pytest.raises(ConfigError, match="no run"):
        removable(output, run_id)


def test_a_link_in_place_of_a_run_is_refused(output: Path, tmp_path: Path) -> None:
    elsewhere = a_finished_run(tmp_path / "elsewhere", a_result("t1"), run_id="far").folder
    (output / "runs" / "r0").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="behind a link"):
        removable(output, "r0")
    (tmp_path / "out2").mkdir()
    (tmp_path / "out2" / "runs").symlink_to(output / "runs")
    with pytest.raises(ConfigError, match="behind a link"):
        removable(tmp_path / "out2", "r1")


def test_links_in_a_run_are_deleted_and_not_what_they_lead_to(output: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    (target / "000-of-001").mkdir(parents=True)
    (target / "000-of-001" / "file").write_text("mine")
    (output / "runs" / "r1" / "results" / "link").symlink_to(target)
    (output / "runs" / "r1" / "shards").symlink_to(target)
    remove(removable(output, "r1"))
    assert [path.name for path in target.rglob("*")] == ["000-of-001", "file"]
    assert (target / "000-of-001" / "file").read_text() == "mine"


def test_a_lock_file_that_is_a_link_is_not_written_through(output: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    lock = output / "runs" / "r1" / ".judge.lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigError, match="cannot write"):
        remove(removable(output, "r1"))
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_rest_of_an_interrupted_deletion_is_not_a_run_and_goes_with_the_next(output: Path) -> None:
    (output / "runs" / "r1").rename(output / "runs" / ".removed-r1-1")
    assert ids(output) == ["r2", "r3"]
    remove(removable(output, "r2"))
    assert sorted(path.name for path in (output / "runs").iterdir()) == ["r3"]
