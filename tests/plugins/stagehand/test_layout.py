"""The folders that Stagehand's evaluations keep for their verifier."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.results import JPEG
from judge.results.progress import score_of
from judge.trajectory.files import foreign_verdicts, load_trajectory
from shared.errors import TrajectoryError

RESULT: dict[str, Any] = {
    "outcomeSuccess": True,
    "processScore": 0.75,
    "perCriterion": [
        {"criterion": "Find it", "maxPoints": 4, "earnedPoints": 3, "justification": "nearly"},
        {"criterion": "Say so", "maxPoints": 2, "earnedPoints": None, "justification": "not sold out"},
    ],
    "taskValidity": {"isAmbiguous": False, "isInvalid": False},
    "rawSteps": {"reasoning": "It is there."},
}


def step(name: str, number: int, **changes: Any) -> dict[str, Any]:
    page = {"url": f"https://shop.test/{number}", "screenshotPath": f"screenshots/probe/{number}.png"}
    return {
        "actionName": name,
        "actionArgs": {"target": "the box"},
        "reasoning": f"thought {number}",
        "agentEvidence": {"modalities": []},
        "probeEvidence": page,
        "toolOutput": {"ok": True, "result": None},
        "startedAt": f"2026-01-01T00:00:0{number}Z",
        "finishedAt": f"2026-01-01T00:00:0{number}Z",
        **changes,
    }


def written(folder: Path, *, scores: dict[str, Any] | None = None, **changes: Any) -> Path:
    (folder / "screenshots" / "probe").mkdir(parents=True)
    for name in ("1", "2", "final"):
        (folder / "screenshots" / "probe" / f"{name}.png").write_bytes(JPEG + name.encode())
    rubric = {"items": [{"criterion": "Find it", "description": "", "maxPoints": 4, "condition": "it exists"}]}
    document = {
        "task": {"id": "shop_1", "instruction": "Buy", "initUrl": "https://shop.test/", "precomputedRubric": rubric},
        "steps": [step("act", 1), step("goto", 2, toolOutput={"ok": False, "error": "timed out"})],
        "finalAnswer": "done",
        "finalObservation": {"url": "https://shop.test/end", "screenshotPath": "screenshots/probe/final.png"},
        "status": "complete",
        "usage": {"input_tokens": 30, "output_tokens": 3},
    }
    (folder / "trajectory.json").write_text(json.dumps({**document, **changes}))
    (folder / "scores").mkdir()
    for name, value in (scores or {}).items():
        (folder / "scores" / f"{name}.json").write_text(json.dumps(value))
    return folder


def test_a_step_has_the_page_that_the_step_before_it_led_to(tmp_path: Path) -> None:
    trajectory = load_trajectory(written(tmp_path / "run-1"))
    attempt = trajectory.attempt
    assert (trajectory.task.task_id, trajectory.task.website) == ("shop_1", "https://shop.test/")
    assert [(each.url, each.screenshot and Path(each.screenshot).stem) for each in attempt.steps] == [
        ("https://shop.test/", None),
        ("https://shop.test/1", "1"),
        ("https://shop.test/end", "final"),
    ]
    # What failed was not carried out.
    assert attempt.action_history == ['<page> -> ACT: {"target": "the box"}']
    assert attempt.steps[1].outcome is not None
    assert attempt.steps[1].outcome.message == "timed out"
    assert (attempt.final_answer, attempt.steps_taken, attempt.duration_s) == ("done", 2, 1.0)
    assert attempt.claimed_usage is not None
    assert attempt.claimed_usage.input == 30
    (point,) = trajectory.task.key_points
    assert point.model_dump() == {"text": "Find it", "weight": 4.0, "condition": "it exists"}  # type: ignore[union-attr]


def test_the_verifiers_result_is_a_verdict_with_its_points(tmp_path: Path) -> None:
    (verdict,) = foreign_verdicts(written(tmp_path / "t", scores={"result": RESULT})).values()
    assert (verdict.outcome, verdict.reason, score_of(verdict)) == ("success", "It is there.", 0.75)


def test_an_invalid_task_is_unscored_with_its_code(tmp_path: Path) -> None:
    result = {**RESULT, "taskValidity": {"isInvalid": True, "invalidTaskCodes": ["8.1"]}}
    (verdict,) = foreign_verdicts(written(tmp_path / "t", scores={"result": result})).values()
    assert (verdict.outcome, verdict.reason_code, verdict.reason) == (
        "unscored",
        "invalid_task",
        "the task is invalid (8.1): It is there.",
    )


@pytest.mark.parametrize(
    ("status", "stop_reason"),
    [
        ("complete", "finished"),
        ("stalled", "participant_error"),
        ("aborted", "environment_fault"),
        ("new", "environment_fault"),
    ],
)
def test_the_status_says_how_it_ended(tmp_path: Path, status: str, stop_reason: str) -> None:
    assert load_trajectory(written(tmp_path / "t", status=status)).stop_reason == stop_reason


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"steps": [{"actionArgs": {}}]}, r"trajectory\.json: steps\.0\.actionName"),
        ({"finalObservation": {"screenshotPath": "../x.png"}}, "points outside its folder"),
    ],
)
def test_a_folder_that_is_almost_one_is_named_with_file_and_key(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TrajectoryError, match=problem):
        load_trajectory(written(tmp_path / "t", **changes))


def test_a_result_without_an_outcome_is_unscored(tmp_path: Path) -> None:
    (verdict,) = foreign_verdicts(written(tmp_path / "t", scores={"result": {}})).values()
    assert verdict.outcome == "unscored"
    assert "result.json: key 'outcomeSuccess' is missing" in verdict.reason
