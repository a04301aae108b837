"""Our trajectories in the Online-Mind2Web schema v2, and the rules of that schema."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_result
from judge.browser.action_lines import action_line
from judge.browser.tools import CheckedAction
from judge.plugins.export.online_mind2web import action_v2, check_document, submission
from judge.records.steps import Outcome, Step
from judge.records.tasks import Task
from judge.trajectory.record import Trajectory
from shared.action_lines import one_line
from shared.errors import TrajectoryError
from shared.models import Action
from shared.snapshot import parse_snapshot

SNAPSHOT = parse_snapshot('- textbox "Search" [ref=e1]\n- link "STANDINGS" [ref=e2]\n- button [ref=e3]')


def step(index: int, line: str | None, tool: str = "browser_click", thought: str = "", **changes: Any) -> Step:
    return Step(
        index=index,
        url=f"https://shop.test/{index}",
        title="Shop",
        screenshot=f"trajectory/step_{index:03d}.jpg",
        action=Action(tool=tool, thought=thought),
        outcome=Outcome(ok=line is not None, line=line),
        **changes,
    )


FINISH = step(2, "<page> -> FINISH", tool="finish", thought="done")


def trajectory(*steps: Step, answer: str | None = "42", **changes: Any) -> Trajectory:
    task = Task(task_id="t1", website="https://shop.test/", task="Find it", level="easy", reference_length=3)
    return Trajectory(folder=Path("t1"), attempt=a_result(task=task, steps=steps, final_answer=answer, **changes))


DONE = trajectory(step(0, "<STANDINGS link> -> CLICK", thought="there"), step(1, None), FINISH)


def files_of(document: dict[str, Any]) -> set[str]:
    return {entry["screenshot"] for entry in document["action_history"]}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<STANDINGS link> -> CLICK", 'CLICK role=link[name="STANDINGS"] -> click the STANDINGS link | SUCCESS'),
        ("<button> -> DOUBLE CLICK", "CLICK role=button -> double click the button | SUCCESS"),
        ("<Search textbox> -> TYPE: Las Vegas", "TYPE role=textbox[name=\"Search\"] -> type 'Las Vegas' | SUCCESS"),
        (
            "<Search textbox> -> TYPE AND ENTER: a",
            "TYPE role=textbox[name=\"Search\"] -> type 'a' and press Enter | SUCCESS",
        ),
        ("<navigation> -> GOTO: https://a.test/b?c", "page -> NAVIGATE -> go to a.test | SUCCESS"),
        ("<navigation> -> BACK", "page -> GO_BACK -> return to the previous page | SUCCESS"),
        ("<page> -> PRESS: Enter", "PRESS_KEY page -> press Enter | SUCCESS"),
        ("<page> -> SCROLL: down 600", "SCROLL page -> scroll down 600 | SUCCESS"),
        ("<dialog> -> DIALOG: dismiss", "PRESS_KEY page -> answer the dialog: dismiss | SUCCESS"),
    ],
)
def test_an_action_line_is_written_in_the_grammar_of_the_schema(line: str, expected: str) -> None:
    assert action_v2(line) == expected


CHECKED = [
    ("browser_navigate", {"url": "https://a.test/"}),
    ("browser_navigate_back", {}),
    ("browser_click", {"target": "e2"}),
    ("browser_click", {"target": "e3", "doubleClick": True, "button": "right", "modifiers": ["Shift"]}),
    ("browser_type", {"target": "e1", "text": "x"}),
    ("browser_type", {"target": "e1", "text": "x", "submit": True}),
    ("browser_fill_form", {"fields": [{"target": "e1", "name": "n", "type": "textbox", "value": "v"}]}),
    ("browser_select_option", {"target": "e1", "values": ["a", "b"]}),
    ("browser_press_key", {"key": "Enter"}),
    ("browser_hover", {"target": "e2"}),
    ("browser_drag", {"startTarget": "e1", "endTarget": "e2"}),
    ("browser_mouse_click_xy", {"x": 1, "y": 2}),
    ("browser_mouse_move_xy", {"x": 1, "y": 2}),
    ("browser_mouse_drag_xy", {"startX": 1, "startY": 2, "endX": 3, "endY": 4}),
    ("browser_mouse_wheel", {"deltaY": 300, "x": 1, "y": 2}),
    ("browser_type", {"text": "x"}),
    ("browser_tabs", {"action": "select", "index": 1}),
    ("browser_tabs", {"action": "new", "url": "https://b.test/"}),
    ("browser_wait_for", {"time": 2}),
    ("browser_handle_dialog", {"accept": True, "promptText": "yes"}),
    ("browser_snapshot", {}),
    ("browser_find", {"text": "x"}),
    ("browser_scroll", {"direction": "down", "amount": 600}),
    ("finish", {"answer": "x"}),
    ("browser_close", {}),
]


@pytest.mark.parametrize(("tool", "params"), CHECKED, ids=lambda value: value if isinstance(value, str) else "")
def test_every_action_that_can_be_recorded_has_a_valid_form(tool: str, params: dict[str, Any]) -> None:
    line = action_line(CheckedAction(tool=tool, params=params), SNAPSHOT)
    document = submission(trajectory(step(0, line), FINISH)).document
    # Advice is allowed: where a switched tab leads to is not known.
    assert [problem for problem in check_document(document, files_of(document)) if not problem.note] == []


@given(st.text(max_size=300), st.text(max_size=80))
def test_no_text_of_a_page_or_participant_breaks_the_grammar(text: str, name: str) -> None:
    subject = f"{one_line(name, 100)} textbox".strip()
    document = submission(trajectory(step(0, f"<{subject}> -> TYPE: {one_line(text, 200)}"), FINISH)).document
    assert check_document(document, files_of(document)) == []


def test_only_what_was_carried_out_is_submitted() -> None:
    actions = [entry["action"].split(" ")[0] for entry in submission(DONE).document["action_history"]]
    assert actions == ["CLICK", "TASK_COMPLETE"]


def test_each_action_keeps_the_screenshot_it_was_decided_on() -> None:
    assert submission(DONE).screenshots == (
        ("trajectory/step_000.jpg", "0000.jpg"),
        ("trajectory/step_002.jpg", "0001.jpg"),
    )


def test_an_open_dialog_is_shown_by_the_page_behind_it() -> None:
    request = step(1, "<dialog> -> DIALOG: accept", tool="browser_handle_dialog", dialog="Sure?")
    request = request.model_copy(update={"screenshot": None})
    document = submission(trajectory(step(0, "<button> -> CLICK"), request, FINISH))
    assert [source for source, _ in document.screenshots] == [
        "trajectory/step_000.jpg",
        "trajectory/step_000.jpg",
        "trajectory/step_002.jpg",
    ]
    assert check_document(document.document, files_of(document.document)) == []


def test_the_last_step_holds_the_answer() -> None:
    document = submission(DONE).document
    assert document["agent_final_answer"] == "42"
    assert document["action_history"][-1] == {
        "step": 1,
        "screenshot": "0001.jpg",
        "url": "https://shop.test/2",
        "action": "TASK_COMPLETE -> ANSWER: 42",
        "action_status": None,
        "thought": "done",
    }


def test_an_episode_without_an_answer_has_none() -> None:
    document = submission(trajectory(step(0, "<button> -> CLICK"), answer=None)).document
    assert document["agent_final_answer"] is None
    assert [entry["screenshot"] for entry in document["action_history"]] == ["0000.jpg", "0001.jpg"]


def test_an_empty_answer_is_an_answer() -> None:
    document = submission(trajectory(FINISH, answer="")).document
    assert (document["agent_final_answer"], check_document(document, files_of(document))) == ("", [])


@given(st.text(max_size=500))
def test_any_answer_makes_a_valid_submission(answer: str) -> None:
    document = submission(trajectory(FINISH, answer=answer)).document
    assert check_document(document, files_of(document)) == []


def test_a_navigation_names_where_it_goes() -> None:
    document = submission(trajectory(step(0, "<navigation> -> GOTO: https://a.test/b"), FINISH)).document
    assert document["action_history"][0]["url"] == "https://a.test/b"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (DONE.model_copy(update={"attempt": DONE.attempt.model_copy(update={"stop_reason": "cancelled"})}), "aborted"),
        (DONE.as_task(DONE.task.model_copy(update={"reference_length": None})), "reference length"),
        (trajectory(FINISH.model_copy(update={"screenshot": None})), "step 2 has no screenshot"),
        (trajectory(FINISH.model_copy(update={"screenshot": "trajectory/a.gif"})), "not an image format"),
        (trajectory(), "no step"),
    ],
)
def test_what_the_schema_cannot_hold_is_refused(wrong: Trajectory, complaint: str) -> None:
    with pytest.raises(TrajectoryError, match=complaint):
        submission(wrong)


def test_the_datasets_reference_length_takes_precedence_over_the_scenarios() -> None:
    assert submission(DONE, 9).document["reference_length"] == 9


VALID = submission(DONE).document


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document = copy.deepcopy(VALID)
    change(document)
    return document


def first(document: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = document["action_history"][0]
    return results


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("1", lambda d: d.update(schema_version="online-mind2web-v1")),
        ("2", lambda d: d.update(task_id="tasks/t1")),
        ("2", lambda d: d.update(task_id="")),
        ("3", lambda d: first(d).update(step=1)),
        ("3", lambda d: first(d).update(step=False)),
        ("4", lambda d: first(d).update(screenshot="0007.jpg")),
        ("4", lambda d: (first(d).update(screenshot="0001.jpg"), d["action_history"][1].update(screenshot="0000.jpg"))),
        ("5", lambda d: first(d).pop("thought")),
        ("5", lambda d: first(d).update(thought=7)),
        ("6", lambda d: d["action_history"].pop()),
        ("6", lambda d: d.update(agent_final_answer="43")),
        ("6", lambda d: d["action_history"].insert(0, d["action_history"].pop())),
        ("6", lambda d: d["action_history"][1].update(action="TASK_COMPLETE")),
        ("7", lambda d: first(d).update(action_status="FAILED")),
        ("7", lambda d: first(d).update(action="CLICK #a -> click it")),
        ("8", lambda d: first(d).update(action="page -> NAVIGATE -> URL: a -> b | SUCCESS")),
        ("9", lambda d: d.update(reference_length=8)),
        ("schema", lambda d: d.update(extra=1)),
        ("schema", lambda d: d.pop("task")),
        ("schema", lambda d: d.pop("agent_final_answer")),
        ("schema", lambda d: d.update(agent_final_answer=42)),
        ("schema", lambda d: d.update(reference_length=0)),
        ("schema", lambda d: d.update(reference_length=True)),
        ("schema", lambda d: d.update(action_history=[])),
        ("schema", lambda d: d.update(action_history=["CLICK"])),
        ("schema", lambda d: first(d).update(extra=1)),
        ("schema", lambda d: first(d).pop("action")),
        ("schema", lambda d: first(d).update(action=" ")),
        ("schema", lambda d: first(d).update(url=3)),
        ("schema", lambda d: first(d).update(action_status="ok")),
        ("schema", lambda d: first(d).update(screenshot="../0000.jpg")),
        ("schema", lambda d: first(d).update(screenshot="0000.gif")),
        ("grammar", lambda d: first(d).update(action="I clicked the link")),
        ("grammar", lambda d: d["action_history"][1].update(action_status="SUCCESS")),
        ("grammar", lambda d: d["action_history"].insert(1, {**first(d), "step": 1, "action": "click_at(x=1, y=2)"})),
    ],
)
def test_each_broken_rule_is_named(rule: str, change: Callable[[dict[str, Any]], object]) -> None:
    document = changed(change)
    result = check_document(document, files_of(VALID), reference_length=3)
    assert rule in {problem.rule for problem in result if not problem.note}


def test_a_valid_document_has_no_problem() -> None:
    assert check_document(VALID, files_of(VALID), folder_name="t1", reference_length=3) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda d: first(d).update(url=None),
        lambda d: first(d).update(action="CLICK #a -> click it", action_status=None),
        lambda d: d.update(task_id="other"),
    ],
)
def test_what_is_only_advised_is_a_note(change: Callable[[dict[str, Any]], object]) -> None:
    result = check_document(changed(change), files_of(VALID), folder_name="t1")
    assert [problem.note for problem in result] == [True]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(VALID)), inner, max_size=6),
    max_leaves=20,
)


@given(JSON)
def test_no_document_makes_the_check_itself_fail(document: Any) -> None:
    assert check_document(document, ()) != []
