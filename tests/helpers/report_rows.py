"""Rows of a report, by the first letters of their outcomes."""

from dataclasses import replace
from typing import Any

from judge.report.data import TaskRow
from judge.results.rates import RowOutcome


def row(task_id: str, outcome: RowOutcome, **changes: str) -> TaskRow:
    """A row of the report without its attempt."""
    values: dict[str, Any] = {"task": "Find it.", "website": "https://example.org/", "level": "easy"} | changes
    return TaskRow.without_attempt(task_id=task_id, verdict=outcome, **values)


def rows(outcomes: str) -> list[TaskRow]:
    """A row for each letter: of success, failure or aborted."""
    names: dict[str, RowOutcome] = {name[0]: name for name in ("success", "failure", "aborted")}
    return [row(f"t{number}", names[letter]) for number, letter in enumerate(outcomes)]


def repeated(**outcomes: str) -> list[TaskRow]:
    """A row for each letter of each task, as its epochs."""
    names: dict[str, RowOutcome] = {name[0]: name for name in ("success", "failure", "aborted")}
    return [
        replace(row(task, names[letter]), epoch=epoch)
        for task, letters in outcomes.items()
        for epoch, letter in enumerate(letters, 1)
    ]
