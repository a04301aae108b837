import json
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JUDGE, a_result, a_step, a_verdict, write_attempt
from judge.records.steps import Navigation, StopReason
from judge.records.tasks import Task
from judge.records.verdicts import VerdictOutcome
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import MAX_THOUGHT_CHARS, Attempt
from shared.errors import TrajectoryError
from shared.models import Action


@pytest.mark.parametrize("verdict", [None, "success", "failure", "unscored"])
@pytest.mark.parametrize("stop", ["max_steps", "task_timeout", "participant_error", "unreadable_replies"])
def test_an_attempt_that_the_participant_did_not_end_is_a_failure(
    stop: StopReason, verdict: VerdictOutcome | None
) -> None:
    assert a_result(stop_reason=stop, verdict=verdict and a_verdict(verdict)).outcome == "failure"


@pytest.mark.parametrize("verdict", [None, "success", "failure", "unscored"])
@pytest.mark.parametrize("stop", ["environment_fault", "cancelled"])
def test_a_fault_around_the_participant_aborts(stop: StopReason, verdict: VerdictOutcome | None) -> None:
    assert a_result(stop_reason=stop, verdict=verdict and a_verdict(verdict)).outcome == "aborted"


@pytest.mark.parametrize("verdict", ["success", "failure", "unscored"])
def test_a_finished_attempt_counts_as_its_verdict(verdict: VerdictOutcome) -> None:
    assert a_result(verdict=a_verdict(verdict)).outcome == verdict


def test_a_finished_attempt_without_a_verdict_is_unscored() -> None:
    assert a_result(verdict=None).outcome == "unscored"


def test_every_stop_reason_has_an_outcome_without_a_verdict_and_none_is_success() -> None:
    assert "success" not in {a_result(stop_reason=stop, verdict=None).outcome for stop in get_args(StopReason)}


def test_result_json_has_every_key_of_the_contract() -> None:
    keys = {"task", "task_id", "action_history", "thoughts", "final_result_response", "schema_version", "website"}
    keys |= {"level", "reference_length", "steps", "stop_reason", "agent_final_answer", "is_aborted", "attempt"}
    keys |= {"verdict", "key_points", "image_judge_record", "token_usage", "cost_usd", "times"}
    assert keys <= set(a_result().to_json())


def test_result_json_records_the_verdict_and_its_judge() -> None:
    value = a_result().to_json()
    assert value["verdict"] == "success"
    assert value["judge"] == JUDGE.model_dump()
    assert value["image_judge_record"] == [{"Response": "Score: 4", "Score": 4}]
    assert value["cost_usd"] == 0.25


def test_a_reason_code_is_written_and_read_back_where_there_is_one() -> None:
    coded = a_result(verdict=a_verdict("failure", reason_code="withheld_evidence"))
    document = coded.to_json()
    assert document["reason_code"] == "withheld_evidence"
    assert Attempt.from_json(document, source="x").verdict == coded.verdict
    plain = a_result(verdict=a_verdict("failure")).to_json()
    assert "reason_code" not in plain
    # The digest covers the evidence, not the verdict.
    assert plain["trajectory_sha256"] == document["trajectory_sha256"]


def test_a_failed_action_leaves_no_line_in_the_history() -> None:
    result = a_result(steps=(a_step(0), a_step(1, line=None)))
    assert result.action_history == ["<Go button> -> CLICK"]


def test_no_answer_is_null_and_an_empty_response_for_the_evaluator() -> None:
    value = a_result().to_json()
    assert value["agent_final_answer"] is None
    assert value["final_result_response"] == ""


def test_no_model_call_costs_nothing_and_an_unknown_price_is_null() -> None:
    assert a_result(stop_reason="max_steps").cost_usd == 0.0
    assert a_result(verdict=a_verdict(cost_usd=None)).cost_usd is None


