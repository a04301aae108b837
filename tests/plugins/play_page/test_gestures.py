"""What a person does on the page becomes the right tool of the judge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from judge.plugins.play_page.gestures import Gesture, action_of
from shared.errors import ConfigError
from shared.models import Action, ToolSpec
from shared.points import element_at
from shared.snapshot import Snapshot, parse_snapshot

GESTURE: TypeAdapter[Gesture] = TypeAdapter(Gesture)
PAGE = """
- generic [active] [ref=e1] [box=0,0,1280,2000]:
  - textbox "Search" [ref=e2] [box=100,10,300,40]
  - link "Card" [ref=e3] [cursor=pointer] [box=0,100,400,200]:
    - paragraph [ref=e4] [box=10,110,300,20]: by the sea
    - button "Buy" [ref=e5] [box=160,180,80,40]
  - slider "Price" [ref=e6] [box=500,100,200,20]: "40"
  - generic [ref=e7] [box=400,500,200,20]:
    - text: City
    - combobox "City" [ref=e8] [box=450,480,140,60]:
      - option "Lisbon" [box=0,0,0,0]
  - list [ref=e9] [box=700,100,300,300]:
    - listitem [ref=e10] [box=700,100,300,50]: one
    - listitem [ref=e11] [box=700,150,300,50]: two
