"""The end of a run in the terminal."""

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from judge.runner.summary import print_summary
from judge.store import RunStore


def a_detail(**changes: Any) -> dict[str, Any]:
    task = {
        "task_id": "oak_desks",
        "level": "easy",
        "verdict": "failure",
        "steps_taken": 3,
        "max_steps": 12,
        "reason": "the [bold]filter[/bold]\nwas wrong",
    }
    base = {
        "success_rate": 0.0,
        "judged_successes": 0,
        "scored_tasks": 1,
        "unscored_tasks": 0,
        "aborted_tasks": 0,
        "confidence_interval_95": [0.0, 95.0],
        "cost_usd": None,
        "judge": {"note": None},
        "tasks": [task],
    }
    return base | changes


def shown(tmp_path: Path, **changes: Any) -> tuple[int, str]:
    text = io.StringIO()
    submission = {"participants": {}, "results": [{"winner": "white_agent", "detail": a_detail(**changes)}]}
    code = print_summary(Console(file=text, width=120), submission, RunStore(tmp_path, "r1"))
    return code, text.getvalue()


def test_a_task_is_one_line_with_its_verdict_and_why(tmp_path: Path) -> None:
    code, text = shown(tmp_path)
    line = next(line for line in text.splitlines() if "oak_desks" in line)
    assert code == 0
    assert "failure" in line
    assert "3/12" in line
    assert "the [bold]filter[/bold] was wrong" in line


def test_what_was_lost_is_counted_and_changes_the_exit_code(tmp_path: Path) -> None:
    code, text = shown(tmp_path, aborted_tasks=2, unscored_tasks=1)
    assert code == 1
    assert "1 unscored" in text
    assert "2 aborted" in text


def test_an_unknown_cost_is_not_shown_as_nothing(tmp_path: Path) -> None:
    assert "judge cost unknown" in shown(tmp_path)[1]
    assert "judge cost $0.4200" in shown(tmp_path, cost_usd=0.42)[1]


def test_a_judges_own_warning_is_repeated(tmp_path: Path) -> None:
    assert "a baseline" in shown(tmp_path, judge={"note": "a baseline"})[1]


def test_the_path_of_the_results_is_given(tmp_path: Path) -> None:
    assert "r1/results.json" in shown(tmp_path)[1].replace("\n", "")