def test_a_cause_names_who_is_to_blame() -> None:
    result = a_result(stop_reason="participant_error", error="no reply in 120 s", blame="participant")
    assert result.cause == "participant: no reply in 120 s"


def test_an_unscored_task_names_the_judge_model_and_its_reason() -> None:
    assert a_result(verdict=a_verdict("unscored", reason="blocked")).cause == "judge model: blocked"


def test_flags_of_steps_are_gathered_once() -> None:
    result = a_result(steps=(a_step(0, flags=("off_site",)), a_step(1, flags=("off_site", "other"))))
    assert result.flags == ["off_site", "other"]


def test_nan_and_infinities_become_null() -> None:
    action = Action(tool="browser_click", params={"x": float("nan"), "y": [float("inf")]})
    value = a_result(steps=(a_step(0, action=action),)).to_json()
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text)["steps"][0]["action"]["params"] == {"x": None, "y": [None]}


def test_thoughts_are_bounded() -> None:
    assert len(a_result(steps=(a_step(0, thought="x" * 50_000),)).thoughts[0]) == MAX_THOUGHT_CHARS


def test_the_trajectory_reader_understands_it(tmp_path: Path) -> None:
    result = write_attempt(TaskStore(tmp_path), a_result(final_answer="42"))
    trajectory = load_trajectory(tmp_path)
    assert trajectory.task == result.task
    assert trajectory.steps == result.steps
    assert trajectory.final_answer == "42"
    assert trajectory.action_history == tuple(result.action_history)


RESULTS = st.builds(
    lambda stop, verdict, answer, error, points, started, thought: a_result(
        stop_reason=stop,
        verdict=verdict,
        final_answer=answer,
        error=error,
        task=Task(task_id="t", website="w", task="x", key_points=points),
        started_at=started,
        ended_at=started + 1.5,
        steps=(a_step(0, thought=thought),),
        judge_s=0.5,
        participant_s=1.25,
        navigations=(Navigation(url="https://other.example/", is_redirect=True, by="participant"),),
    ),
    st.sampled_from(get_args(StopReason)),
    st.none() | st.builds(a_verdict, st.sampled_from(get_args(VerdictOutcome)), reason=st.text(max_size=9)),
    st.none() | st.text(max_size=20),
    st.none() | st.text(max_size=20),
    st.lists(st.text(max_size=5), max_size=2).map(tuple),
    st.floats(0, 4_000_000_000),
    st.text(max_size=20),
)


@given(RESULTS)
def test_what_is_written_is_read_back(result: Attempt) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    assert Attempt.from_json(json.loads(text), source="result.json") == result


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(st.data())
def test_a_damaged_result_is_read_or_refused_by_name(data: st.DataObject) -> None:
    value = a_result().to_json()
    key = data.draw(st.sampled_from(sorted(value)))
    value[key] = data.draw(JSON)
    try:
        Attempt.from_json(value, source="result.json")
        refusal = "result.json: "
    except TrajectoryError as error:
        refusal = str(error)
    assert refusal.startswith("result.json: ")


@pytest.mark.parametrize("value", [{}, {"schema_version": "online-mind2web-v2"}, {"schema_version": "wabe-1"}])
def test_a_result_of_another_tool_is_refused(value: dict[str, str]) -> None:
    with pytest.raises(TrajectoryError, match=r"^result\.json: "):
        Attempt.from_json(value, source="result.json")


DAMAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([*a_result().to_json(), "times.started_at", "times.judge_s", "times.participant_s"]), DAMAGE)
def test_a_damaged_result_is_refused_in_a_line_or_can_be_written_again(key: str, damage: object) -> None:
    value = json.loads(json.dumps(a_result().to_json()))
    *tables, name = key.split(".")
    (value[tables[0]] if tables else value)[name] = damage
    with suppress(TrajectoryError):
        document = Attempt.from_json(value, source="result.json").to_json()
        assert Attempt.from_json(document, source="result.json").to_json() == document
