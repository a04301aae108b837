"""The leaderboard queries begin with the same part, which is written once."""

from pathlib import Path
from types import ModuleType

import pytest

from helpers.paths import ROOT, load_file


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_file(ROOT / "scripts" / "queries.py")


def test_every_query_has_the_part_as_it_is_written_once(script: ModuleType) -> None:
    beginning = script.BEGINNING.read_text()
    paths = sorted(script.FOLDER.glob("*.sql"))
    assert [path.name for path in paths if path.read_text().count(beginning) != 1] == []
    assert len(paths) >= 5


def test_a_changed_part_is_found_and_written_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (script.FOLDER / "overall.sql").read_text()
    (tmp_path / "overall.sql").write_text(good.replace("shard_plays AS (", "shard_plays AS MATERIALIZED ("))
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    assert script.main(["--check"]) == 1
    assert "overall.sql is out of date" in capsys.readouterr().err
    assert script.main([]) == 0
    assert (tmp_path / "overall.sql").read_text() == good
