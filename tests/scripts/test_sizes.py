"""What one must load to use a part is no more than today. A figure that falls takes its ceiling along."""

from types import ModuleType

import pytest

from helpers.paths import ROOT, load_file

# Code lines.
CEILINGS = {
    "read an attempt": 3_450,
    "checks": 5_600,
    "guard": 3_720,
    "judge a stored attempt": 5_560,
    "one row": 4_940,
    "a submission": 6_200,
    "play": 16_660,
    "wabe run": 19_350,
    "the judge's server": 30_600,
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_file(ROOT / "scripts" / "sizes.py")


@pytest.mark.slow
def test_no_part_loads_more_than_before(script: ModuleType) -> None:
    source = script.Source()
    loaded = {what: source.lines_loaded_by(module) for what, module in script.ENTRIES.items()}
    assert {what: lines for what, lines in loaded.items() if lines > CEILINGS[what]} == {}


def test_an_import_loads_what_it_imports_and_the_packages_around(script: ModuleType) -> None:
    loaded = script.Source().loaded_by("judge.store.run_files")
    assert {"judge", "judge.store", "judge.store.run_files", "judge.trajectory.files"} <= loaded
    assert "judge.store.layout" not in loaded
