"""Events and the prose in which they cross A2A."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.events import (
    Event,
    RunDone,
    RunStarted,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
    describe,
    parse,
)
from shared.text import one_line

EVENTS: list[Event] = [
    RunStarted(run_id="20260101-000000-ab", total=12),
    RunStarted(run_id="r", total=12, kept=3),
    TaskStarted(task_id="t1", attempt=1, max_steps=15),
    StepDone(task_id="t1", step=2, max_steps=15, action='<Search textbox> -> TYPE: lamp: "x"'),
    TaskRetried(task_id="t1", attempt=1, cause="browser: gone"),
    TaskJudging(task_id="t1", steps=4),
    TaskDone(task_id="t1", outcome="unscored", steps=4, reason="the model did not answer"),
    RunDone(successes=3, scored=10, total=12),
    RunStarted(run_id="r", total=12, kept=3, epochs=2),
    TaskStarted(task_id="t1", epoch=2, attempt=1, max_steps=15),
    StepDone(task_id="t1", epoch=2, step=2, max_steps=15, action="epoch 3, step 1 of 1: x"),
    TaskRetried(task_id="t1", epoch=2, attempt=1, cause="browser: gone"),
    TaskJudging(task_id="t1", epoch=2, steps=4),
    TaskDone(task_id="t1", epoch=2, outcome="unscored", steps=4, reason="the model did not answer"),
    RunDone(successes=3, scored=10, total=24, epochs=2),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_described_can_be_read_back(event: Event) -> None:
    assert parse(describe(event)) == event


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (RunStarted(run_id="r", total=1), "Assessment r: 1 task."),
        (TaskStarted(task_id="t", attempt=1, max_steps=1), "Task t, attempt 1: started, up to 1 step."),
        (TaskJudging(task_id="t", steps=1), "Task t: 1 step done, judging."),
        (TaskDone(task_id="t", outcome="success", steps=1, reason="r"), "Task t: success after 1 step: r"),
        (RunDone(successes=1, scored=1, total=1), "Done: 1 of 1 scored task succeeded, 1 in all."),
    ],
)
def test_one_of_a_kind_is_not_a_plural(event: Event, line: str) -> None:
    assert describe(event) == line
    assert parse(line) == event


@given(action=st.text())
def test_no_action_text_breaks_out_of_its_line_or_becomes_json(action: str) -> None:
    line = describe(StepDone(task_id="t", step=1, max_steps=2, action=action))
    assert len(line.splitlines()) == 1
    with pytest.raises(ValueError):
        json.loads(line)


@given(text=st.text())
def test_parsing_any_text_never_fails(text: str) -> None:
    event = parse(text)
    assert event is None or describe(event)


@given(text=st.text())
def test_one_line_is_one_line_and_bounded(text: str) -> None:
    line = one_line(text, 20)
    assert len(line) <= 20
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize("number", ["٣", "²", "9" * 10, "9" * 3_900])
def test_a_number_in_another_form_is_not_an_event(number: str) -> None:
    assert parse(f"Done: {number} of 1 scored tasks succeeded, 1 in all.") is None
