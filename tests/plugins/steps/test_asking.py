"""What a participant sees of a recorded step."""

import pytest

from judge.plugins.steps.asking import ShownStep, observation_of
from judge.plugins.steps.reference import Operation, Reference

REFERENCE = Reference(
    task_id="t1",
    task="Find it.",
    index=3,
    history=("one", "two", "three"),
    snapshot='- main:\n  - text: Hello\n  - textbox "Search" [ref=e1] [box=1,2,3,4]: tent\n    - button "Go" [ref=e2]',
    accepted=("e2",),
    operation=Operation(op="CLICK"),
)


@pytest.mark.parametrize(
    ("previous", "lines"),
    [(None, ["1. one", "2. two", "3. three"]), (2, ["2. two", "3. three"]), (9, ["1. one", "2. two", "3. three"])],
)
def test_b4_the_last_actions_are_shown_with_their_numbers(previous: int | None, lines: list[str]) -> None:
    instruction = observation_of(REFERENCE, ShownStep(previous=previous)).instruction
    assert instruction == "\n".join(["Find it.", "", "The task is under way. Actions so far:", *lines])


def test_without_previous_actions_only_the_task_is_shown() -> None:
    assert observation_of(REFERENCE, ShownStep(previous=0)).instruction == "Find it."


def test_b3_elements_are_those_with_a_reference_one_a_line() -> None:
    snapshot = observation_of(REFERENCE, ShownStep(form="elements")).page.snapshot
    assert snapshot == '- textbox "Search" [ref=e1]: tent\n- button "Go" [ref=e2]'
