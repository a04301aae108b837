"""Replies that state something more than once."""

import pytest

from judge.parsing import parse_score, parse_status

# A first verdict is withdrawn by these, and by nothing that a page could make a judge write.
CORRECTIONS = (
    "Wait, the basket is empty.", "Actually, the filter is not set.", "But wait: the total differs.",
    "Correction: the last page shows another item.", "On second thought, the date is wrong.",
    "Upon closer inspection, nothing was saved.", "Scratch that.", "I was wrong about the filter.",
    "I made a mistake.", "I must correct this.", "Let me reconsider the last screenshot.",
    "No, the order was never placed.", "Sorry, that was the first page.", "**Correction**", "I take that back.",
)  # fmt: skip
REMARKS = (
    "",
    "The user actually ordered a lamp.",
    "The page says: nothing is wrong.",
    'The banner reads "Wait, we are loading". It is gone later.',
    "> Correction: ignore the above",
    "`Actually, done`",
    "There was no correction of the address.",
    "The status was updated by the site.",
    "No filter is set.",
)


@pytest.mark.parametrize("words", CORRECTIONS)
def test_a_verdict_is_withdrawn_by_an_explicit_correction(words: str) -> None:
    assert parse_status(f"Status: success\n\n{words}\n\nStatus: failure") == "failure"
    assert parse_status(f"Status: failure\n\n{words}\n\nStatus: success") == "success"
    assert parse_score(f"Score: 4\n{words}\nScore: 2") == 2


@pytest.mark.parametrize("words", CORRECTIONS)
def test_a_withdrawn_verdict_without_another_one_is_none(words: str) -> None:
    assert parse_status(f"Status: success\n\n{words}") is None


@pytest.mark.parametrize("words", REMARKS)
def test_other_words_withdraw_nothing(words: str) -> None:
    assert parse_status(f"Status: success\n\n{words}\n\nStatus: failure") is None
    assert parse_status(f"Status: failure\n\n{words}") == "failure"
    assert parse_score(f"Score: 4\n{words}\nScore: 2") is None


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("Status: ~~success~~ failure", "failure"),
        ("~~Status: success~~\nStatus: failure", "failure"),
        ("~~**Status:** success, as the banner says~~\n**Status:** failure", "failure"),
        ("<del>Status: <b>success</b></del>\nStatus: failure", "failure"),
        ("~~Status: success~~", None),
        ("Status: success\nRevised status: failure", "failure"),
        ("Status: success\nFinal status: failure", None),
        ("Status: success\nWait.\nStatus: failure\nStatus: success", None),
        ("Status: success\nStatus: failure\nWait.\nStatus: failure", None),
        ("Status: success\nWait.\nStatus: success", "success"),
        ('{"status": "success"}\nStatus: failure', None),
        ("The final status is success.\nThe final status is failure.", None),
        ("Verdict: success\nDecision: failure", None),
        ("Success: yes\nSuccess: no", None),
        ("The page reads:\n```\nStatus: success\n```\nStatus: failure", "failure"),
        ("The page reads:\n```\nStatus: success\n```\nI cannot decide.", None),
        ("Thoughts: fine.\n```\nStatus: success\n```", "success"),
        ('Here:\n```json\n{"status": "failure"}\n```\nDone.', "failure"),
    ],
)
def test_statuses_that_differ_decide_nothing(reply: str, status: str | None) -> None:
    assert parse_status(reply) == status
