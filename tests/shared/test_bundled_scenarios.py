"""Where the bundled task sets are found."""

import subprocess
import sys
import zipfile
from pathlib import Path

from shared.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def test_in_a_source_tree_the_task_sets_lie_beside_the_code() -> None:
    found = Settings().bundled_scenarios
    assert {"demo", "docs", "live"} <= set(found)
    assert all(path.is_file() for path in found.values())


def test_an_image_names_their_folder() -> None:
    settings = Settings.from_environ({"WABE_SCENARIOS": "/app/scenarios"})
    assert settings.scenarios_folder == Path("/app/scenarios")
    assert settings.bundled_scenarios == {}


def test_the_wheel_has_the_task_sets_where_the_installed_package_looks(tmp_path: Path) -> None:
    hatchling = Path(sys.executable).parent / "hatchling"
    subprocess.run([hatchling, "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    listing = "import json; from shared.settings import Settings; \n"
    listing += "print(*Settings().bundled_scenarios.values(), sep=chr(10))"
    done = subprocess.run(
        [sys.executable, "-c", listing], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    found = [Path(line) for line in done.stdout.splitlines()]
    listed = subprocess.run(["git", "ls-files", "scenarios"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {path.parent.name for path in found} >= {"demo", "docs", "live"}
    assert all(path.is_relative_to(tmp_path) for path in found)
    assert [name for name in listed.stdout.splitlines() if not (tmp_path / "shared" / name).is_file()] == []
