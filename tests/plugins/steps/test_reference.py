"""References from our own runs, and their file."""

import json
from pathlib import Path

import pytest

from helpers.results import a_result, a_step, a_verdict
from judge.plugins.steps.reference import make_references, read_references
from judge.records.steps import Outcome, Step
from judge.store.layout import TaskStore
from shared.errors import ConfigError
from shared.models import Action, Page

SNAPSHOT = """- textbox "Search" [ref=e1] [box=10,20,100,30]
- combobox "Wood" [ref=e2]:
  - option "Oak" [selected]
- button "Go" [ref=e3]"""


def step_with(index: int, action: Action, line: str | None) -> Step:
    return a_step(index, action=action, outcome=Outcome(ok=line is not None, line=line))


STEPS = (
    step_with(
        0, Action(tool="browser_navigate", params={"url": "https://a.test/"}), "<navigation> -> GOTO: https://a.test/"
    ),
    step_with(1, Action(tool="browser_type", params={"ref": "e1", "text": "tent"}), "<Search textbox> -> TYPE: tent"),
    step_with(2, Action(tool="browser_click", params={"target": "e9"}), None),
    step_with(
        3,
        Action(tool="browser_select_option", params={"target": "e2", "values": ["Oak"]}),
        "<Wood combobox> -> SELECT: Oak",
    ),
    step_with(4, Action(tool="browser_click", params={"target": "e3", "button": "left"}), "<Go button> -> CLICK"),
    step_with(5, Action(tool="finish"), "<page> -> FINISH"),
)


def record(folder: Path, outcome: str = "success") -> TaskStore:
    store = TaskStore(folder)
    store.begin()
    steps = tuple(
        step.model_copy(
            update=store.write_page(
                step.index, Page(url="", title="", snapshot=SNAPSHOT, screenshot=b"\xff\xd8\xff%d" % step.index)
            )
        )
        for step in STEPS
    )
    store.write_result(a_result(folder.name, steps=steps, verdict=a_verdict(outcome)).to_json())
    return store


def test_a_successful_attempt_becomes_references_with_the_true_history(tmp_path: Path) -> None:
    assert list(make_references([record(tmp_path / "t1")], tmp_path / "steps")) == [("t1", 3, "")]
    pages = list(read_references(tmp_path / "steps" / "steps.jsonl"))
    assert [(one.index, one.accepted, one.operation.op, one.operation.value) for one, _ in pages] == [
        (1, ("e1",), "TYPE", "tent"),
        (3, ("e2",), "SELECT", "Oak"),
        (4, ("e3",), "CLICK", ""),
    ]
    assert pages[2][0].history == (
        "<navigation> -> GOTO: https://a.test/",
        "<Search textbox> -> TYPE: tent",
        "<Wood combobox> -> SELECT: Oak",
    )
    assert [image for _, image in pages] == [b"\xff\xd8\xff1", b"\xff\xd8\xff3", b"\xff\xd8\xff4"]


def test_an_attempt_without_success_is_left_out_with_the_reason(tmp_path: Path) -> None:
    result = list(make_references([record(tmp_path / "t1", "failure")], tmp_path / "steps"))
    assert result == [("t1", 0, "its outcome is failure")]
    assert not (tmp_path / "steps").exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"accepted": ["#id"]}, "line 1: '#id' is not an element reference"),
        ({"operation": {"op": "HOVER"}}, "line 1: operation.op"),
        ({"screenshot": "../t1/result.json"}, "outside its folder"),
        ({"other": 1}, "line 1: other"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    list(make_references([record(tmp_path / "t1")], tmp_path / "steps"))
    path = tmp_path / "steps" / "steps.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text().splitlines()[0]) | change))
    with pytest.raises(ConfigError, match=complaint):
        list(read_references(path))


@pytest.mark.parametrize("text", ["{", "[1]", "\n\nnull", '{"a": NaN}'])
def test_a_file_that_holds_no_references_is_a_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "steps.jsonl").write_text(text)
    with pytest.raises(ConfigError, match="line "):
        list(read_references(tmp_path / "steps.jsonl"))
