"""Recording an agent with its own browser, and what the commands make of such a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.plugins import leaderboard_rows, skip_without_command, verify_run
from helpers.results import JPEG
from judge.commands.app import app as wabe
from judge.judges.stored import find_trajectories
from judge.store import load_trajectory
from judge.store.layout import RunStore
from shared.errors import ConfigError, TrajectoryError
from wabe import record

TASK = {
    "task_id": "t1",
    "task": "Find the cheapest tent",
    "website": "https://shop.test/",
    "checks": [{"kind": "answer", "contains": "80"}],
}
URL = "https://shop.test/"


def record_one(folder: Path, task: dict[str, Any] = TASK, answer: str = "Dome 2, 80 euros") -> Path:
    """The ten lines of an agent's loop."""
    recorder = record("my agent", output_dir=folder, run_id="run-1")
    attempt = recorder.start(task)
    attempt.step(JPEG + b"1", "<Search textbox> -> TYPE: tent", URL, thought="I search.")
    attempt.step(JPEG + b"2", "<Search button> -> CLICK", URL)
    attempt.finish(answer, JPEG + b"3", URL + "tents")
    return recorder.folder


def test_a_recorded_attempt_is_a_trajectory(tmp_path: Path) -> None:
    (folder,) = find_trajectories(record_one(tmp_path))
    trajectory = load_trajectory(folder)
    assert trajectory.action_history == (
        "<Search textbox> -> TYPE: tent",
        "<Search button> -> CLICK",
        "<page> -> FINISH",
    )
    assert [path.read_bytes()[-1:] for path in trajectory.screenshots] == [b"1", b"2", b"3"]
    assert (trajectory.final_answer, trajectory.thoughts[0]) == ("Dome 2, 80 euros", "I search.")
    assert trajectory.is_digested


def test_the_mark_of_self_recorded_evidence_is_part_of_its_digest(tmp_path: Path) -> None:
    (folder,) = find_trajectories(record_one(tmp_path))
    result = json.loads((folder / "result.json").read_text())
    assert (result["self_recorded"], result["flags"]) == (True, ["self_recorded"])
    del result["self_recorded"]
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(TrajectoryError, match="not the digest"):
        load_trajectory(folder)


def test_the_first_judge_that_decides_something_makes_its_submission(tmp_path: Path) -> None:
    run = record_one(tmp_path)
    output = ["--output-dir", str(tmp_path)]
    skip_without_command("score")
    completed = CliRunner().invoke(wabe, ["score", "run-1", "--model", "offline", *output])
    assert completed.exit_code == 0, completed.output
    assert verify_run(RunStore(tmp_path, "run-1")).mismatches == ()
    document = json.loads((run / "results.json").read_text())
    detail = document["results"][0]["detail"]
    assert (document["results"][0]["winner"], detail["success_rate"], detail["self_recorded"]) == (
        "my agent",
        100.0,
        True,
    )
    columns, (row,) = leaderboard_rows([run / "results.json"])
    assert dict(zip(columns, row, strict=True))["Recorded By"] == "agent"
    completed = CliRunner().invoke(wabe, ["report", "run-1", *output])
    assert "the evidence comes from the agent itself" in (run / "report" / "index.html").read_text()
    skip_without_command("export")
    assert CliRunner().invoke(wabe, ["export", "run-1", "--format", "csv", *output]).exit_code == 0


def test_a_judge_that_decides_nothing_is_not_adopted(tmp_path: Path) -> None:
    run = record_one(tmp_path, {key: value for key, value in TASK.items() if key != "checks"})
    skip_without_command("score")
    CliRunner().invoke(wabe, ["score", "run-1", "--model", "offline", "--output-dir", str(tmp_path)])
    assert json.loads((run / "run.json").read_text())["judge_id"] is None
    assert not (run / "results.json").exists()


def test_the_mark_cannot_be_taken_off_a_row_by_the_files_own_claim(tmp_path: Path) -> None:
    run = record_one(tmp_path)
    skip_without_command("score")
    CliRunner().invoke(wabe, ["score", "run-1", "--model", "offline", "--output-dir", str(tmp_path)])
    document = json.loads((run / "results.json").read_text())
    document["results"][0]["detail"]["self_recorded"] = False
    (run / "results.json").write_text(json.dumps(document))
    assert (
        "results.json: self_recorded: false is stored, expected true"
        in verify_run(RunStore(tmp_path, "run-1")).mismatches
    )
    columns, (row,) = leaderboard_rows([run / "results.json"])
    assert dict(zip(columns, row, strict=True))["Recorded By"] == "agent"


