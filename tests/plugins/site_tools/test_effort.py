"""What two runs took, where one of them uses the sites' own tools."""

from typing import Any

from judge.report.comparing import differing_settings, pairs_of
from judge.report.data import TaskRow
from judge.report.effort import differing


def row(task_id: str, verdict: str, **facts: Any) -> TaskRow:
    known: dict[str, Any] = {"task": "Buy.", "website": "https://a.example/", "duration_s": 4.0, "site_tools": None}
    return TaskRow.without_attempt(**known | {"task_id": task_id, "verdict": verdict} | facts)


METERED: dict[str, Any] = {"participant_calls": 2, "participant_input_tokens": 900, "participant_output_tokens": 100}
CLICKS = [
    row("a", "success", steps=6, claimed_input_tokens=5000, claimed_output_tokens=200),
    row("b", "failure", steps=4, claimed_input_tokens=3000, claimed_output_tokens=200),
    row("c", "aborted", steps=90),
]
TOOLS = [
    row("a", "success", steps=2, site_tools="only", site_tool_calls=1, participant_cost_usd=0.02, **METERED),
    row("b", "success", steps=3, site_tools="only", site_tool_calls=2, participant_cost_usd=0.04, **METERED),
    row("c", "success", steps=90, site_tools="only", site_tool_calls=90),
]


def test_only_tasks_that_both_runs_scored_count() -> None:
    (pair,) = pairs_of({"A": CLICKS, "B": TOOLS})
    clicks, tools = pair.efforts
    assert (clicks.letter, clicks.modes["site_tools"], clicks.success, clicks.steps) == ("A", "off", 50, 5)
    assert (tools.letter, tools.modes["site_tools"], tools.success, tools.steps) == ("B", "only", 100, 2.5)
    assert (clicks.counts["site_tool_calls"], tools.counts["site_tool_calls"]) == (0, 1.5)
    assert [each.name for each in differing([pair.efforts])] == ["site_tools", "site_tool_calls"]
    assert (clicks.tokens, clicks.cost_usd, clicks.is_claimed) == (4200, None, True)
    assert (tools.tokens, tools.cost_usd, tools.is_claimed) == (1000, 0.03, False)


def test_runs_with_the_same_mode_have_no_efforts_to_compare() -> None:
    (pair,) = pairs_of({"A": CLICKS, "B": CLICKS})
    assert pair.efforts == ()


def test_a_run_that_does_not_record_the_mode_had_it_off() -> None:
    differing = differing_settings([{"config": {"max_steps": 5}}, {"config": {"max_steps": 5, "site_tools": "only"}}])
    assert differing == (("site tools", ("off", "only")),)
