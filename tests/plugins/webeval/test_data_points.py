"""F32: the folders of webeval's successor, whole and in parts."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.results import JPEG
from judge.judges.stored import find_trajectories
from judge.trajectory.files import foreign_verdicts, load_trajectory
from shared.errors import TrajectoryError

USAGE = {"prompt_tokens": 50, "completion_tokens": 5}


def events(*, ended: bool = True) -> list[dict[str, Any]]:
    """Two or three actions, each between a page before and a page after it."""
    calls: list[tuple[str, dict[str, Any]]] = [("left_click", {"coordinate": [10, 20]}), ("type", {"text": "tent"})]
    calls += [("terminate", {"answer": "80"})] if ended else []
    found: list[dict[str, Any]] = []
    for number, (name, arguments) in enumerate(calls, 1):
        moment = f"2026-01-01T00:00:0{number}+00:00"
        page = {"type": "observation", "url": f"https://shop.test/{number}", "timestamp": moment}
        content = {"action": name, "arguments": {"action": name, "thoughts": f"thought {number}", **arguments}}
        action = {"type": "action", "id": f"a{number}", "action_name": name, "content": content}
        found += [
            {**page, "screenshot_path": f"screenshot_{number}_pre.png"},
            {**action, "llm_conversation": {"messages": [{"usage": USAGE}]}},
            {**page, "screenshot_path": f"screenshot_{number}_post.png", "action_id": f"a{number}"},
        ]
    return found


def written(folder: Path, *, status: str = "complete", **changes: Any) -> Path:
    folder.mkdir(parents=True)
    for number in (1, 2, 3):
        for when in ("pre", "post"):
            (folder / f"screenshot_{number}_{when}.png").write_bytes(JPEG + f"{number}{when}".encode())
    document = {
        "task": {"task_id": "t1", "instruction": "Find the cheapest tent", "metadata": {}},
        "solver_log": {"status": status, "outcome": {"answer": "80"}, "events": events()},
        "verification": {
            "outcome": {"result_type": "mm_rubric_outcome", "output_success": False, "score": 1.0, "reasoning": "no"},
            "judge": {"result_type": "base", "score": 0.5, "reasoning": "yes"},
            "task": {"result_type": "task_verification", "is_invalid": False},
        },
    }
    (folder / "data_point.json").write_text(json.dumps({**document, **changes}))
    return folder


def split(folder: Path) -> Path:
    """The same data point in parts."""
    document = json.loads((folder / "data_point.json").read_text())
    (folder / "data_point.json").unlink()
    (folder / "solver_log").mkdir()
    log = document["solver_log"]
    lines = {"solver_log/events.jsonl": log.pop("events")}
    lines["verification.jsonl"] = [{"verifier_name": key, **value} for key, value in document["verification"].items()]
    for name, values in lines.items():
        (folder / name).write_text("".join(f"{json.dumps(value)}\n" for value in values))
    (folder / "task.json").write_text(json.dumps(document["task"]))
    (folder / "solver_log" / "status.json").write_text(json.dumps(log))
    return folder


@pytest.mark.parametrize("form", ["whole", "parts"])
def test_f32_actions_pages_tokens_and_verdicts_are_read(tmp_path: Path, form: str) -> None:
    folder = written(tmp_path / "t1")
    trajectory = load_trajectory(split(folder) if form == "parts" else folder)
    attempt = trajectory.attempt
    assert (trajectory.task.task, attempt.stop_reason, attempt.final_answer) == (
        "Find the cheapest tent",
        "finished",
        "80",
    )
    assert attempt.action_history == ["<page> -> CLICK (10, 20)", "<page> -> TYPE: tent", "<page> -> FINISH"]
    assert attempt.thoughts == ["thought 1", "thought 2", "thought 3"]
    shots = [path.name for path in trajectory.screenshots]
    assert shots == [*(f"screenshot_{number}_pre.png" for number in (1, 2, 3)), "screenshot_3_post.png"]
    assert (attempt.steps_taken, attempt.steps[1].url, attempt.duration_s) == (3, "https://shop.test/2", 2.0)
    assert attempt.claimed_usage is not None
    assert (attempt.claimed_usage.input, attempt.claimed_usage.output) == (150, 15)
    outcomes = {name: verdict.outcome for name, verdict in foreign_verdicts(folder).items()}
    assert outcomes == {"fara-outcome": "failure", "fara-judge": "success", "fara-task": "unscored"}


@pytest.mark.parametrize(
    ("log", "outcome", "cause"),
    [
        ({"status": "complete", "events": events(ended=False), "outcome": {"answer": "I typed."}}, "max_steps", None),
        ({"status": "waiting_for_user", "events": events()}, "participant_error", "nobody answered"),
        ({"status": "running", "events": events()}, "environment_fault", "not 'complete'"),
    ],
)
def test_how_it_ended_follows_from_status_and_last_action(
    tmp_path: Path, log: dict[str, Any], outcome: str, cause: str | None
) -> None:
    attempt = load_trajectory(written(tmp_path / "t1", solver_log=log)).attempt
    assert (attempt.stop_reason, attempt.final_answer) == (outcome, None)
    assert (cause or "") in (attempt.error or "")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"task": {"task_id": "t"}}, r"data_point\.json: task\.instruction"),
        ({"solver_log": {"events": []}}, r"data_point\.json: solver_log\.status"),
        (
            {"solver_log": {"status": "complete", "events": [{"screenshot_path": "../x.png"}]}},
            r"'\.\./x\.png' points outside its folder",
        ),
        (
            {"solver_log": {"status": "complete", "events": [{"screenshot_path": "gone.png"}]}},
            r"gone\.png: no such file",
        ),
    ],
)
def test_a_folder_that_is_almost_one_is_named_with_file_and_key_and_the_rest_is_read(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    broken, _ = written(tmp_path / "run" / "a", **changes), written(tmp_path / "run" / "b")
    assert [folder.name for folder in find_trajectories(tmp_path / "run")] == ["a", "b"]
    with pytest.raises(TrajectoryError, match=problem):
        load_trajectory(broken)