"""
SNAPSHOT = parse_snapshot(PAGE)
TOOLS = [
    ToolSpec(name=name, description="", parameters={"properties": {"target": {}}})
    for name in (
        "browser_click browser_type browser_select_option browser_hover browser_drag browser_press_key"
        " browser_mouse_click_xy browser_mouse_move_xy browser_mouse_drag_xy browser_mouse_wheel finish"
    ).split()
]


def done(gesture: dict[str, Any], snapshot: Snapshot = SNAPSHOT, tools: list[ToolSpec] = TOOLS) -> Action:
    return action_of(GESTURE.validate_python(gesture), snapshot, tools)


def at(x: float, y: float, **more: Any) -> dict[str, Any]:
    return {"x": x, "y": y, **more}


@pytest.mark.parametrize(
    ("gesture", "tool", "params"),
    [
        ({"kind": "click", "at": at(110, 20)}, "browser_click", {"target": "e2", "element": "textbox Search"}),
        ({"kind": "click", "at": {"ref": "e5"}}, "browser_click", {"target": "e5", "element": "button Buy"}),
        (
            {"kind": "click", "at": at(200, 190), "button": "right"},
            "browser_click",
            {"target": "e5", "element": "button Buy", "button": "right"},
        ),
        (
            {"kind": "click", "at": at(110, 20), "count": 2},
            "browser_click",
            {"target": "e2", "element": "textbox Search", "doubleClick": True},
        ),
        # At the centre of this link is a button.
        ({"kind": "click", "at": at(20, 115)}, "browser_mouse_click_xy", {"x": 20, "y": 115}),
        # Where on a slider is the value.
        ({"kind": "click", "at": at(690, 110)}, "browser_mouse_click_xy", {"x": 690, "y": 110}),
        ({"kind": "click", "at": at(110, 20, exact=True)}, "browser_mouse_click_xy", {"x": 110, "y": 20}),
        ({"kind": "click", "at": at(1100, 900)}, "browser_mouse_click_xy", {"x": 1100, "y": 900}),
        (
            {"kind": "click", "at": at(110, 20), "count": 3},
            "browser_mouse_click_xy",
            {"x": 110, "y": 20, "clickCount": 3},
        ),
        # The label's line of text is smaller than the field in it.
        ({"kind": "hover", "at": at(460, 510)}, "browser_hover", {"target": "e8", "element": "combobox City"}),
        ({"kind": "hover", "at": at(1100, 900.04)}, "browser_mouse_move_xy", {"x": 1100, "y": 900.0}),
        (
            {"kind": "type", "at": {"ref": "e2"}, "text": "lamp", "submit": True},
            "browser_type",
            {"target": "e2", "element": "textbox Search", "text": "lamp", "submit": True},
        ),
        ({"kind": "type", "text": " a\n"}, "browser_type", {"text": " a\n"}),
        (
            {"kind": "select", "at": at(460, 510), "values": ["Lisbon"]},
            "browser_select_option",
            {"target": "e8", "element": "combobox City", "values": ["Lisbon"]},
        ),
        (
            {"kind": "drag", "start": at(720, 120), "end": at(720, 180)},
            "browser_drag",
            {"startTarget": "e10", "startElement": "listitem one", "endTarget": "e11", "endElement": "listitem two"},
        ),
        (
            {"kind": "drag", "start": at(510, 110), "end": at(690, 110)},
            "browser_mouse_drag_xy",
            {"startX": 510, "startY": 110, "endX": 690, "endY": 110},
        ),
        # Within one element, the way is what matters.
        (
            {"kind": "drag", "start": at(710, 110), "end": at(990, 140)},
            "browser_mouse_drag_xy",
            {"startX": 710, "startY": 110, "endX": 990, "endY": 140},
        ),
        (
            {"kind": "drag", "start": {"ref": "e6"}, "end": at(690, 110)},
            "browser_mouse_drag_xy",
            {"startX": 600, "startY": 110, "endX": 690, "endY": 110},
        ),
        ({"kind": "wheel", "at": at(5, 6), "dy": -300}, "browser_mouse_wheel", {"x": 5, "y": 6, "deltaY": -300}),
        ({"kind": "call", "tool": "finish", "params": {"answer": "42"}}, "finish", {"answer": "42"}),
    ],
)
def test_a_gesture_is_a_tool_call_by_element_where_there_is_one(
    gesture: dict[str, Any], tool: str, params: dict[str, Any]
) -> None:
    assert done(gesture) == Action(tool=tool, params=params)


@pytest.mark.parametrize(
    ("gesture", "problem"),
    [
        ({"kind": "click", "at": {"ref": "e99"}}, "no element 'e99' on this page"),
        ({"kind": "click", "at": {}}, "has not said where this is"),
        ({"kind": "type", "at": at(1100, 900), "text": "a"}, "no element at this point"),
        ({"kind": "call", "tool": "browser_evaluate"}, "does not offer 'browser_evaluate'"),
    ],
)
def test_what_the_judge_does_not_offer_is_refused(gesture: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        done(gesture)


def test_without_tools_for_points_only_elements_can_be_clicked() -> None:
    by_element = [tool for tool in TOOLS if not tool.name.endswith("_xy")]
    assert done({"kind": "click", "at": at(110, 20)}, tools=by_element).tool == "browser_click"
    with pytest.raises(ConfigError, match="choose an element from the list"):
        done({"kind": "click", "at": at(1100, 900)}, tools=by_element)


BOXES = st.tuples(*[st.integers(0, 200)] * 2, *[st.integers(0, 150)] * 2)
ROLES = st.sampled_from(["button", "link", "generic", "slider", "textbox", "paragraph", "img", "dialog"])
NODES = st.lists(st.tuples(st.integers(0, 4), ROLES, BOXES, st.booleans()), max_size=12)


@given(NODES, st.floats(0, 300), st.floats(0, 300))
def test_a_click_by_element_goes_to_what_was_pointed_at(
    nodes: list[tuple[int, str, tuple[int, ...], bool]], x: float, y: float
) -> None:
    lines, depth = ["- generic [ref=e0] [box=0,0,300,300]:"], 0
    for number, (reference, role, box, is_pointer) in enumerate(nodes, 1):
        depth = min(reference, depth + 1)
        pointer = " [cursor=pointer]" if is_pointer else ""
        text = ",".join(map(str, box))
        lines.append(f'{"  " * (depth + 1)}- {role} "n{number}" [ref=e{number}]{pointer} [box={text}]:')
    snapshot = parse_snapshot("\n".join(lines))
    action = done({"kind": "click", "at": at(x, y)}, snapshot)
    if action.tool == "browser_mouse_click_xy":
        assert (action.params["x"], action.params["y"]) == (round(x, 1), round(y, 1))
        return
    node = snapshot.by_ref(action.params["target"])
    assert node is not None
    assert node.box is not None
    left, top, width, height = node.box
    assert node == element_at(snapshot, (x, y)) == element_at(snapshot, (left + width / 2, top + height / 2))
    assert node.role not in ("slider", "img")
