"""How near misses are made of a right walk."""

from dataclasses import replace

import pytest

from judge.plugins.nearmiss.operators import OPERATORS, near_misses
from judge.plugins.nearmiss.walks import Moment, RightWalk
from judge.records.tasks import Task
from shared.elements import ElementQuery, find_element
from shared.snapshot import parse_snapshot

HOME = "http://shop.test/app"
LOG_IN = '- textbox "Password" [ref=e1]'
LISTED = '- button "New" [ref=e1]'
FORM = "\n".join(
    [
        '- textbox "Title" [ref=e1]',
        '- combobox "Type" [ref=e2]:',
        '  - option "Book"',
        '  - option "Film" [selected]',
        '  - option "Play"',
        '- button "Create" [ref=e3]',
    ]
)


def a_moment(page: str, tool: str, role: str, name: str, url: str = HOME, nth: int = 0, **params: object) -> Moment:
    step = {"tool": f"browser_{tool}", "role": role, "name": name, "nth": nth, "params": params}
    snapshot = parse_snapshot(page)
    node = find_element(snapshot, ElementQuery(role=role, name=name, nth=nth))
    return Moment(step, url, snapshot, node, name == "Create")


def a_walk(*moments: Moment) -> RightWalk:
    end = {"tool": "finish", "params": {"answer": "Done."}}
    task = Task(task_id="create", website=HOME, task="Create it.")
    return RightWalk(task, moments, (end,), parse_snapshot(LISTED), HOME)


@pytest.mark.parametrize(("login", "back"), [(HOME, ["New", "Title"]), (f"{HOME}/login", [HOME, "New", "Title"])])
def test_a_walk_that_does_something_else_first_enters_the_whole_form_again(login: str, back: list[str]) -> None:
    right = a_walk(
        a_moment(LOG_IN, "type", "textbox", "Password", login, text="x", submit=True),
        a_moment(LISTED, "click", "button", "New"),
        a_moment(FORM, "type", "textbox", "Title", text="A"),
        a_moment(FORM, "select_option", "combobox", "Type", values=["Book"]),
        a_moment(FORM, "click", "button", "Create"),
    )
    walks = {each.about: each for each in near_misses(right, right.steps, ["also"], 9, 0)}
    names = [each.get("name") or each["params"].get("url") for each in walks['first also Type: "Play"'].steps]
    assert names[4:] == ["Create", *back, "Type", "Create", None]
    assert walks['then also Type: "Play"'].steps[-3]["params"] == {"values": ["Play"]}


def test_a_task_that_is_a_log_in_has_near_misses_like_any_other() -> None:
    after = parse_snapshot('- navigation [ref=e1]:\n  - link "Help" [ref=e2]:\n    - /url: /help')
    right = replace(
        a_walk(a_moment(LOG_IN, "type", "textbox", "Password", text="x", submit=True)), last_page=after, last_url=HOME
    )
    walks = near_misses(right, right.steps, list(OPERATORS), 99, 0)
    assert {"stop", "leave"} <= {each.operator for each in walks}


def test_a_step_on_another_element_names_that_one_alone() -> None:
    page = '- button "A" [ref=e1]\n- button "A" [ref=e2]\n- button "B" [ref=e3]'
    right = a_walk(a_moment(page, "click", "button", "A", nth=1))
    (walk,) = near_misses(right, right.steps, ["neighbour"], 9, 0)
    assert walk.steps[0] == {"tool": "browser_click", "role": "button", "name": "B", "params": {}}
