from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_result, a_verdict
from judge.results.entries import TaskEntry, counts_of
from judge.results.submission import TaskSummary

WHOLE = TaskSummary.of(a_result(verdict=a_verdict("success"))).entry
KEYS = (*WHOLE, "passed", "finished", "policies", "attack", "progress", "excluded", "coverage", "reason_code")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "of", "shown"]), inner),
    max_leaves=4,
)


def test_an_entry_of_this_version_is_read_whole() -> None:
    entry = TaskEntry.read(WHOLE)
    assert (entry.key, entry.outcome, entry.stop_reason == "finished", entry.level) == ("t1", "success", True, "easy")
    assert (entry.decided_by, entry.why, entry.steps, entry.max_steps) == ("judge", "because", 2, 15)
    assert entry.value == WHOLE


@pytest.mark.parametrize(
    ("value", "outcome", "is_finished"),
    [
        ({"success": True, "finished": True}, "success", True),
        ({"passed": True, "action_history": ["<a> -> CLICK", "<page> -> FINISH"]}, "success", True),
        ({"success": True, "verdict": "unscored", "stop_reason": "max_steps", "finished": True}, "unscored", False),
        ({"success": 1}, "failure", False),
    ],
)
def test_older_files_say_less(value: dict[str, Any], outcome: str, is_finished: bool) -> None:
    entry = TaskEntry.read(value)
    assert (entry.outcome, entry.stop_reason == "finished") == (outcome, is_finished)


def test_entries_without_epochs_are_tasks_of_their_own() -> None:
    assert [TaskEntry.read({"task_id": "t1", **more}, 3).repeated for more in ({}, {"epoch": 2})] == ["entry 3", "t1"]


def test_only_an_aborted_attempt_can_be_excluded() -> None:
    excluded = [TaskEntry.read({"verdict": outcome, "excluded": "why"}).excluded for outcome in ("aborted", "success")]
    assert excluded == ["why", None]


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_a_damaged_entry_counts_once_and_raises_nothing(damage: dict[str, Any]) -> None:
    entry = TaskEntry.read({**WHOLE, **damage})
    assert entry.key
    counts = counts_of([{**WHOLE, **damage}])
    assert counts["attempts"] == (1 if entry.is_clean else 0)
