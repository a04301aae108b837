"""What `wabe doctor` says about MiniWoB++."""

import sys
from pathlib import Path

import pytest

from judge.plugins.miniwob.importing import examine
from plugins.miniwob.package import fake_package
from shared.settings import Settings


def test_the_package_of_miniwob_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    finding = examine(Settings())
    assert finding.state == "note"
    assert "pip install 'wabe[miniwob]'" in finding.text
    monkeypatch.setattr(sys, "path", [str(fake_package(tmp_path))])
    assert examine(Settings()).state == "ok"
