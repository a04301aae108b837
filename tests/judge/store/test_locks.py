"""Who holds a run folder."""

from pathlib import Path

import pytest

from judge.store.layout import RunStore


def test_a_process_that_only_checks_for_writers_stops_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    store = RunStore(tmp_path, "r1")
    store.create()
    (store.folder / ".judge.lock").touch()
    with (store.folder / ".judge.lock").open("rb") as checking:
        fcntl.flock(checking.fileno(), fcntl.LOCK_SH)
        # The check is over while the writer waits.
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(checking.fileno(), fcntl.LOCK_UN))
        with store.held("judge"):
            assert store.is_in_progress
