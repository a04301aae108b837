"""The step metrics on a set made by hand, whose numbers were calculated by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.steps.metrics import Choice, averages, by_group, operation_f1, score_step
from judge.plugins.steps.reference import Operation, Reference

# Task, accepted elements, expected operation, chosen element, chosen operation.
HAND_MADE: tuple[tuple[str, tuple[str, ...], tuple[str, str], str | None, tuple[str, str] | None], ...] = (
    # Right; the second of two accepted elements. Element 1, F1 1, step 1.
    ("a", ("e1", "e2"), ("CLICK", ""), "e2", ("CLICK", "")),
    # The right element; {TYPE, red, tent} against {TYPE, tent}: 2 * 2 / (3 + 2) = 0.8. Element 1, F1 0.8, step 0.
    ("a", ("e3",), ("TYPE", "red tent"), "e3", ("TYPE", "tent")),
    # Another element, the right operation. Element 0, F1 1, step 0.
    ("a", ("e4",), ("SELECT", "Oak"), "e5", ("SELECT", "Oak")),
    # The reply could not be used. All 0.
    ("a", ("e6",), ("CLICK", ""), None, None),
    # Right. All 1.
    ("b", ("e7",), ("TYPE", "Las Vegas"), "e7", ("TYPE", "Las Vegas")),
    # Two steps of a task of which the data of one accept no element: 0, although the operation is right.
    ("c", (), ("CLICK", ""), "e8", ("CLICK", "")),
    # The operation is wrong, its value right: {SELECT, 2} against {TYPE, 2}: 2 * 1 / (2 + 2) = 0.5.
    ("c", ("e9",), ("SELECT", "2"), "e9", ("TYPE", "2")),
)


def operation(pair: tuple[str, str] | None) -> Operation | None:
    return Operation(op=pair[0], value=pair[1]) if pair else None


def scores() -> list[Any]:
    return [
        score_step(
            Reference(
                task_id=task,
                task="t",
                index=index,
                snapshot="",
                accepted=accepted,
                operation=operation(expected) or Operation(op="CLICK"),
            ),
            Choice(element=element, operation=operation(chosen)),
        )
        for index, (task, accepted, expected, element, chosen) in enumerate(HAND_MADE)
    ]


def test_the_published_metrics_are_those_calculated_by_hand() -> None:
    means = averages(scores())
    assert (means["steps"], means["tasks"]) == (7, 3)
    # Micro: 1 + 1 + 0 + 0 + 1 + 0 + 1 = 4 of 7. Macro: a 2/4, b 1, c 1/2, so 2/3.
    assert means["element_accuracy"] == pytest.approx({"micro": 4 / 7, "macro": 2 / 3})
    # Micro: 1 + 0.8 + 1 + 0 + 1 + 0 + 0.5 = 4.3 of 7. Macro: a 2.8/4 = 0.7, b 1, c 0.25, so 1.95/3.
    assert means["operation_f1"] == pytest.approx({"micro": 4.3 / 7, "macro": 0.65})
    # Micro: the first of a, and b: 2 of 7. Macro: a 1/4, b 1, c 0, so 1.25/3.
    assert means["step_success"] == pytest.approx({"micro": 2 / 7, "macro": 1.25 / 3})
    # Only b.
    assert means["task_success"] == pytest.approx(1 / 3)


def test_the_cookbooks_metrics_are_those_calculated_by_hand() -> None:
    means = averages(scores())
    # All but the unusable reply and the last one: 5 of 7.
    assert means["operation"] == pytest.approx(5 / 7)
    # Without the one that typed only a part: 4 of 7.
    assert means["operation_and_value"] == pytest.approx(4 / 7)


def test_a_click_has_no_value() -> None:
    assert operation_f1(Operation(op="CLICK", value="ignored"), Operation(op="CLICK")) == 1.0


def test_without_a_step_nothing_is_averaged() -> None:
    means = averages([])
    assert (means["steps"], means["task_success"], means["element_accuracy"]["micro"]) == (0, None, None)


OPERATIONS = st.builds(Operation, op=st.sampled_from(["CLICK", "TYPE", "SELECT"]), value=st.text("ab ", max_size=8))


@given(one=OPERATIONS, other=OPERATIONS)
def test_f1_is_symmetric_bounded_and_1_for_the_same_tokens(one: Operation, other: Operation) -> None:
    assert operation_f1(one, other) == operation_f1(other, one)
    assert 0.0 <= operation_f1(one, other) <= 1.0
    assert operation_f1(one, one) == 1.0


def test_b9_results_are_given_by_website_by_kind_of_action_and_by_metadata() -> None:
    def scored(website: str, op: Any, chosen: str, **metadata: Any) -> Any:
        reference = Reference(
            task_id="t", task="t", website=website, index=0, snapshot="", accepted=("e1",), operation=Operation(op=op)
        ).model_copy(update={"metadata": metadata})
        return score_step(reference, Choice(element=chosen, operation=Operation(op=op)))

    summary = by_group(
        [
            scored("https://www.a.example/x", "CLICK", "e1", category="shop"),
            scored("https://a.example/y", "TYPE", "e2"),
            scored("united", "CLICK", "e2", category="shop"),
        ]
    )
    found = {
        (name, value): (own["steps"], own["element_accuracy"]["micro"])
        for name, values in summary.items()
        for value, own in values.items()
    }
    assert found == {
        ("category", "shop"): (2, 0.5),
        ("website", "a.example"): (2, 0.5),
        ("website", "united"): (1, 0.0),
        ("operation", "CLICK"): (2, 0.5),
        ("operation", "TYPE"): (1, 0.0),
    }
