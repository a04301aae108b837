"""Names in an object store are those of whoever can write to it."""

from pathlib import Path

import pytest

from judge.plugins.objects.store import FsspecStore
from shared.errors import ConfigError


@pytest.mark.parametrize("name", ["/etc/x", "../../x", "results/../../../x", "results/t1/../../../../x"])
def test_a_file_of_an_object_store_is_never_written_outside_its_run(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("x")
    store = FsspecStore(f"file://{tmp_path}/objects")
    monkeypatch.setattr(FsspecStore, "_files_of", lambda *_: {name: str(tmp_path / "f")})
    with pytest.raises(ConfigError, match="leads out of its folder"):
        store.fetch("r1", tmp_path / "runs" / "r1")


def test_files_of_an_object_store_that_differ_only_in_case_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("x")
    store = FsspecStore(f"file://{tmp_path}/objects")
    names = ("results/t1/result.json", "results/T1/result.json")
    monkeypatch.setattr(FsspecStore, "_files_of", lambda *_: {name: str(tmp_path / "f") for name in names})
    with pytest.raises(ConfigError, match="only in case"):
        store.fetch("r1", tmp_path / "runs" / "r1")
