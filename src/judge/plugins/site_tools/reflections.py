"""Checks that a site's tool could pass by repeating what it is given: warnings of `wabe tasks validate`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from judge.plugins.site_tools.tools import SITE_TOOL
from judge.records.checks import KindCheck, plain_checks
from judge.records.tasks import Task
from judge.records.tools import texts_of
from shared.dates import with_dates
from shared.errors import ConfigError
from shared.fields import Invalid, as_mapping, as_mappings
from shared.files import read_errors, read_text
from shared.text import excerpt, plain
from shared.toml_text import parse_toml

_READING = ("contains", "element", "pattern", "title")
# A shorter text occurs in others by chance.
_MIN_CHARS = 3


def reflections(tasks: Sequence[Task], folder: Path) -> Iterator[str]:
    """A line for each check that reads, anywhere on a page, what a task's reference script gives to a site's tool.

    `folder` is the scenario's. A script that cannot be read is reported elsewhere (`judge.scenario.references`).
    """

    @cache
    def scripts_in(name: str, today: date) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return _scripts(folder / name, today)

    for task in tasks:
        today = task.dated.day if task.dated else date(2000, 1, 1)
        steps = scripts_in(task.reference, today).get(plain(task.task), ()) if task.reference else ()
        tools = {text: tool for step in steps for tool, text in _texts_in_call(step)}
        for number, check in enumerate(task.checks, 1):
            for each in plain_checks([check]):
                for text in tools:
                    if _reads(each, text):
                        yield (
                            f"task {task.task_id}, check {number}: a page that repeats {excerpt(text, 60)}, which the "
                            f"reference script gives to the site's tool {tools[text]}, could pass it: add within or on"
                        )


def _scripts(path: Path, today: date) -> dict[str, list[Mapping[str, Any]]]:
    """The steps of the scripts in a file, by the text of their tasks."""
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    try:
        with read_errors(path, "name a replay script beside the scenario"):
            scripts = as_mappings(parse_toml(read_text(path)).get("scripts"))
        for script in scripts:
            dated_script = with_dates(script, ("task", "steps"), today)
            by_task.setdefault(plain(str(dated_script.get("task"))), []).extend(as_mappings(dated_script.get("steps")))
    except (ConfigError, Invalid):
        return by_task
    return by_task


def _texts_in_call(step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts in a call of a site's tool, each after the tool's name."""
    if step.get("tool") == SITE_TOOL:
        params = as_mapping(step.get("params"))
        arguments = as_mapping(params.get("arguments"))
        values = {"arguments": list(arguments.values())}
        yield from ((str(params.get("name")), text) for text in texts_of(SITE_TOOL, values) if text)


def _reads(check: KindCheck, text: str) -> bool:
    if check.inverted or getattr(check, "within", None) is not None or getattr(check, "on", None) is not None:
        return False
    if check.kind not in ("text", "element", "page") or len(text) < _MIN_CHARS:
        return False
    patterns = [getattr(check, key, None) for key in _READING]
    texts = [each for value in patterns for each in (value if isinstance(value, tuple | list) else [value])]
    return any(plain(text).casefold() in plain(each).casefold() for each in texts if isinstance(each, str))
