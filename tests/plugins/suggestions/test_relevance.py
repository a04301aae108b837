"""What tells that a text belongs to a task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.suggestions.relevance import Relevance, Specificity, is_filler, varying

CLUES = Relevance(
    "Create a ticket with the summary 'Ladder is slippery', with the priority 'critical'.",
    ("<Place combobox> -> SELECT: quay", "<Create ticket button> -> CLICK"),
    "View Tickets New Ticket",
)


@pytest.mark.parametrize(
    ("text", "specificity"),
    [
        ("#9: Ladder is slippery", Specificity.VALUE),
        ("At the quay", Specificity.VALUE),
        ("quayside", Specificity.NOTHING),
        ("Summary and priority", Specificity.WORDS),
        ("Priority", Specificity.WORD),
        ("Previous Ticket", Specificity.COMMON_WORD),
        ("Create with the", Specificity.NOTHING),
    ],
)
def test_values_tell_more_than_words_and_common_words_least(text: str, specificity: Specificity) -> None:
    assert CLUES.specificity(text) is specificity


@pytest.mark.parametrize(
    ("value", "is_named"),
    [("Critical", True), ("quay", True), ("Create ticket", True), ("ticket", True), ("1", False), ("the", False)],
)
def test_a_fields_value_is_named_if_the_task_has_it_or_it_was_typed_or_pressed(value: str, is_named: bool) -> None:
    assert CLUES.names(value) is is_named


def test_a_value_behind_a_colon_is_quoted_too() -> None:
    assert (
        "the ferry leaves at noon." in Relevance("Edit it so that its text is only: The ferry leaves at noon.").values
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("by ada, 0 seconds ago", ["0 seconds ago"]),
        ("Order 57FD9D at 10:45 PM", ["57FD9D", "10:45 PM"]),
        ("since 2026-01-02T03:04:05Z", ["2026-01-02T03:04:05Z"]),
        ("ticket #9 of 19", ["9"]),
        ("Ladder, 3 matches", []),
    ],
)
def test_what_differs_in_every_attempt_is_found(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in varying(text, ["9"])] == expected


def test_what_the_task_says_does_not_differ() -> None:
    assert varying("Meeting at 10:45", instruction="Add a meeting at 10:45.") == []


@pytest.mark.parametrize(("answer", "filler"), [("Done.", True), ("Task completed!", True), ("Done by Ada", False)])
def test_an_answer_that_says_nothing_is_recognised(answer: str, filler: bool) -> None:
    assert is_filler(answer) is filler


@given(task=st.text(max_size=80), line=st.text(max_size=40), text=st.text(max_size=80))
def test_any_text_can_be_compared(task: str, line: str, text: str) -> None:
    relevance = Relevance(task, (f"<a textbox> -> TYPE: {line}",), text)
    assert relevance.specificity(text) in Specificity
    assert all(0 <= start < end <= len(text) for start, end in varying(text, ["1"], task))
