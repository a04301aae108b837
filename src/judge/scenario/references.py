"""Checks reference scripts: that the file a task names exists and has a script for it. Does not play them."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from judge.records.tasks import Task
from shared.dates import with_dates
from shared.errors import ConfigError
from shared.fields import Invalid, as_mappings, shown
from shared.files import parse_toml, read_errors, read_text
from shared.text import plain

_DATED = ("task", "steps")
# Mistakes in dates are the same on every day.
_ANY_DAY = date(2000, 1, 1)


def reference_problems(tasks: Sequence[Task], folder: Path) -> Iterator[str | None]:
    """For each task, what is wrong with its reference script, if anything. `folder` is the scenario's."""
    read: dict[str, frozenset[str] | str] = {}
    for task in tasks:
        if task.reference is None:
            yield None
            continue
        if task.reference not in read:
            read[task.reference] = scripted_tasks(folder / task.reference)
        found = read[task.reference]
        if isinstance(found, str):
            yield f"reference {shown(task.reference)}: {found}"
        elif plain(task.declared_text) not in found:
            remedy = "add [[scripts]] whose task is this one's text"
            yield f"reference {shown(task.reference)} has no script for it ({remedy})"
        else:
            yield None


def scripted_tasks(path: Path) -> frozenset[str] | str:
    """The texts of the tasks that a file has scripts for, or what is wrong with it."""
    try:
        with read_errors(path, "name a replay script beside the scenario"):
            scripts = as_mappings(parse_toml(read_text(path)).get("scripts"))
    except ConfigError as error:
        return str(error)
    for number, script in enumerate(scripts, 1):
        try:
            with_dates(script, _DATED, _ANY_DAY)
        except Invalid as error:
            return f"[[scripts]] #{number}, key '{error.key}': column {error.column}: {error.problem} ({error.remedy})"
    return frozenset(plain(text) for script in scripts if isinstance(text := script.get("task"), str))
