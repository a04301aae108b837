"""Events, and the two forms in which they cross A2A."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.events import (
    EVENT_KEY,
    Event,
    EventReader,
    RequestWarning,
    RunDone,
    RunStarted,
    StepBegun,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
    describe,
    from_wire,
    sealed_form,
    to_wire,
)
from judge.records.steps import Step
from shared.text import one_line

EVENTS: list[Event] = [
    RunStarted(run_id="20260101-000000-ab", total=12),
    RunStarted(run_id="r", total=12, kept=3),
    TaskStarted(task_id="t1", attempt=1, max_steps=15),
    StepDone(task_id="t1", step=2, max_steps=15, action='<Search textbox> -> TYPE: lamp: "x"', executed=True),
    TaskRetried(task_id="t1", attempt=1, cause="browser: gone"),
    TaskJudging(task_id="t1", steps=4),
    TaskDone(task_id="t1", outcome="unscored", steps=4, reason="the model did not answer"),
    RunDone(successes=3, scored=10, total=12),
    RunStarted(run_id="r", total=12, kept=3, epochs=2),
    TaskStarted(task_id="t1", epoch=2, attempt=1, max_steps=15),
    StepDone(task_id="t1", epoch=2, step=2, max_steps=15, action="no action: x", executed=False),
    TaskRetried(task_id="t1", epoch=2, attempt=1, cause="browser: gone"),
    TaskJudging(task_id="t1", epoch=2, steps=4),
    TaskDone(task_id="t1", epoch=2, outcome="unscored", steps=4, reason="the model did not answer"),
    RunDone(successes=3, scored=10, total=24, epochs=2),
]


def read(*values: object) -> list[Event]:
    return EventReader().read({EVENT_KEY: list(values)})


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_sent_as_data_can_be_read_back(event: Event) -> None:
    assert read(json.loads(json.dumps(to_wire(event, 1)))) == [event]


def test_every_event_is_read_once() -> None:
    reader, events = EventReader(), EVENTS[:3]
    requests = [to_wire(event, number) for number, event in enumerate(events, 1)]
    assert reader.read({EVENT_KEY: requests[:2]}) == events[:2]
    assert reader.read({EVENT_KEY: requests[1:]}) == events[2:]
    assert reader.read({EVENT_KEY: requests}) == []


def test_events_without_a_number_are_all_read() -> None:
    judging = {"event": "task_judging", "task_id": "t", "steps": 1}
    assert len(read(judging, judging)) == 2


@pytest.mark.parametrize(
    "value",
    [
        None,
        "task_done",
        {"event": "flown"},
        {"event": ["task_done"]},
        {"event": "task_judging", "task_id": "../t", "steps": 1},
        {"event": "task_judging", "task_id": "t", "steps": -1},
        {"event": "task_judging", "task_id": "t", "steps": 1, "more": 1},
        {"event": "run_started", "run_id": "a b", "total": 1},
        {"event": "task_done", "task_id": "t", "outcome": "won", "steps": 1, "reason": "r"},
    ],
)
def test_what_is_not_an_event_is_left_out(value: object) -> None:
    good = TaskJudging(task_id="t", steps=1)
    assert read(value, to_wire(good, 1)) == [good]


@pytest.mark.parametrize("metadata", [{}, {EVENT_KEY: None}, {EVENT_KEY: "x"}, {EVENT_KEY: {"event": "run_done"}}])
def test_an_update_without_a_list_has_no_events(metadata: dict[str, Any]) -> None:
    assert EventReader().read(metadata) == []


def test_the_texts_of_a_foreign_judge_are_bounded_and_on_one_line() -> None:
    (event,) = read({"event": "noted", "text": "a\x1b[2J\n" + "b" * 10_000})
    assert isinstance(event, RequestWarning)
    assert len(event.text) == 500
    assert event.text.isprintable()


def test_the_beginning_of_a_step_is_not_prose() -> None:
    assert describe(StepBegun(task_id="t", step=1, task="x", url="http://x/")) == ""


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


@given(action=st.text())
def test_no_action_text_breaks_out_of_its_line_or_becomes_json(action: str) -> None:
    line = describe(StepDone(task_id="t", step=1, max_steps=2, action=action, executed=True))
    assert len(line.splitlines()) == 1
    with pytest.raises(ValueError):
        json.loads(line)


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner))


@given(value=st.dictionaries(st.sampled_from(["event", "number", "task_id", "steps", "text"]), JSON) | JSON)
def test_reading_any_value_never_fails(value: object) -> None:
    event = from_wire(value)
    assert event is None or describe(event) is not None


@given(text=st.text())
def test_one_line_is_one_line_and_bounded(text: str) -> None:
    line = one_line(text, 20)
    assert len(line) <= 20
    assert len(line.splitlines()) <= 1


def test_of_a_sealed_task_only_ids_numbers_and_codes_are_sent() -> None:
    known = {"task_id", "run_id", "reason_code", "blame", "outcome"}
    for kind in get_args(Event):
        texts = {
            name for name, each in kind.model_fields.items() if str in (each.annotation, *get_args(each.annotation))
        }
        event = kind.model_construct(**{name: "quimble" for name in kind.model_fields if name not in known})
        requests = sealed_form(event)
        # A new field with text is withheld, or is named above.
        assert {name for name in texts - known if getattr(requests, name) != "sealed"} == set()


def test_a_step_names_its_reply_where_that_is_another_number() -> None:
    step = StepDone(task_id="t", step=4, reply=2, max_steps=15, action="x", executed=True)
    assert describe(step) == "Task t, step 4, reply 2 of 15: x"
    assert from_wire(to_wire(step, 1)) == step
    assert "reply" not in to_wire(step.model_copy(update={"reply": 0}), 1)


def test_what_was_recorded_of_a_sealed_step_stays_in_the_judge() -> None:
    recorded = Step.model_construct(index=0, url="u", title="t")
    step = StepDone.model_construct(task_id="t1", step=1, max_steps=2, action="x", executed=True, recorded=recorded)

    assert getattr(sealed_form(step), "recorded", "missing") is None
