"""The rubric verdict as webeval's verifier writes it, and its score files read."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.results import JUDGE, a_result, a_verdict, write_attempt
from judge.judges.rubric import Criterion
from judge.plugins.webeval.layout import export
from judge.records.verdicts import Verdict
from judge.results.progress import score_of
from judge.store.layout import TaskStore
from judge.trajectory.files import foreign_verdicts, load_trajectory
from plugins.webeval.folders import write_score, write_webeval

NAME = "scores/mmrubric_0.8-5-3.json"


def by_rubric(outcome: str, *marks: tuple[str, float], failure: dict[str, Any] | None = None) -> Verdict:
    criteria = [
        Criterion(id=f"c{number}", requirement=f"point {number}", weight=weight).model_dump()
        for number, (_, weight) in enumerate(marks, 1)
    ]
    results = [
        {"criterion": f"c{number}", "verdict": verdict, "reason": f"reason {number}"}
        for number, (verdict, _) in enumerate(marks, 1)
    ]
    judge = JUDGE.model_copy(update={"method": "rubric"})
    evidence = {"rubric": {"criteria": criteria, "marks": results, "first_failure": failure, "blockers": []}}
    return a_verdict(outcome, judge=judge, key_points=tuple(c["requirement"] for c in criteria), evidence=evidence)


def write_scores(folder: Path, verdict: Verdict | None, others: dict[str, Verdict] | None = None) -> dict[str, str]:
    write_attempt(TaskStore(folder / "run"), a_result(verdict=verdict))
    return export(load_trajectory(folder / "run"), others or {}, verdict).texts


def test_a_rubric_verdict_is_the_verifiers_payload(tmp_path: Path) -> None:
    failure = {"action": 3, "criterion": "c2", "why": "It took the wrong lamp."}
    texts = write_scores(tmp_path, by_rubric("failure", ("met", 3), ("not met", 1), failure=failure))
    assert [name for name in texts if name.startswith("scores/")] == [NAME]
    score = json.loads(texts[NAME])
    assert score["score"] == 0
    payload = json.loads(score["gpt_response_text"])
    assert (payload["is_success"], payload["outcome_success"], payload["rubric_is_success"]) == (False, False, 0)
    assert (payload["rubric_total_max_points"], payload["rubric_total_earned_points"]) == (4, 3)
    assert payload["rubric_items"][0] == {
        "criterion": "point 1",
        "description": "",
        "max_points": 3,
        "earned_points": 3,
        "justification": "reason 1",
    }
    first = payload["error_taxonomy"]["first_point_of_failure"]
    assert (first["has_failure"], first["first_failure_step"]) == (True, 3)
    assert payload["error_taxonomy"]["task_verification"] is None


@pytest.mark.parametrize(
    ("marks", "is_success"), [([("met", 4), ("not met", 1)], 1), ([("met", 3.9), ("blocked", 1)], 0)]
)
def test_the_rubric_succeeds_from_four_fifths_of_the_points(
    tmp_path: Path, marks: list[tuple[str, float]], is_success: int
) -> None:
    score = json.loads(write_scores(tmp_path, by_rubric("success", *marks))[NAME])
    assert score["score"] == 1
    assert json.loads(score["gpt_response_text"])["rubric_is_success"] == is_success


@pytest.mark.parametrize("text", ["not JSON", "[]", '{"rubric_items": 3}', '{"rubric_items": [{"max_points": 1e999}]}'])
def test_an_odd_payload_is_still_the_verdict_that_its_score_says(tmp_path: Path, text: str) -> None:
    folder = write_webeval(tmp_path / "traj")
    write_score(folder, Path(NAME).stem, 1, text)
    (verdict,) = foreign_verdicts(folder).values()
    assert verdict.outcome == "success"
    assert score_of(verdict) is None


def test_other_methods_keep_their_score_files_beside_it(tmp_path: Path) -> None:
    rubric = by_rubric("success", ("met", 1))
    texts = write_scores(tmp_path, a_verdict("failure"), {"webjudge-1": a_verdict("failure"), "rubric-1": rubric})
    assert {name for name in texts if name.startswith("scores/")} == {
        NAME,
        "scores/WebJudge_Online_Mind2Web_eval-3.json",
    }
