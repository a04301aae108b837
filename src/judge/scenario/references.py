"""Checks reference scripts: that the file a task names exists and has a script for it. Does not play them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from judge.records.tasks import Task
from judge.scenario.models import Scenario
from shared.dates import with_dates
from shared.errors import ConfigError
from shared.fields import Invalid, as_mappings, printable
from shared.files import read_errors, read_text
from shared.text import plain
from shared.toml_text import parse_toml

NO_REFERENCE = 'it has no reference script; write one, and name its file: reference = "replay.toml"'
_DATED = ("task", "steps")
# Mistakes in dates are the same on every day.
_ANY_DAY = date(2000, 1, 1)


def reference_problems(tasks: Sequence[Task], folder: Path) -> Iterator[str | None]:
    """For each task, what is wrong with its reference script, if anything. `folder` is the scenario's."""
    scripts: dict[str, frozenset[str] | str] = {}
    for task in tasks:
        if task.reference is None:
            yield None
            continue
        if task.reference not in scripts:
            scripts[task.reference] = scripted_tasks(folder / task.reference)
        script = scripts[task.reference]
        if isinstance(script, str):
            yield f"reference {printable(task.reference)}: {script}"
        elif plain(task.declared_text) not in script:
            remedy = "add [[scripts]] whose task is this one's text"
            yield f"reference {printable(task.reference)} has no script for it ({remedy})"
        else:
            yield None


@contextmanager
def opened_references(scenario: Scenario) -> Iterator[tuple[Scenario, Path]]:
    """The scenario, and the folder with its reference scripts: of a sealed one, a private one while the body runs."""
    if scenario.sealed is None:
        yield scenario, scenario.path.resolve().parent
        return
    with tempfile.TemporaryDirectory(prefix="wabe-sealed-") as folder:
        # Under numbers: a name may lead out of the folder.
        places = {name: str(Path(folder) / f"{number}.toml") for number, name in enumerate(scenario.sealed.scripts)}
        for name, place in places.items():
            Path(place).write_text(scenario.sealed.scripts[name], encoding="utf-8")

        def placed(task: Task) -> Task:
            return task.model_copy(update={"reference": places.get(task.reference or "", task.reference)})

        changes = {"tasks": tuple(map(placed, scenario.tasks)), "excluded": tuple(map(placed, scenario.excluded))}
        yield scenario.model_copy(update=changes), Path(folder)


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