def test_an_agent_that_gave_up_is_recorded_with_its_reason(tmp_path: Path) -> None:
    attempt = record("a", output_dir=tmp_path).start(TASK)
    attempt.step(JPEG, "clicked somewhere\nand more", URL)
    attempt.finish(stop_reason="participant_error", error="my model timed out")
    trajectory = load_trajectory(attempt.folder)
    assert (trajectory.stop_reason, trajectory.error) == ("participant_error", "my model timed out")
    assert trajectory.action_history == ("clicked somewhere and more",)


def test_a_task_played_again_keeps_the_earlier_attempt(tmp_path: Path) -> None:
    recorder = record("a", output_dir=tmp_path)
    for answer in ("one", "two"):
        attempt = recorder.start(TASK)
        attempt.step(JPEG, "<a link> -> CLICK", URL)
        attempt.finish(answer)
    assert load_trajectory(attempt.folder).final_answer == "two"
    assert json.loads((attempt.folder / "result.json").read_text())["attempt"] == 2


def test_screenshots_are_given_as_bytes_or_as_a_path(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n1")
    attempt = record("a", output_dir=tmp_path).start(TASK)
    attempt.step(tmp_path / "shot.png", "<a link> -> CLICK", URL)
    attempt.step(str(tmp_path / "shot.png"), "<a link> -> CLICK", URL)
    attempt.step(b"RIFF1234WEBP", "<a link> -> CLICK", URL)
    attempt.finish("x")
    assert [path.suffix for path in load_trajectory(attempt.folder).screenshots] == [".png", ".png", ".webp"]


@pytest.mark.parametrize(
    "screenshot", [b"", b"GIF89a", b"RIFF1234AVI ", "gone.png", b"\xff\xd8\xff" + bytes(20_000_000)]
)
def test_an_invalid_screenshot_is_refused(tmp_path: Path, screenshot: Any) -> None:
    attempt = record("a", output_dir=tmp_path).start(TASK)
    with pytest.raises(ConfigError):
        attempt.step(screenshot, "<a link> -> CLICK", URL)


def test_mistakes_of_the_caller_are_named(tmp_path: Path) -> None:
    recorder = record("a", output_dir=tmp_path, run_id="run-1")
    with pytest.raises(ConfigError, match="task_id"):
        recorder.start({"task": "x"})
    attempt = recorder.start(TASK)
    with pytest.raises(ConfigError, match="is being recorded"):
        recorder.start(TASK)
    attempt.finish("x")
    with pytest.raises(ConfigError, match="the attempt is over"):
        attempt.step(JPEG, "<a link> -> CLICK", URL)
    with pytest.raises(ConfigError, match="the attempt is over"):
        attempt.finish("x")
    with pytest.raises(ConfigError, match="run run-1 exists"):
        record("a", output_dir=tmp_path, run_id="run-1")


def test_checks_on_pages_are_decided_by_the_snapshots_that_the_agent_gives(tmp_path: Path) -> None:
    checks = [{"kind": "element", "element": 'heading "Your cart"'}]
    attempt = record("a", output_dir=tmp_path, run_id="run-1").start({**TASK, "checks": checks})
    attempt.step(JPEG, "<Cart link> -> CLICK", URL, snapshot='- link "Cart"')
    attempt.finish("done", JPEG, URL, snapshot='- main:\n  - heading "Your cart" [level=1]\n  - text: Dome 2')
    skip_without_command("score")
    completed = CliRunner().invoke(wabe, ["score", "run-1", "--model", "offline", "--output-dir", str(tmp_path)])
    assert "1 success" in completed.output


def test_tasks_recorded_after_a_judge_was_asked_join_the_submission(tmp_path: Path) -> None:
    recorder = record("a", output_dir=tmp_path, run_id="run-1")
    for name in ("t1", "t2"):
        attempt = recorder.start({**TASK, "task_id": name})
        attempt.step(JPEG, "<a link> -> CLICK", URL)
        attempt.finish("80")
        skip_without_command("score")
        CliRunner().invoke(wabe, ["score", "run-1", "--model", "offline", "--output-dir", str(tmp_path)])
    assert verify_run(RunStore(tmp_path, "run-1")).mismatches == ()
    assert json.loads((recorder.folder / "results.json").read_text())["results"][0]["detail"]["total_tasks"] == 2
