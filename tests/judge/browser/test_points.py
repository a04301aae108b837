import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.action_lines import action_line
from judge.browser.points import focused, read_hits, typing_code
from judge.browser.tools import CheckedAction
from shared.points import Box, element_at
from shared.snapshot import Snapshot, parse_snapshot
from shared.text import split_line

# Two cards in a list, a header that stays above them, a frame, text, a dialog below all of it in the document.
PAGE = """
- generic [active] [ref=e1] [box=0,0,1280,2000]:
  - banner [ref=e2] [box=0,0,1280,60]:
    - textbox "Search" [ref=e3] [box=100,10,300,40]
    - generic [ref=e4] [cursor=pointer] [box=1200,10,40,40]
  - list [ref=e5] [box=0,-100,1280,400]:
    - link [ref=e6] [cursor=pointer] [box=0,-100,640,400]:
      - heading "Casa Mar" [level=3] [ref=e7] [box=0,100,640,40]
      - paragraph [ref=e8] [box=0,150,300,20]: by the sea
    - listitem [ref=e9] [box=640,-100,640,400]:
      - button "Buy" [ref=e10] [box=700,100,80,30]
      - text: only 3 left
  - iframe [ref=e11] [box=100,400,200,100]:
    - generic [ref=f1e1] [box=8,8,184,600]:
      - button "inside" [ref=f1e2] [box=10,20,60,20]
      - button "below" [ref=f1e3] [box=10,300,60,20]
      - iframe [ref=f1e4] [box=100,10,80,80]:
        - button "deep" [ref=f2e1] [box=5,5,20,20]
  - paragraph [ref=e12] [box=500,400,200,20]: under the dialog
"""
DIALOG = """  - dialog "Sure?" [ref=e20] [box=400,350,400,200]:
    - button "Yes" [ref=e21] [box=410,500,60,30]
"""


@pytest.mark.parametrize(
    ("point", "ref"),
    [
        ((101, 11), "e3"),
        ((399.9, 49.9), "e3"),
        # Between the header's elements, where a larger card lies below it.
        ((400, 30), None),
        ((1210, 20), "e4"),
        ((10, 110), "e6"),
        ((10, 155), "e6"),
        ((700, 100), "e10"),
        # The item has text of its own.
        ((1000, 200), "e9"),
        ((115, 425), "f1e2"),
        ((206, 416), "f2e1"),
        # Scrolled out of sight inside the frame.
        ((115, 705), None),
        ((250, 490), None),
        ((600, 405), "e12"),
        ((900, 900), None),
    ],
)
def test_the_element_under_a_point_is_the_innermost_control_or_text(
    point: tuple[float, float], ref: str | None
) -> None:
    node = element_at(parse_snapshot(PAGE), point)
    assert (node.ref if node else None) == ref


@pytest.mark.parametrize(("point", "ref"), [((415, 510), "e21"), ((600, 405), "e20"), ((101, 11), "e3")])
def test_an_open_dialog_is_above_the_rest_of_the_page(point: tuple[float, float], ref: str) -> None:
    node = element_at(parse_snapshot(PAGE + DIALOG), point)
    assert node is not None
    assert node.ref == ref


BUY = (700.2, 99.8, 79.9, 30)


@pytest.mark.parametrize(
    ("hit", "ref"),
    [
        ([(701, 101, 20, 20), BUY, (640, -100, 640, 400)], "e10"),
        # Something covers the button.
        ([(650, 50, 500, 500), (0, 0, 1280, 2000)], None),
        ([(0, 100, 640, 40), (0, -100, 640, 400)], "e6"),
        ([(5, 5, 1, 1)], None),
        ([], None),
        (None, "e10"),
    ],
)
def test_what_the_browser_finds_at_a_point_counts_more_than_boxes(hit: list[Box] | None, ref: str | None) -> None:
    node = element_at(parse_snapshot(PAGE), (710, 110), hit)
    assert (node.ref if node else None) == ref


@pytest.mark.parametrize("text", ["", "null", "[[[1, 2, 3]]]", "[[[1, 2, 3, null]]]", '[[["nan", 2, 3, 4]]]'])
def test_an_unusable_answer_of_the_page_is_none(text: str) -> None:
    assert read_hits(text) is None


def test_hits_are_read_for_each_point() -> None:
    assert read_hits("[[[1,2,3,4.5]],[]]") == (((1, 2, 3, 4.5),), ())


def test_a_field_is_above_the_smaller_line_of_its_label() -> None:
    page = """
- generic [ref=e1] [box=0,0,500,500]:
  - generic [ref=e2] [box=10,20,200,17]:
    - text: City
    - combobox "City" [ref=e3] [box=60,10,140,37]
"""
    at = [element_at(parse_snapshot(page), point) for point in ((100, 25), (20, 25))]
    assert [node.ref if node else None for node in at] == ["e3", "e2"]


def test_nothing_is_under_a_point_of_a_snapshot_without_boxes() -> None:
    assert element_at(parse_snapshot('- button "Buy" [ref=e1]'), (5, 5)) is None


