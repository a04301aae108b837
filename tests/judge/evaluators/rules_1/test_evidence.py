"""Typed text in recordings of version 1, which do not say what is inside an editor."""

from pathlib import Path

import pytest

from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.trajectory.record import FIRST_RULES

EDITOR = "- generic [ref=e1]:\n  - generic [ref=e7]{}: {}\n  - paragraph [ref=e8]: {}"
PLACED = {"kind": "text", "contains": "Order placed"}


def typed(text: str, before: str = "empty", after: str | None = None, ref: str = "e7") -> list[RecordedStep]:
    """A participant types into an editable element that is not a field, and looks again."""
    return [
        RecordedStep(snapshot=EDITOR.format("", before, ""), tool="browser_type", params={"target": ref, "text": text}),
        RecordedStep(snapshot=after or EDITOR.format("", text, "")),
    ]


TYPED: list[tuple[str, list[RecordedStep]]] = [
    ("text in an editable element", typed("Order placed")),
    (
        "text in an editable heading, which gets another reference",
        typed(
            "Order placed",
            after='- heading "x" [ref=e3]\n- generic [ref=e1]:\n  - heading "Order placed" [active] [ref=e9]',
        ),
    ),
    (
        "text typed key by key",
        [
            RecordedStep(
                tool="browser_press_key", params={"key": "d"}, snapshot=EDITOR.format(" [active]", "Order place", "")
            ),
            RecordedStep(snapshot=EDITOR.format(" [active]", "Order placed", "")),
        ],
    ),
    *(
        (
            f"text typed into a field and brought elsewhere by {how}",
            [
                RecordedStep(tool=tool, params=params, snapshot=EDITOR.format("", "empty", "")),
                RecordedStep(snapshot=EDITOR.format(" [active]", "Order placed", "")),
                RecordedStep(snapshot=EDITOR.format("", "Order placed", "")),
            ],
        )
        for how, tool, params in (
            ("pasting it as plain text", "browser_press_key", {"key": "Control+Shift+V"}),
            ("a key's code", "browser_press_key", {"key": "Control+KeyV"}),
            ("a key with Shift", "browser_press_key", {"key": "Shift+d"}),
            ("dragging it", "browser_drag", {"startTarget": "e1", "endTarget": "e7"}),
            ("the middle button", "browser_click", {"target": "e7", "button": "middle"}),
        )
    ),
    (
        "text typed where the focus is, which then goes elsewhere",
        [
            RecordedStep(
                tool="browser_type",
                params={"text": "Order placed"},
                snapshot=EDITOR.format(" [active]", "empty", ""),
            ),
            RecordedStep(snapshot=EDITOR.format("", "Order placed", "")),
        ],
    ),
]


@pytest.mark.parametrize("steps", [pytest.param(seen, id=name) for name, seen in TYPED])
def test_typed_text_in_an_older_recording_is_not_text_of_the_page(tmp_path: Path, steps: list[RecordedStep]) -> None:
    (assertion,) = evaluate(recorded_attempt(tmp_path, [PLACED], steps, rules_version=FIRST_RULES))
    assert assertion.passed is False
