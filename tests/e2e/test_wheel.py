"""The built wheel in a fresh environment: the demo runs in an empty folder."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.runner.commands import BIN, run_command

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([BIN / "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True, check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path) -> Path:
    """The programs of an environment with the wheel, and with the libraries of this one: tests use no network."""
    folder = wheel.parent / "environment"
    venv.create(folder)
    python = folder / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    # A folder named in a .pth file is searched last, and its own .pth files (such as that of our source tree) are not
    # read.
    (site_packages,) = folder.glob("lib/*/site-packages")
    (site_packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


def test_every_file_of_the_packages_and_task_sets_is_in_the_wheel(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "src", "scenarios"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wanted = {
        name.removeprefix("src/") if name.startswith("src/") else f"shared/{name}"
        for name in listed.stdout.splitlines()
    }
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_demo_runs_in_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    command = (programs / "wabe", "run", "demo", "--limit", "2")
    ended = run_command(tmp_path / "tmp", *command, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, cwd=empty)
    assert ended.code == 0, ended.stdout + ended.stderr
    assert [path.name for path in empty.iterdir()] == [".output"]
    (results,) = empty.glob(".output/runs/*/results.json")
    assert json.loads(results.read_text())["results"][0]["detail"]["judged_successes"] == 2
    record = json.loads(results.with_name("run.json").read_text())
    # Not from the source tree.
    assert Path(record["scenario"]["path"]).is_relative_to(programs.parent)
