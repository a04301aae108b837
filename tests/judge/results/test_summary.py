"""A run as a page of Markdown."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_finished_run, a_result, a_row, a_verdict
from judge.results.rows import AttemptRow
from judge.results.tables import TableAttempt, markdown, table_of


def rows_of(folder: Path, reason: str = "because") -> list[AttemptRow]:
    results = (
        a_result("good"),
        a_result("bad", verdict=a_verdict("failure", reason=reason)),
        a_result("lost", "environment_fault", error="the browser is gone", blame="browser"),
    )
    return [each.row for each in table_of(a_finished_run(folder, *results)) if isinstance(each, TableAttempt)]


def test_what_did_not_succeed_comes_first_with_its_reason(tmp_path: Path) -> None:
    lines = markdown(rows_of(tmp_path)).splitlines()
    assert "**success rate 50.0 %, 1 of 2 scored tasks**; of all tasks: 33.3 %" in "\n".join(lines)
    assert lines[-3:] == [
        "| failure | `bad` | easy | 2 | 10.2 | `because` |",
        "| aborted | `lost` | easy | 2 | 10.2 | `browser: the browser is gone` |",
        "| success | `good` | easy | 2 | 10.2 |  |",
    ]


def test_repeated_tasks_have_the_rate_of_the_submission_and_a_row_for_each_attempt() -> None:
    rows = [a_row(task_id="a", epoch=epoch, verdict=verdict) for epoch, verdict in ((1, "success"), (2, "failure"))]
    rows += [a_row(task_id="b", epoch=1, verdict="success"), a_row(task_id="b", epoch=2, verdict="aborted")]
    text = markdown(rows)
    # The mean of one half and one, not two of three.
    assert "success rate 75.0 %" in text
    assert "`a.2`" in text


@given(reason=st.text(st.characters()) | st.sampled_from(["`</td> <img src=x>`", "a | b", "![x](http://x/)", "\\|"]))
def test_no_text_of_a_page_leaves_its_cell(reason: str) -> None:
    row = a_row(verdict="failure", success=False, reason=reason)
    line = markdown([row]).encode().decode().splitlines()[-1]
    assert line.count("`") in (2, 4)
    assert line.count("|") == 7
