"""Warnings about checks that a site's tool could pass by repeating what it is given."""

from pathlib import Path

import pytest

from judge.plugins.site_tools.reflections import reflections
from judge.records.tasks import Task

SCRIPT = """
[[scripts]]
task = "Note it."
steps = [
  { tool = "browser_type", role = "textbox", name = "Note", params = { text = "by hand" } },
  { tool = "site_tool", params = { name = "add_note", arguments = { texts = ["Call Ada"], urgent = true, n = 7 } } },
]
"""


def warned(folder: Path, **check: object) -> list[str]:
    (folder / "replay.toml").write_text(SCRIPT)
    task = {"task_id": "t", "website": "http://a.example/", "task": "Note it.", "reference": "replay.toml"}
    return list(reflections([Task.model_validate(task | {"checks": [check]})], folder))


def test_a_check_of_a_text_that_is_an_argument_is_reported(tmp_path: Path) -> None:
    assert warned(tmp_path, kind="text", contains="note: call ada") == [
        'task t, check 1: a page that repeats "Call Ada", which the reference script gives to the site\'s tool '
        "add_note, could pass it: add within or on"
    ]


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "element", "element": ['heading "Notes"', 'listitem "Call Ada"']},
        {"kind": "page", "title": "Call Ada – Notes"},
    ],
)
def test_so_are_elements_and_titles(tmp_path: Path, check: dict[str, object]) -> None:
    assert len(warned(tmp_path, **check)) == 1


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "text", "contains": "by hand"},
        {"kind": "text", "contains": "7 notes"},
        {"kind": "text", "contains": "Call Ada", "within": 'list "Notes"'},
        {"kind": "text", "contains": "Call Ada", "on": "/notes"},
        {"kind": "text", "contains": "Call Ada", "not": True},
        {"kind": "request", "method": "POST", "url": "/notes", "post_data": {"text": "Call Ada"}},
    ],
)
def test_other_checks_are_not(tmp_path: Path, check: dict[str, object]) -> None:
    assert warned(tmp_path, **check) == []


def test_a_script_that_cannot_be_read_is_not_an_error_here(tmp_path: Path) -> None:
    task = Task(task_id="t", website="http://a.example/", task="Note it.", reference="none.toml")
    assert list(reflections([task], tmp_path)) == []
