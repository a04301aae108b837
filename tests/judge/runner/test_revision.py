"""The git commit that a run records."""

import subprocess
from pathlib import Path

from judge.runner.place import git_revision


def git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True)


def test_a_folder_in_a_repository_has_a_revision_that_tells_whether_files_were_changed(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("a")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    clean = git_revision(tmp_path)
    assert clean is not None
    assert len(clean) >= 12
    (tmp_path / "scenario.toml").write_text("b")
    assert git_revision(tmp_path) == f"{clean}-dirty"


def test_a_folder_outside_a_repository_has_none(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
    assert git_revision(tmp_path / "missing") is None
