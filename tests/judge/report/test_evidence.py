"""A verdict's evidence as views."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_verdict
from judge.records.tasks import Task
from judge.report.evidence import PointView, points_of, stages_of, verdict_view

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def test_the_question_that_decided_comes_first_and_the_others_are_folded_by_stage() -> None:
    rated = {"stage": "image", "prompt": "Rate it.", "reply": "Score: 4"}
    calls = [{"stage": "key_points", "prompt": "List."}, rated, rated, {"stage": "outcome", "prompt": "Decide."}]
    stages = stages_of({"key_points": [{"key_point": "one"}], "calls": calls})
    assert [stage.title for stage in stages] == [
        "outcome: what decided",
        "key points (1)",
        "key points: 1 question",
        "image: 2 questions",
    ]
    assert stages[0].pieces[0].parts[1:] == (("prompt", "Decide."),)
    assert [piece.title for piece in stages[-1].pieces] == ["question 1 · image", "question 2 · image"]
    assert stages[-1].pieces[1].parts[1:] == (("prompt", "Rate it."), ("reply", "Score: 4"))


def test_evidence_is_bounded_and_says_what_is_left_out() -> None:
    calls = [{"stage": "image", "prompt": str(number)} for number in range(600)]
    first, second, left = stages_of({"calls": [*calls, {"stage": "outcome"}]})
    assert (len(first.pieces), len(second.pieces), left.title) == (1, 499, "101 more pieces left out")


def test_calls_without_stages_are_listed_as_they_are() -> None:
    (stage,) = stages_of({"calls": [{"reply": "one"}, {"reply": "two"}]})
    assert (stage.title, [piece.title for piece in stage.pieces]) == ("calls (2)", ["calls 1", "calls 2"])


def test_what_was_withheld_is_a_piece_of_its_own_and_its_code_a_note() -> None:
    withheld = [{"question": "outcome", "step": "text", "actions": [1]}]
    verdict = a_verdict("failure", reason_code="withheld_evidence", evidence={"withheld": withheld})
    view = verdict_view("webjudge-1", verdict, counts=True)
    assert view.notes == ("reason code: withheld_evidence, see the evidence",)
    assert dict(view.evidence[0].pieces[0].parts)["step"] == "text"


def test_plain_values_share_one_piece() -> None:
    (stage,) = stages_of({"baseline": "a note", "count": 3})
    assert stage.pieces[0].parts == (("baseline", "a note"), ("count", "3"))


def test_a_key_point_carries_the_status_that_the_judge_gave_it() -> None:
    evidence = {"key_points": [{"key_point": "one", "status": "failure", "reason": "no"}]}
    assert points_of(a_verdict(key_points=("one",), evidence=evidence)) == (PointView("one", False, "no"),)


def test_a_failed_check_shows_what_was_expected_and_what_was_found_instead() -> None:
    check = {"description": "one", "passed": False, "expected": 'button "Buy"', "found": "no button at all"}
    (point,) = points_of(a_verdict(key_points=("one",), evidence={"checks": [check]}))
    assert point == PointView("one", False, 'Expected: button "Buy"\nFound: no button at all')


def test_two_checks_with_one_description_keep_their_own_results() -> None:
    checks = [{"description": "one", "passed": passed, "found": ""} for passed in (True, False)]
    points = points_of(a_verdict(key_points=("one", "one"), evidence={"checks": checks}))
    assert [point.met for point in points] == [True, False]


PAGE: dict[str, Any] = {"kind": "page", "url": "/a"}


@pytest.mark.parametrize(
    ("check", "result", "steps"),
    [
        # What a look shows is the effect of the action before it.
        (PAGE, {"passed": True, "step": 2}, (2, None, False)),
        (PAGE, {"passed": True, "step": 0}, (None, None, False)),
        ({"kind": "action", "line": "<a b> -> CLICK"}, {"passed": True, "step": 2}, (3, None, False)),
        ({"any_of": [PAGE, {"kind": "answer", "contains": "a"}]}, {"passed": True, "step": 2}, (2, None, False)),
        (PAGE, {"passed": False, "step": 1, "last_step": 2}, (None, 3, True)),
        (PAGE, {"passed": False, "near_step": 0}, (None, 1, False)),
        (PAGE, {"passed": False}, (None, None, False)),
        (PAGE, {"passed": None, "last_step": 1}, (None, None, False)),
        (PAGE, {"passed": False, "last_step": "1", "near_step": True}, (None, None, False)),
    ],
)
def test_a_check_names_the_step_that_met_it_or_at_which_it_went_wrong(
    check: dict[str, Any], result: dict[str, Any], steps: tuple[int | None, int | None, bool]
) -> None:
    checks = Task.model_validate({"task_id": "t", "website": "http://a.test/", "task": "t", "checks": [check]}).checks
    verdict = a_verdict(evidence={"checks": [{"description": "one", "found": "", **result}]})
    (point,) = points_of(verdict, checks)
    assert (point.helped, point.wrong, point.held) == steps


@pytest.mark.parametrize("passed", [True, False, None])
def test_a_check_has_its_result_and_its_finding(passed: bool | None) -> None:
    evidence = {"checks": [{"check": "check 1", "description": "one", "passed": passed, "found": "heading"}]}
    assert points_of(a_verdict(key_points=("one",), evidence=evidence)) == (PointView("one", passed, "heading"),)


def test_a_rubric_marks_its_criteria() -> None:
    rubric = {
        "criteria": [{"id": "c1", "kind": "outcome", "requirement": "one"}],
        "marks": [{"criterion": "c1", "verdict": "not_met", "reason": "no"}],
    }
    assert points_of(a_verdict(key_points=("one",), evidence={"rubric": rubric})) == (PointView("one", False, "no"),)


def test_a_key_point_without_its_own_judgement_is_neither_met_nor_failed() -> None:
    (point,) = points_of(a_verdict(key_points=("one",), evidence={"calls": [{"reply": "one is met"}]}))
    assert point.met is None


def test_an_unknown_mark_is_not_mistaken_for_success() -> None:
    evidence = {"key_points": [{"key_point": "one", "status": "perhaps"}]}
    assert points_of(a_verdict(key_points=("one",), evidence=evidence))[0].met is None


def test_where_it_went_wrong_and_what_obstacles_there_were_is_shown() -> None:
    failure = {"action": 2, "criterion": "c1", "why": "the wrong lamp was chosen"}
    blockers = [{"kind": "cookie banner", "avoidable": True, "seen": "it covers the list"}]
    evidence = {"rubric": {"first_failure": failure, "blockers": blockers}}
    view = verdict_view("rubric-1", a_verdict(evidence=evidence), counts=True)
    assert view.wrong_action == 2
    assert view.notes == (
        "Where it went wrong: the wrong lamp was chosen",
        "Obstacle (avoidable): cookie banner. it covers the list",
    )


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_evidence_of_any_shape_can_be_shown(evidence: dict[str, Any]) -> None:
    for piece in (piece for stage in stages_of(evidence) for piece in stage.pieces):
        assert all(isinstance(text, str) for part in piece.parts for text in part)
    verdict_view("m-1", a_verdict(evidence=evidence | {"rubric": evidence}), counts=True)
