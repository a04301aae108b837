"""The demo as users run it: the built wheel in a fresh environment, `wabe run demo` in an empty folder."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.plugins import leaderboard_rows, skip_without_command
from helpers.runner.commands import BIN, FinishedCommand, run_command
from judge.commands.app import app
from judge.scenario.toml import load_scenario
from judge.store import load_trajectory

pytestmark = pytest.mark.e2e
DEMO = ROOT / "scenarios" / "demo"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([BIN / "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True, check=True)
    (result,) = folder.glob("*.whl")
    return result


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


class Demo(NamedTuple):
    """A run, and where its results are."""

    command: FinishedCommand
    output: Path

    @property
    def submission(self) -> Path:
        (result,) = self.output.glob("runs/*/results.json")
        return result

    @property
    def detail(self) -> dict[str, Any]:
        return dict(json.loads(self.submission.read_text())["results"][0]["detail"])


@pytest.fixture(scope="module")
def demo(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    empty = folder / "empty"
    empty.mkdir()
    command = (programs / "wabe", "run", "demo", "--max-parallel", "2")
    completed = run_command(folder / "tmp", *command, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, cwd=empty)
    return Demo(completed, empty / ".output")


def test_every_file_of_the_packages_and_task_sets_is_in_the_wheel(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "src", "scenarios"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = {
        name.removeprefix("src/") if name.startswith("src/") else f"shared/{name}"
        for name in tracked.stdout.splitlines()
    }
    assert expected - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_it_ends_well_and_says_where_the_results_are(demo: Demo) -> None:
    assert demo.command.code == 0, demo.command.stdout + demo.command.stderr
    assert "results.json" in demo.command.stdout


def test_all_it_writes_is_in_one_folder_of_the_current_one(demo: Demo) -> None:
    assert list(demo.output.parent.iterdir()) == [demo.output]


def test_it_is_that_of_the_wheel(demo: Demo, programs: Path) -> None:
    record = json.loads(demo.submission.with_name("run.json").read_text())
    assert Path(record["scenario"]["path"]).is_relative_to(programs.parent)


def test_every_verdict_is_the_expected_one(demo: Demo) -> None:
    expected = tomli.loads((DEMO / "expected.toml").read_text())
    verdicts = {task["task_id"]: task["verdict"] for task in demo.detail["tasks"]}
    assert verdicts == {task_id: entry["verdict"] for task_id, entry in expected.items()}


def test_the_counts_add_up_and_the_checks_are_the_judge(demo: Demo) -> None:
    detail = demo.detail
    assert detail["total_tasks"] == len(load_scenario(DEMO / "scenario.toml").tasks)
    assert detail["total_tasks"] == detail["scored_tasks"] + detail["unscored_tasks"] + detail["aborted_tasks"]
    assert detail["success_rate"] == round(100 * detail["judged_successes"] / detail["scored_tasks"], 1)
    assert detail["judge"]["method"] == "checks"
    assert "The colour 'Red' is selected: failed, found" in " ".join(demo.command.stdout.split())


def test_the_run_verifies(demo: Demo) -> None:
    skip_without_command("verify")
    verified = CliRunner().invoke(app, ["verify", "--output-dir", str(demo.output)])
    assert verified.exit_code == 0, verified.output
    assert "17 tasks, checksums, counts and rates match" in verified.output


def test_every_trajectory_can_be_read_and_has_a_picture_of_every_step(demo: Demo) -> None:
    for task in demo.detail["tasks"]:
        trajectory = load_trajectory(demo.output / "results" / task["task_id"])
        steps = [step for step in trajectory.steps if step.outcome is not None]
        assert len(steps) == task["steps_taken"]
        assert trajectory.steps == tuple(steps)
        pictured = [step for step in trajectory.steps if step.screenshot or step.dialog]
        assert len(pictured) == len(trajectory.steps)


def test_the_leaderboard_query_gives_its_row(demo: Demo) -> None:
    detail = demo.detail
    _, table = leaderboard_rows([demo.submission], None)
    # The columns after these are those of every row: what decided, who recorded, how it was played.
    assert [tuple(row[1:6]) for row in table] == [
        (
            detail["success_rate"],
            detail["completed_tasks"],
            detail["total_tasks"],
            detail["success_rate_of_all"],
            detail["is_complete"],
        )
    ]


def test_nothing_is_left_behind(demo: Demo) -> None:
    assert demo.command.left_processes == {}
    assert demo.command.left_files == []
