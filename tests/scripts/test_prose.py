"""The prose of docstrings and comments gets no heavier."""

from pathlib import Path

import pytest

from helpers.paths import ROOT, load_file

pytestmark = pytest.mark.slow

PROSE = load_file(ROOT / "scripts" / "prose.py")


def test_phrases_that_make_sentences_heavy_stay_rare() -> None:
    found = PROSE.counts([PROSE.SRC])
    ceilings = {"that of, those of": 2, "that is, that are, that was": 14, "own": 14}
    assert {name: found[name] for name, ceiling in ceilings.items() if found[name] > ceiling} == {}


def test_only_docstrings_and_comments_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""Its own."""\nown = "that of"  # Those of the site.\n')
    (tmp_path / "b.js").write_text('const own = "http://that.is"; // A page that is open.\n')
    found = PROSE.counts([tmp_path])
    assert {name: round(found[name] * found["words"] / 10_000) for name in PROSE.PATTERNS} == {
        "that of, those of": 1,
        "that is, that are, that was": 1,
        "own": 1,
    }
