"""Categories of failures, from what is recorded."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_result, a_step, a_verdict
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion
from judge.records.findings import ValueFound
from judge.records.steps import Outcome, Step, StopReason
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.results.categories import failure_categories
from judge.trajectory.record import Attempt, Trajectory
from shared.models import Action

SITE = "https://shop.example"


def a_failure(*steps: Step, stop_reason: StopReason = "finished", **changes: Any) -> Attempt:
    changes = {"verdict": a_verdict("failure"), "steps": steps, **changes}
    return a_result("t1", stop_reason, **changes)


def names(attempt: Attempt, verdict: Verdict | None = None) -> list[str]:
    return [finding.category for finding in failure_categories(attempt, verdict)]


def clicks(count: int, **changes: Any) -> list[Step]:
    return [a_step(index, **changes) for index in range(count)]


def rejected(count: int) -> list[Step]:
    return clicks(count, outcome=Outcome(ok=False, message="the element is covered"), line=None)


FINISH = a_step(90, action=Action(tool="finish"), line="<page> -> FINISH")


def test_the_same_action_on_the_same_page_three_times_is_a_loop() -> None:
    steps = clicks(3, snapshot_sha256="aa")
    assert names(a_failure(*steps)) == ["loop"]
    assert (
        failure_categories(a_failure(*steps))[0].evidence == "3 times on the same, unchanged page: <Go button> -> CLICK"
    )
    assert names(a_failure(*steps[:2])) == []


def test_going_round_in_a_circle_is_a_loop() -> None:
    pages = ("aa", "bb", "aa", "bb", "aa")
    steps = [a_step(n, snapshot_sha256=page, line=f"<To {page} link> -> CLICK") for n, page in enumerate(pages)]
    assert names(a_failure(*steps)) == ["loop"]


def test_the_same_action_on_a_page_that_changes_is_a_loop_from_the_fifth_in_a_row() -> None:
    steps = [a_step(n, snapshot_sha256=str(n)) for n in range(5)]
    assert names(a_failure(*steps)) == ["loop"]
    assert names(a_failure(*steps[:4])) == []
    other = a_step(2, line="<Other link> -> CLICK")
    assert names(a_failure(*steps[:2], other, *steps[2:])) == []


def test_an_attempt_that_ran_out_of_steps_or_time_is_over_budget() -> None:
    assert names(a_failure(a_step(0), stop_reason="max_steps", verdict=None)) == ["over_budget"]
    assert names(a_failure(a_step(0), stop_reason="task_timeout", verdict=None)) == ["over_budget"]


@pytest.mark.parametrize(
    ("reference", "executed", "expected"),
    [(4, 3, ["gave_up_early"]), (4, 4, []), (None, 0, ["gave_up_early"]), (None, 1, [])],
)
def test_fewer_actions_than_a_human_needs_is_giving_up_early(
    reference: int | None, executed: int, expected: list[str]
) -> None:
    task = Task(task_id="t1", website=SITE, task="Buy it.", reference_length=reference)
    steps = [a_step(n, line=f"<Button {n} button> -> CLICK") for n in range(executed)]
    assert names(a_failure(*steps, FINISH, task=task)) == expected


def test_who_was_stopped_did_not_give_up() -> None:
    task = Task(task_id="t1", website=SITE, task="Buy it.", reference_length=9)
    assert names(a_failure(a_step(0), task=task, stop_reason="participant_error", verdict=None)) == []


def test_a_flagged_step_is_off_site_with_its_address() -> None:
    step = a_step(0, flags=("off_site",), url="https://other.example/")
    assert failure_categories(a_failure(step)) == (("off_site", "step 1: https://other.example/"),)


def test_a_bot_wall_is_blocked_also_where_it_aborted_the_attempt() -> None:
    assert names(a_failure(a_step(0, flags=("site_blocked",)))) == ["blocked"]
    assert names(a_failure(stop_reason="site_blocked", error="a wall", blame="site", verdict=None)) == ["blocked"]


def test_an_address_that_an_action_led_to_and_the_judge_refused_is_blocked() -> None:
    refused: dict[str, Any] = {"flags": ("blocked_address",), "refused": ("10.0.0.1:80",)}
    went = a_step(0, outcome=Outcome(ok=False, message="refused"), **refused)
    assert failure_categories(a_failure(went, a_step(1))) == (("blocked", "step 1: refused 10.0.0.1:80"),)
    # A page that asks for such an address on its own says nothing about the failure.
    assert names(a_failure(a_step(0, **refused))) == []


def test_three_and_a_third_of_all_replies_are_rejected_actions() -> None:
    differing = [a_step(n, line=f"<Button {n} button> -> CLICK") for n in range(7)]
    steps = [step.model_copy(update={"url": f"{SITE}/{n}"}) for n, step in enumerate(rejected(3))]
    assert names(a_failure(*steps, *differing[:6])) == ["rejected_actions"]
    assert names(a_failure(*steps, *differing)) == []
    assert names(a_failure(*steps[:2], *differing[:1])) == []
    assert names(a_failure(steps[0], stop_reason="unreadable_replies", verdict=None)) == ["rejected_actions"]


@pytest.mark.parametrize("stop_reason", ["environment_fault", "cancelled"])
def test_what_was_aborted_for_another_reason_has_no_category(stop_reason: StopReason) -> None:
    assert names(a_failure(*clicks(9, snapshot_sha256="aa"), stop_reason=stop_reason, verdict=None)) == []


@pytest.mark.parametrize("verdict", [a_verdict("success"), a_verdict("unscored"), None])
def test_a_success_and_an_unscored_attempt_have_no_category(verdict: Verdict | None) -> None:
    looping = clicks(9, snapshot_sha256="aa", flags=("off_site",))
    assert names(a_failure(*looping, verdict=verdict)) == []


def judged(tmp_path: Path, check: dict[str, Any], snapshot: str, url: str = f"{SITE}/search?colour=Blue") -> list[str]:
    """The categories of an attempt whose only page is this one, judged by the real evaluator."""
    (tmp_path / "page.yaml").write_text(snapshot)
    task = Task.model_validate({"task_id": "t1", "website": SITE, "task": "Find it.", "checks": [check]})
    steps = (a_step(0, url=url, origin=SITE, snapshot="page.yaml", screenshot=None, line="<Blue checkbox> -> CLICK"),)
    (assertion,) = evaluate(Trajectory(folder=tmp_path, attempt=a_result(task=task, steps=steps)))
    assert assertion.passed is False
    verdict = a_verdict("failure", evidence={"checks": [json.loads(assertion.model_dump_json())]})
    return names(a_failure(*steps, task=task, verdict=verdict), verdict)


CONTROLS = (
    '- group "Colour":\n  - checkbox "Red"\n  - checkbox "Blue" [checked]\n- combobox "Sort": Rating\n- text: €5 €4\n'
)


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "page", "url": "/search?colour=Red"},
        {"kind": "element", "element": 'checkbox "Red" [checked]'},
        {"kind": "element", "element": 'checkbox "Blue" [checked]', "not": True},
        {"kind": "element", "element": 'combobox "Sort": Price'},
        {"kind": "text", "pattern": r"€(\d+)", "sorted": "ascending"},
        {"any_of": [{"kind": "page", "url": "/red"}, {"kind": "page", "url": "/search?colour=Red"}]},
    ],
)
def test_a_failed_check_on_a_query_a_control_or_an_order_is_a_wrong_filter(
    tmp_path: Path, check: dict[str, Any]
) -> None:
    assert judged(tmp_path, check, CONTROLS) == ["wrong_filter"]


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "page", "url": "/cart?colour=Red"},
        {"kind": "page", "url": "/cart"},
        {"kind": "element", "element": 'radio "Red" [checked]'},
        {"kind": "element", "element": 'checkbox "Red" [checked]', "within": 'group "Size"'},
        {"kind": "element", "element": 'status "Done"'},
        {"kind": "text", "pattern": r"£(\d+)", "sorted": "ascending"},
        {"kind": "text", "pattern": r"€(\d+)", "max": 1},
        {"kind": "answer", "contains": "Red"},
    ],
)
def test_a_page_or_a_control_that_was_never_reached_is_not_a_wrong_filter(
    tmp_path: Path, check: dict[str, Any]
) -> None:
    assert judged(tmp_path, check, CONTROLS) == []


def test_a_request_with_another_query_is_a_wrong_filter() -> None:
    check = {"kind": "request", "url": "/api", "query": {"colour": "Red"}}
    task = Task.model_validate({"task_id": "t1", "website": SITE, "task": "Find it.", "checks": [check]})
    facts = (ValueFound.of("query", "colour", ["Blue"]),)
    assertion = Assertion(check="check 1", description="", passed=False, expected="", found="x", facts=facts)
    verdict = a_verdict("failure", evidence={"checks": [json.loads(assertion.model_dump_json())]})
    assert names(a_failure(task=task, verdict=verdict), verdict)[0] == "wrong_filter"


TEXTS = st.sampled_from(["", "a", "https://shop.example/search?x=1", "http://[", "\ud800", "checkbox"]) | st.text(
    max_size=20
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CHECKS = [
    {"kind": "page", "url": "*?x=1"},
    {"kind": "element", "element": ['checkbox "Red" [checked]', 'link "x"']},
    {"kind": "text", "pattern": r"(\d)", "sorted": "ascending"},
]
PASSED = st.sampled_from([True, False, None])
ASSERTIONS = st.fixed_dictionaries(
    {"check": TEXTS, "description": TEXTS, "passed": PASSED, "expected": TEXTS, "found": TEXTS}
)
STEPS = st.builds(
    Step,
    index=st.integers(0, 3),
    url=TEXTS,
    title=st.just(""),
    snapshot_sha256=st.sampled_from([None, "aa"]),
    action=st.none() | st.builds(Action, tool=TEXTS, params=st.dictionaries(TEXTS, JSON, max_size=2)),
    outcome=st.none() | st.builds(Outcome, ok=st.booleans(), message=TEXTS, line=st.none() | TEXTS),
    flags=st.lists(st.sampled_from(["off_site", "site_blocked", "blocked_address"]), max_size=2).map(tuple),
    refused=st.lists(TEXTS, max_size=2).map(tuple),
)


@given(
    steps=st.lists(STEPS, max_size=8),
    stop_reason=st.sampled_from(["finished", "max_steps", "site_blocked", "unreadable_replies", "cancelled"]),
    outcome=st.sampled_from(["success", "failure", "unscored"]),
    checks=st.lists(ASSERTIONS, min_size=3, max_size=3) | st.lists(ASSERTIONS | JSON, min_size=3, max_size=3) | JSON,
    website=TEXTS,
)
def test_whatever_is_recorded_gives_bounded_categories_and_a_success_none(
    steps: Sequence[Step], stop_reason: StopReason, outcome: str, checks: Any, website: str
) -> None:
    task = Task.model_validate({"task_id": "t1", "website": website, "task": "Find it.", "checks": CHECKS})
    verdict = a_verdict(outcome, evidence={"checks": checks})
    attempt = a_failure(*steps, task=task, stop_reason=stop_reason, verdict=verdict)
    result = failure_categories(attempt, verdict)
    assert all(finding.evidence and len(finding.evidence) <= 300 for finding in result)
    if attempt.outcome in ("success", "unscored"):
        assert result == ()
