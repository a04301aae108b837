"""What webeval's verifier says beyond success and failure, read and written again key by key."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.scripted import ScriptedModel, parts_for, rubric_script, trajectory
from judge.judges.rubric import RubricJudge
from judge.plugins.webeval.layout import export
from judge.plugins.webeval.scores import rubric_score, rubric_verdict, score_texts
from judge.records.verdicts import Verdict
from judge.results.progress import score_of
from judge.trajectory.files import foreign_verdicts, load_trajectory
from judge.trajectory.foreign_verdicts import evaluator_named
from plugins.webeval.folders import ACTIONS, structured, write_score, write_webeval

INFO = evaluator_named("webeval mmrubric_0.7-4-2")
PAYLOAD: dict[str, Any] = {
    "rubric_items": [
        {
            "criterion": "Find it",
            "description": "The cheapest",
            "max_points": 4,
            "earned_points": 3.5,
            "justification": "nearly",
        },
        {
            "criterion": "Say so",
            "description": "",
            "max_points": 2,
            "earned_points": 0.0,
            "justification": "",
            "condition": "it is sold out",
            "is_condition_met": False,
        },
    ],
    "rubric_total_max_points": 4.0,
    "rubric_total_earned_points": 3.5,
    "rubric_is_success": 1,
    "is_success": False,
    "success_criterion": "both",
    "final_answer": "80 euros",
    "outcome_success": False,
    "outcome_reasoning": "Another tent.",
    "outcome_primary_intent": "The cheapest tent",
    "rubric_all_scores_list": [0.875, 0.5],
    "rubric_majority_vote_metadata": {
        "n_instances": 2,
        "median_instance_idx": 0,
        "all_scores": [0.875, 0.5],
        "median_score": 0.875,
        "outcome_votes": [False, True],
        "majority_output_success": False,
    },
    "rubric_all_rubric_dicts": [{"a": 1}],
    "rubric_intermediate_mm_rubric_steps": {"step": "x"},
    "rubric_outcome_verification": {"y": [1, 2]},
    "error_taxonomy": {
        "first_point_of_failure": {"has_failure": True, "first_failure_step": 2},
        "task_verification_with_trajectory": None,
        "task_verification": {
            "is_ambiguous": True,
            "ambiguity_codes": ["7.1"],
            "is_invalid": False,
            "invalid_task_codes": [],
        },
    },
}


def read(payload: dict[str, Any], score: int = 0) -> Verdict:
    return rubric_verdict(json.dumps(payload), is_success=score == 1, info=INFO, name="mmrubric_0.7-4-2")


def test_a_verdict_of_the_verifier_is_written_again_key_by_key() -> None:
    score = json.loads(rubric_score(read(PAYLOAD), "80 euros"))
    written = json.loads(score["gpt_response_text"])
    assert score["score"] == 0
    assert {key: written.get(key) for key in PAYLOAD} == PAYLOAD
    assert written.keys() == PAYLOAD.keys()


@pytest.mark.parametrize("mode", ["outcome", "process", "both"])
def test_f17_the_mode_is_read_recorded_and_written(mode: str) -> None:
    verdict = read({**PAYLOAD, "success_criterion": mode})
    rubric = verdict.evidence["rubric"]
    assert (rubric["success"], rubric["outcome_success"], rubric["process_success"]) == (mode, False, True)
    assert json.loads(json.loads(rubric_score(verdict, ""))["gpt_response_text"])["success_criterion"] == mode


def test_f18_the_numbers_of_the_verifier_stand_in_the_files_name() -> None:
    (name,) = score_texts({}, read(PAYLOAD), "", names=())
    assert name == "scores/mmrubric_0.7-4-2.json"


def test_f19_points_of_a_criterion_are_read_and_written() -> None:
    verdict = read(PAYLOAD)
    first, _ = verdict.evidence["rubric"]["marks"]
    assert (first["verdict"], first["points"], score_of(verdict)) == ("not met", 3.5, 0.875)


def test_f20_a_criterion_whose_condition_does_not_hold_is_kept_and_does_not_count() -> None:
    payload = {key: value for key, value in PAYLOAD.items() if "total" not in key}
    verdict = read({**payload, "rubric_items": [*payload["rubric_items"], {"criterion": "Odd", "max_points": "many"}]})
    assert verdict.evidence["rubric"]["marks"][1]["verdict"] == "inapplicable"
    assert verdict.evidence["rubric"]["criteria"][1]["condition"] == "it is sold out"
    assert verdict.key_points == ("Find it",)
    assert score_of(verdict) == 0.875


@pytest.mark.parametrize("place", ["payload", "task_verification", "task_verification_with_trajectory"])
def test_f22_an_invalid_task_is_unscored_with_its_code(place: str) -> None:
    found = {"is_invalid": True, "invalid_task_codes": ["8.2"]}
    payload = {**PAYLOAD, **found} if place == "payload" else {**PAYLOAD, "error_taxonomy": {place: found}}
    verdict = read(payload, score=1)
    assert (verdict.outcome, verdict.reason_code) == ("unscored", "invalid_task")
    assert verdict.reason.startswith("the task is invalid (8.2)")


async def test_what_the_rubric_method_decided_is_read_back_from_its_export(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "rubric_success": "both",
        "rubric_threshold": 0.5,
        "judge_votes": 3,
        "max_images_per_criterion": 7,
    }
    model = ScriptedModel(rubric_script(statuses=("success", "failure", "success")))
    own = await RubricJudge(parts_for(model, **settings)).judge(trajectory(tmp_path / "own"))
    texts = score_texts({}, own, "42", names=())
    assert list(texts) == ["scores/mmrubric_0.5-7-3.json"]
    folder = write_webeval(tmp_path / "traj")
    score = json.loads(texts["scores/mmrubric_0.5-7-3.json"])
    write_score(folder, "mmrubric_0.5-7-3", score["score"], score["gpt_response_text"])
    (verdict,) = foreign_verdicts(folder).values()
    assert (verdict.outcome, verdict.key_points, score_of(verdict)) == (own.outcome, own.key_points, score_of(own))
    before, after = own.evidence["rubric"], verdict.evidence["rubric"]
    same = ("success", "threshold", "max_images_per_criterion", "score_threshold", "primary_intent", "process_success")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    votes = [
        [{key: vote[key] for key in ("process_score", "outcome_success")} for vote in rubric["votes"]]
        for rubric in (before, after)
    ]
    assert votes[0] == votes[1]


def test_f7_a_log_without_actions_is_a_failure_without_a_judge(tmp_path: Path) -> None:
    trajectory = load_trajectory(write_webeval(tmp_path / "t", log=[]))
    attempt = trajectory.attempt
    assert (attempt.outcome, attempt.cause) == ("failure", "participant: no action in the trajectory")
    assert (attempt.steps_taken, attempt.max_steps) == (0, 1)
    # Written again, it has all its screenshots.
    assert len(export(trajectory, {}).screenshots) == len(trajectory.screenshots) == 5


@pytest.mark.parametrize(
    ("path", "cause"), [("WebTailBench_hf/0/traj/t", 'the last action must be "terminate"'), ("t", None)]
)
def test_f8_an_attempt_at_webtailbench_ends_with_terminate(tmp_path: Path, path: str, cause: str | None) -> None:
    events = [structured(number, action) for number, action in enumerate(ACTIONS[:-1], 1)]
    attempt = load_trajectory(write_webeval(tmp_path / path, log=events)).attempt
    assert attempt.error == cause


def test_f5_events_of_older_logs_are_thoughts_and_tokens(tmp_path: Path) -> None:
    action = structured(1, ACTIONS[0])
    del action["arguments"]["thoughts"]
    log = [
        {"type": "OrchestrationEvent", "source": "Orchestrator", "message": "Open the shop first.", "timestamp": "t"},
        {"type": "AgentEvent", "source": "Coder", "message": "Yes.", "timestamp": "t"},
        {"type": "LLMCallEvent", "prompt_tokens": 70, "completion_tokens": 7, "timestamp": "t"},
        action,
        {"type": "LLMCallEvent", "prompt_tokens": 30, "completion_tokens": 3, "timestamp": "t"},
        structured(4, ACTIONS[3]),
    ]
    attempt = load_trajectory(write_webeval(tmp_path / "t", log=log, answer={"token_usage": {}})).attempt
    assert attempt.thoughts[0] == "Open the shop first.\nYes."
    assert attempt.claimed_usage is not None
    assert (attempt.claimed_usage.input, attempt.claimed_usage.output) == (100, 10)
    assert len(attempt.action_history) == 2


def test_f26_the_evaluation_stands_in_core_log(tmp_path: Path) -> None:
    recorded = trajectory(tmp_path / "own")
    log = export(recorded, {}, Verdict(outcome="success", reason="r")).texts["core.log"]
    lines = [line.partition("[INFO] wabe - ")[2] for line in log.splitlines() if "[Evaluation" in line]
    assert lines == ["[Evaluation t1] Start", "[Evaluation t1] Completed: score=1, duration=0.0"]
    assert "[Evaluation" not in export(recorded, {}, None).texts["core.log"]