@pytest.mark.parametrize(
    ("snapshot", "ref"),
    [
        (PAGE, None),
        ('- generic [ref=e1]:\n  - textbox "A" [active] [ref=e2]', "e2"),
        ('- textbox "A" [active] [ref=e2]', "e2"),
        ("- iframe [active] [ref=e1]:\n  - generic [active] [ref=f1e1]:\n    - textbox [active] [ref=f1e2]", "f1e2"),
        ("- iframe [active] [ref=e1]:\n  - generic [active] [ref=f1e1]: typed into the frame", None),
        ("- generic [ref=e1]:\n  - iframe [active] [ref=e2]", None),
        ("", None),
    ],
)
def test_the_focus_is_on_an_element_and_never_on_a_whole_document(snapshot: str, ref: str | None) -> None:
    node = focused(parse_snapshot(snapshot))
    assert (node.ref if node else None) == ref


PARSED = parse_snapshot(PAGE)


@pytest.mark.parametrize(
    ("tool", "params", "expected"),
    [
        ("browser_mouse_click_xy", {"x": 120, "y": 30}, "<Search textbox> -> CLICK (120, 30)"),
        ("browser_mouse_click_xy", {"x": 120.26, "y": 30.0}, "<Search textbox> -> CLICK (120.3, 30)"),
        ("browser_mouse_click_xy", {"x": 10, "y": 110}, "<Casa Mar by the sea link> -> CLICK (10, 110)"),
        ("browser_mouse_click_xy", {"x": 1210, "y": 20}, "<generic> -> CLICK (1210, 20)"),
        ("browser_mouse_click_xy", {"x": 900, "y": 900}, "<page> -> CLICK (900, 900)"),
        ("browser_mouse_click_xy", {"x": 0.00001, "y": 900, "button": "right"}, "<page> -> RIGHT CLICK (0, 900)"),
        ("browser_mouse_click_xy", {"x": 710, "y": 110, "clickCount": 2}, "<Buy button> -> DOUBLE CLICK (710, 110)"),
        ("browser_mouse_click_xy", {"x": 710, "y": 110, "clickCount": 3}, "<Buy button> -> TRIPLE CLICK (710, 110)"),
        ("browser_mouse_move_xy", {"x": 710, "y": 110}, "<Buy button> -> HOVER (710, 110)"),
        (
            "browser_mouse_drag_xy",
            {"startX": 710, "startY": 110, "endX": 120, "endY": 30},
            "<Buy button> -> DRAG: to Search textbox (710, 110) to (120, 30)",
        ),
        (
            "browser_mouse_drag_xy",
            {"startX": 900, "startY": 900, "endX": 901, "endY": 900},
            "<page> -> DRAG: to page (900, 900) to (901, 900)",
        ),
        ("browser_mouse_wheel", {"deltaY": 300}, "<page> -> SCROLL: down 300"),
        (
            "browser_mouse_wheel",
            {"deltaY": -300, "deltaX": 20, "x": 710, "y": 110},
            "<Buy button> -> SCROLL: up 300, right 20 (710, 110)",
        ),
        ("browser_type", {"text": "lamp (1, 2)"}, "<page> -> TYPE: lamp (1, 2)"),
    ],
)
def test_a_line_names_what_is_under_the_point_and_ends_with_the_coordinates(
    tool: str, params: dict[str, float], expected: str
) -> None:
    line = action_line(CheckedAction(tool=tool, params=params), PARSED)
    assert line == expected
    assert split_line(line) is not None


def test_text_typed_at_the_focus_is_typed_into_the_focused_field() -> None:
    page = parse_snapshot('- generic [ref=e1]:\n  - searchbox "Find" [active] [ref=e2]: lamp\n  - button "Go" [ref=e3]')
    checked = CheckedAction(tool="browser_type", params={"text": "desk", "submit": True})
    assert action_line(checked, page) == "<Find searchbox> -> TYPE AND ENTER: desk"


def test_without_a_snapshot_a_point_is_on_the_page() -> None:
    checked = CheckedAction(tool="browser_mouse_click_xy", params={"x": 1, "y": 2})
    assert action_line(checked, None) == action_line(checked, Snapshot()) == "<page> -> CLICK (1, 2)"


@given(st.text(max_size=50), st.booleans(), st.booleans())
def test_typed_text_reaches_the_server_as_data_in_ascii(text: str, submit: bool, slowly: bool) -> None:
    code = typing_code(text, submit=submit, slowly=slowly, limit_ms=5_000)
    assert code.isascii()
    literal = json.JSONDecoder().raw_decode(code, code.index("JSON.parse(") + len("JSON.parse("))[0]
    assert json.loads(literal) == {"text": text, "submit": submit, "slowly": slowly, "limit_ms": 5_000}
    assert code == typing_code("", limit_ms=0).replace(
        json.dumps(json.dumps({"text": "", "submit": False, "slowly": False, "limit_ms": 0})), json.dumps(literal)
    )
