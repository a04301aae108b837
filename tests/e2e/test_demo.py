"""The demo from the command line: real browser, real MCP server, real A2A, a website of our own."""

import json
from pathlib import Path
from typing import Any

import pytest
import tomli

from helpers.paths import ROOT
from helpers.runner.commands import FinishedCommand, listening, run_command
from judge.results.leaderboard import rows
from judge.scenario.toml import load_scenario
from judge.store import load_trajectory

pytestmark = pytest.mark.e2e
DEMO = ROOT / "scenarios" / "demo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[FinishedCommand, Path]:
    folder = tmp_path_factory.mktemp("demo")
    ended = run_command(
        folder / "tmp",
        "agentbeats-run",
        DEMO / "scenario.toml",
        "--max-parallel",
        "2",
        "--output-dir",
        folder / "out",
        "--output",
        folder / "submission.json",
    )
    return ended, folder


def submission(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "submission.json").read_text()))


def test_it_ends_well_and_says_where_the_results_are(demo: tuple[FinishedCommand, Path]) -> None:
    ended, _ = demo
    assert ended.code == 0, ended.stdout + ended.stderr
    assert "results.json" in ended.stdout


def test_every_verdict_is_the_expected_one(demo: tuple[FinishedCommand, Path]) -> None:
    _, folder = demo
    expected = tomli.loads((DEMO / "expected.toml").read_text())
    found = {task["task_id"]: task["verdict"] for task in submission(folder)["results"][0]["detail"]["tasks"]}
    assert found == {task_id: entry["verdict"] for task_id, entry in expected.items()}


def test_the_counts_add_up_and_the_checks_are_the_judge(demo: tuple[FinishedCommand, Path]) -> None:
    ended, folder = demo
    detail = submission(folder)["results"][0]["detail"]
    assert detail["total_tasks"] == len(load_scenario(DEMO / "scenario.toml").tasks)
    assert detail["total_tasks"] == detail["scored_tasks"] + detail["unscored_tasks"] + detail["aborted_tasks"]
    assert detail["success_rate"] == round(100 * detail["judged_successes"] / detail["scored_tasks"], 1)
    assert detail["judge"]["method"] == "checks"
    assert "The colour 'Red' is selected: failed, found" in " ".join(ended.stdout.split())


def test_the_run_verifies(demo: tuple[FinishedCommand, Path]) -> None:
    _, folder = demo
    ended = run_command(folder / "tmp", "wabe", "verify", "--output-dir", folder / "out")
    assert ended.code == 0, ended.stdout
    assert "17 tasks, checksums, counts and rates match" in ended.stdout


def test_every_trajectory_can_be_read_and_has_a_picture_of_every_step(demo: tuple[FinishedCommand, Path]) -> None:
    _, folder = demo
    for task in submission(folder)["results"][0]["detail"]["tasks"]:
        trajectory = load_trajectory(folder / "out" / "results" / task["task_id"])
        taken = [step for step in trajectory.steps if step.outcome is not None]
        assert len(taken) == task["steps_taken"]
        assert trajectory.steps == tuple(taken)
        pictured = [step for step in trajectory.steps if step.screenshot or step.dialog]
        assert len(pictured) == len(trajectory.steps)


def test_the_leaderboard_query_gives_its_row(demo: tuple[FinishedCommand, Path]) -> None:
    _, folder = demo
    detail = submission(folder)["results"][0]["detail"]
    _, table = rows([folder / "submission.json"], None)
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


def test_nothing_is_left_behind(demo: tuple[FinishedCommand, Path]) -> None:
    ended, _ = demo
    assert ended.left_processes == {}
    assert ended.left_files == []
    assert not any(listening(port) for port in (9009, 9019, 9180))
