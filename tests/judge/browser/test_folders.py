"""What a killed judge leaves behind is found and removed by the next one."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judge.browser.folders import BrowserFolder, sweep

OWNER = "from judge.browser.folders import BrowserFolder; f = BrowserFolder(); print(f.path, flush=True); input()"


@pytest.fixture(autouse=True)
def base(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Short, because a long one is replaced by the system's own.
    with tempfile.TemporaryDirectory(prefix="wabe-t-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@contextmanager
def owned_elsewhere() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that owns a folder."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            yield owner, Path(owner.stdout.readline().strip())
        finally:
            owner.kill()


def test_a_folder_is_gone_once_it_is_removed(base: Path) -> None:
    folder = BrowserFolder()
    (folder.path / "profile").mkdir()
    folder.remove()
    assert list(base.iterdir()) == []


def test_the_folder_of_a_killed_owner_is_removed(base: Path) -> None:
    with owned_elsewhere() as (owner, folder):
        owner.kill()
        owner.wait()
        assert folder.parent == base
        assert sweep() == 1
        assert not folder.exists()


def test_the_folder_of_a_living_owner_stays() -> None:
    with owned_elsewhere() as (_, folder):
        assert sweep() == 0
        assert folder.is_dir()


def test_our_own_folder_stays() -> None:
    folder = BrowserFolder()
    assert sweep() == 0
    assert folder.path.is_dir()
    folder.remove()


def test_a_folder_that_nobody_ever_locked_stays(base: Path) -> None:
    (base / "wabe-browser-strange").mkdir()
    assert sweep() == 0
    assert (base / "wabe-browser-strange").is_dir()


def test_a_lock_that_is_a_link_is_not_followed(base: Path, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (base / "wabe-browser-link").mkdir()
    (base / "wabe-browser-link" / "owner.lock").symlink_to(tmp_path / "target")
    assert sweep() == 0
    assert (base / "wabe-browser-link").is_dir()


def test_a_process_that_still_uses_the_folder_is_ended() -> None:
    with owned_elsewhere() as (owner, folder):
        owner.kill()
        owner.wait()
        sleeper = [sys.executable, "-c", "input()", f"--user-data-dir={folder}/profile"]
        with subprocess.Popen(sleeper, stdin=subprocess.PIPE, start_new_session=True) as browser:
            assert sweep() == 1
            assert browser.wait(timeout=10) == -9
