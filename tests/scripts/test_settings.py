"""The table of settings in the documentation is the one that the declarations give."""

from pathlib import Path

import pytest

from helpers.paths import ROOT, load_file


def test_the_documented_settings_are_those_that_are_declared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_file(ROOT / "scripts" / "settings.py")
    assert script.main(["--check"]) == 0, capsys.readouterr().err
    stale = tmp_path / "configuration.md"
    stale.write_text(script.DOCUMENT.read_text().replace("| `max_steps` | 15 |", "| `max_steps` | 14 |"))
    monkeypatch.setattr(script, "DOCUMENT", stale)
    assert script.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/configuration.md is out of date: run python scripts/settings.py\n"
    script.main([])
    assert script.main(["--check"]) == 0
