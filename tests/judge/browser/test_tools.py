from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.server_tools import FORBIDDEN, POINT_TOOLS, SERVER_TOOLS, tool
from judge.browser.tools import CheckedAction, Complaint, check_action, file_tools, offered_tools
from judge.records.files import TaskFile
from shared.models import Action, ObservationMessage, Page
from shared.protocol import parse_observation, render_observation, render_tools
from shared.snapshot import parse_snapshot

SNAPSHOT = parse_snapshot('- textbox "Search" [ref=e12]\n- button "Go" [ref=f2e7]\n- text: "[ref=e99]"')
TOOLS = offered_tools(SERVER_TOOLS)


def checked(tool_name: str, **params: Any) -> Any:
    return check_action(Action(tool=tool_name, params=params), TOOLS, SNAPSHOT)


def params(tool_name: str, **given_params: Any) -> Any:
    result = checked(tool_name, **given_params)
    assert isinstance(result, CheckedAction), result
    return result.params


def complaint(tool_name: str, **given_params: Any) -> Any:
    result = checked(tool_name, **given_params)
    assert isinstance(result, Complaint), result
    return result.text


def test_exactly_the_allowed_tools_are_offered() -> None:
    assert {spec.name for spec in TOOLS} == set(
        """
        browser_click browser_close browser_drag browser_fill_form browser_find browser_handle_dialog
        browser_hover browser_navigate browser_navigate_back browser_press_key browser_scroll
        browser_select_option browser_snapshot browser_tabs browser_type browser_wait_for finish
    """.split()
    )


@pytest.mark.parametrize("name", ["filename", "isolatedContext", "regex", "$schema", "boxes", "paths"])
def test_a_parameter_outside_the_policy_is_not_offered(name: str) -> None:
    assert name not in render_tools(TOOLS)


def test_a_tool_that_requires_an_unknown_parameter_is_not_offered() -> None:
    offered = offered_tools([tool("browser_hover", {"target": {"type": "string"}, "path": {}}, ("target", "path"))])
    assert "browser_hover" not in {spec.name for spec in offered}


def test_a_tool_that_the_server_lacks_is_not_offered() -> None:
    assert {spec.name for spec in offered_tools([])} == {"browser_scroll", "finish", "browser_close"}


POINTING = offered_tools(SERVER_TOOLS, "coordinates")
VIEWPORT = (1280, 720)


def pointing(name: str, **arguments: Any) -> Any:
    return check_action(Action(tool=name, params=arguments), POINTING, SNAPSHOT, viewport=VIEWPORT)


def test_with_coordinates_no_tool_takes_a_reference() -> None:
    assert {tool.name for tool in TOOLS} - {tool.name for tool in POINTING} == {
        "browser_click",
        "browser_drag",
        "browser_fill_form",
        "browser_hover",
        "browser_select_option",
    }
    assert {tool.name for tool in POINTING} - {tool.name for tool in TOOLS} == {tool.name for tool in POINT_TOOLS}
    assert "target" not in render_tools(POINTING).lower()
    assert "ref" not in render_tools(POINTING).split()


def test_with_both_every_tool_is_offered_and_typing_needs_no_target() -> None:
    both = offered_tools(SERVER_TOOLS, "both")
    assert {tool.name for tool in both} == {tool.name for tool in (*TOOLS, *POINTING)}
    typing = next(tool for tool in both if tool.name == "browser_type")
    assert typing.parameters["required"] == ["text"]
    assert "target" in typing.parameters["properties"]


@pytest.mark.parametrize("actions", ["coordinates", "both"])
def test_an_offer_with_points_is_written_in_lines(actions: Any) -> None:
    offered = offered_tools(SERVER_TOOLS, actions)
    page = Page(url="about:blank", title="", snapshot="")
    assert "schema:" not in render_tools(offered)
    assert parse_observation(render_observation(ObservationMessage(page=page, tools=offered))).tools == offered


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("browser_mouse_click_xy", {"x": 0, "y": 719.5, "element": "OK"}, {"x": 0, "y": 719.5}),
        ("browser_mouse_click_xy", {"x": "12", "y": 1, "clickCount": 2.0}, {"x": 12, "y": 1, "clickCount": 2}),
        ("browser_mouse_move_xy", {"x": 1279.9, "y": 0}, {"x": 1279.9, "y": 0}),
        (
            "browser_mouse_drag_xy",
            {"startX": 1, "startY": 2, "endX": 3, "endY": 4, "startElement": "a", "endElement": "b"},
            {"startX": 1, "startY": 2, "endX": 3, "endY": 4},
        ),
        ("browser_mouse_wheel", {"deltaY": -300, "x": 5, "y": 6}, {"deltaY": -300, "x": 5, "y": 6}),
        ("browser_type", {"text": "a", "element": "Search"}, {"text": "a"}),
        ("browser_type", {"text": "a", "submit": True}, {"text": "a", "submit": True}),
        ("browser_scroll", {"direction": "up", "element": "the list"}, {"direction": "up", "amount": 600}),
    ],
)
def test_points_and_text_without_a_target_are_accepted(name: str, arguments: Any, expected: Any) -> None:
    result = pointing(name, **arguments)
    assert isinstance(result, CheckedAction), result
    assert result.params == expected


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "browser_mouse_click_xy",
            {"x": 1280, "y": 5},
            "the point (1280, 5) is outside the viewport, which is 1280 by",
        ),
        (
            "browser_mouse_click_xy",
            {"x": 5, "y": -0.5},
            "the point (5, -0.5) is outside the viewport, which is 1280 by",
        ),
        ("browser_mouse_move_xy", {"x": 5, "y": 720}, "is outside the viewport, which is 1280 by 720 pixels."),
        (
            "browser_mouse_drag_xy",
            {"startX": 1, "startY": 2, "endX": 3, "endY": 9_999},
            "the point (3, 9999) is outside the viewport",
        ),
        ("browser_mouse_wheel", {"deltaY": 1, "x": 1}, 'send both "x" and "y", or neither'),
        ("browser_mouse_wheel", {"deltaY": 0}, 'send "deltaX" or "deltaY"'),
        ("browser_mouse_wheel", {"deltaY": 20_000}, "must be at most 10000"),
        ("browser_mouse_click_xy", {"x": "<x>", "y": "<y>"}, "must be of type number, not text"),
        ("browser_mouse_click_xy", {"x": 1, "y": 1, "clickCount": 4}, "must be at most 3"),
        ("browser_mouse_drag_xy", {"startX": 1, "startY": 1, "endX": 2, "endY": 2, "hold_ms": 10_001}, "at most 10000"),
        ("browser_mouse_click_xy", {"x": 1, "y": 1, "hold_ms": -1}, "must be at least 0"),
        ("browser_mouse_click_xy", {"x": 1, "y": 1, "delay": 5}, "there is no parameter"),
        ("browser_type", {"text": "a", "target": "e12"}, "there is no parameter"),
        ("browser_click", {"target": "e12"}, "There is no tool"),
    ],
)
def test_a_point_that_cannot_be_used_is_refused_with_the_reason(name: str, arguments: Any, message: str) -> None:
    result = pointing(name, **arguments)
    assert isinstance(result, Complaint), result
    assert message in result.text


def test_the_offer_stays_compact_and_is_written_in_lines() -> None:
    text = render_tools(TOOLS)
    assert "schema:" not in text
    assert len(text) < 4_000
    page = Page(url="about:blank", title="", snapshot="")
    assert parse_observation(render_observation(ObservationMessage(page=page, tools=TOOLS))).tools == TOOLS


@pytest.mark.parametrize("name", [*FORBIDDEN, *(each.name for each in POINT_TOOLS), "nonsense", "Browser_Click"])
def test_a_tool_that_is_not_offered_is_refused_with_those_that_are(name: str) -> None:
    assert complaint(name, filename="/etc/passwd").startswith(
        f'There is no tool "{name}"; use one of browser_navigate,'
    )


@pytest.mark.parametrize(
    ("name", "given_params", "expected"),
    [
        ("browser_click", {"ref": "e12", "element": "Search"}, {"target": "e12", "element": "Search"}),
        ("browser_click", {"ref": "e12", "target": "e12"}, {"target": "e12"}),
        ("browser_click", {"target": " [ref=f2e7] "}, {"target": "f2e7"}),
        ("browser_click", {"target": "@e12"}, {"target": "e12"}),
        ("browser_click", {"target": "e12", "doubleClick": "True"}, {"target": "e12", "doubleClick": True}),
        ("browser_click", {"target": "e12", "button": None}, {"target": "e12"}),
        ("browser_click", {"target": "e12", "modifiers": "Alt"}, {"target": "e12", "modifiers": ["Alt"]}),
        ("browser_drag", {"startRef": "e12", "endRef": "f2e7"}, {"startTarget": "e12", "endTarget": "f2e7"}),
        ("browser_type", {"target": "e12", "text": 42}, {"target": "e12", "text": "42"}),
        ("browser_select_option", {"target": "e12", "values": "A"}, {"target": "e12", "values": ["A"]}),
        ("browser_select_option", {"target": "e12", "values": [1]}, {"target": "e12", "values": ["1"]}),
        ("browser_tabs", {"action": "select", "index": "1"}, {"action": "select", "index": 1}),
        ("browser_tabs", {"action": "list", "index": 3, "url": "x"}, {"action": "list"}),
        ("browser_tabs", {"action": "new", "url": "a.example"}, {"action": "new", "url": "https://a.example"}),
        ("browser_wait_for", {"time": "1.5"}, {"time": 1.5}),
        ("browser_scroll", {"direction": "down"}, {"direction": "down", "amount": 600}),
        (
            "browser_scroll",
            {"direction": "up", "amount": "90", "ref": "e12"},
            {"direction": "up", "amount": 90, "target": "e12"},
        ),
        ("finish", {"answer": 7}, {"answer": "7"}),
    ],
)
def test_older_names_and_unambiguous_spellings_are_understood(name: str, given_params: Any, expected: Any) -> None:
    assert params(name, **given_params) == expected


def test_a_form_field_may_use_the_older_names() -> None:
    field = {"ref": "e12", "element": "Search box", "type": "checkbox", "value": True}
    expected = {"target": "e12", "name": "Search box", "type": "checkbox", "value": "true"}
    assert params("browser_fill_form", fields=[field]) == {"fields": [expected]}
    assert params("browser_fill_form", fields=field) == {"fields": [expected]}


def test_a_long_description_of_an_element_is_cut() -> None:
    assert len(params("browser_hover", target="e12", element="x" * 9_999)["element"]) == 200


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://shop.example/a?b#c", "https://shop.example/a?b#c"),
        (" http://127.0.0.1:8000/x ", "http://127.0.0.1:8000/x"),
        ("HTTPS://A.example", "HTTPS://A.example"),
        ("shop.example/x", "https://shop.example/x"),
        ("shop.example:8443/x", "https://shop.example:8443/x"),
        ("//shop.example/x", "https://shop.example/x"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("https://a.example/one two", "https://a.example/one two"),
    ],
)
def test_a_web_address_is_accepted_and_a_bare_host_gets_https(url: str, expected: Any) -> None:
    assert params("browser_navigate", url=url) == {"url": expected}


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "/search",
        "file:///etc/passwd",
        "data:text/html,x",
        "javascript:1",
        "java\nscript:alert(1)",
        "view-source:https://a.example",
        "about:blank",
        "https://",
        "https://a.example\\@b.example",
        "https://good.example@evil.example/",
        "https://a b.example/",
        "https://a.example/\u202e",
        "http://[::1",
        "http://a.example:99999/",
        "https://a.example/" + "x" * 2_048,
    ],
)
@pytest.mark.parametrize("call", [{"name": "browser_navigate"}, {"name": "browser_tabs", "action": "new"}])
def test_every_other_address_is_refused(url: str, call: dict[str, Any]) -> None:
    arguments = {key: value for key, value in call.items() if key != "name"}
    text = complaint(call["name"], url=url, **arguments)
    assert text.startswith(f"{call['name']}: ")


@pytest.mark.parametrize(
    ("name", "given_params", "message"),
    [
        ("browser_click", {}, 'the parameter "target" is missing.'),
        ("browser_click", {"target": "#buy"}, '"#buy" as "target" is not an element reference; send the ref'),
        ("browser_click", {"target": "text=Buy"}, "selectors are not accepted"),
        ("browser_click", {"target": "e99"}, "there is no element e99 in the current snapshot"),
        ("browser_click", {"target": "e12", "ref": "e13"}, '"ref" and "target" name different elements'),
        ("browser_click", {"target": "e12", "filename": "x"}, 'there is no parameter "filename"; known are: target,'),
        (
            "browser_click",
            {"target": "e12", "button": "any"},
            '"button" must be one of left, right, middle, not "any".',
        ),
        (
            "browser_click",
            {"target": "e12", "doubleClick": 2},
            '"doubleClick" must be of type boolean, not the number 2',
        ),
        ("browser_drag", {"startTarget": "e12", "endTarget": "e1"}, 'send a ref as "endTarget" that is.'),
        ("browser_type", {"target": "e12", "text": "x" * 10_001}, '"text" has 10001 characters; send at most 10000.'),
        ("browser_type", {"target": "e12", "text": {"a": 1}}, '"text" must be of type string, not an object.'),
        ("browser_select_option", {"target": "e12", "values": ["a"] * 51}, '"values" has 51 items; send at most 50.'),
        ("browser_select_option", {"target": "e12", "values": ["a" * 2_001]}, '"values" has 2001 characters'),
        ("browser_fill_form", {"fields": []}, '"fields" is empty'),
        (
            "browser_fill_form",
            {"fields": [{"target": "e1", "name": "", "type": "radio"}]},
            '"value" is missing in fields.0.',
        ),
        ("browser_fill_form", {"fields": ["x"]}, '"fields.0" must be of type object, not text.'),
        ("browser_press_key", {"key": "x" * 41}, '"key" has 41 characters'),
        ("browser_tabs", {"action": "select"}, 'needs the "index"'),
        ("browser_tabs", {"action": "close", "index": -1}, '"index" must be at least 0, not the number -1.'),
        ("browser_wait_for", {}, 'send "time", "text" or "textGone"'),
        ("browser_wait_for", {"time": 31}, '"time" must be at most 30, not the number 31.'),
        ("browser_find", {"regex": "(a+)+$"}, 'there is no parameter "regex"'),
        ("browser_scroll", {"direction": "down", "amount": 0}, '"amount" must be at least 1'),
        ("finish", {"answer": "x" * 10_001}, "send at most 10000"),
    ],
)
def test_a_refusal_says_what_was_wrong(name: str, given_params: Any, message: str) -> None:
    assert message in complaint(name, **given_params)


def test_without_a_snapshot_no_element_is_known() -> None:
    action = Action(tool="browser_click", params={"target": "e12"})
    assert isinstance(check_action(action, TOOLS, None), Complaint)


@pytest.mark.parametrize(("open_tabs", "kind"), [(1, Complaint), (2, CheckedAction), (None, CheckedAction)])
def test_the_only_tab_cannot_be_closed(open_tabs: int, kind: type) -> None:
    action = Action(tool="browser_tabs", params={"action": "close"})
    assert isinstance(check_action(action, TOOLS, SNAPSHOT, open_tabs=open_tabs), kind)


def test_the_participants_action_is_not_modified() -> None:
    action = Action(
        tool="browser_fill_form", params={"fields": [{"ref": "e12", "name": "n", "type": "radio", "value": True}]}
    )
    before = action.model_dump()
    check_action(action, TOOLS, SNAPSHOT)
    assert action.model_dump() == before


keys = st.sampled_from("target ref text url key fields action index time values direction x y deltaY".split())
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.just("e12")
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys | st.text(max_size=5), v, max_size=3)
)


BOTH = offered_tools(SERVER_TOOLS, "both")


@given(
    st.sampled_from([spec.name for spec in BOTH]) | st.text(max_size=80),
    st.dictionaries(keys | st.text(max_size=5), values, max_size=5),
)
def test_any_request_is_an_action_or_one_bounded_line(name: str, given_params: Any) -> None:
    result = check_action(Action(tool=name, params=given_params), BOTH, SNAPSHOT, viewport=VIEWPORT)
    if isinstance(result, Complaint):
        assert len(result.text) < 700
        assert len(result.text.splitlines()) == 1
    else:
        assert check_action(Action(tool=name, params=result.params), BOTH, SNAPSHOT, viewport=VIEWPORT) == result


FILES = (TaskFile.of("cv.pdf", b"%PDF"), TaskFile.of("süß, (1).txt", b"x"))


def test_tools_for_files_name_the_files_and_are_offered_with_files_only() -> None:
    offered = file_tools(FILES)
    assert [spec.name for spec in offered] == ["browser_file_upload", "browser_drop"]
    assert [spec.name for spec in file_tools(FILES, "coordinates")] == ["browser_file_upload"]
    assert file_tools(()) == ()
    text = render_tools(offered)
    assert "cv.pdf (application/pdf, 4 bytes), süß, (1).txt (text/plain, 1 bytes)" in text
    page = Page(url="http://shop.test/", title="Shop", snapshot="- text: hi")
    assert parse_observation(render_observation(ObservationMessage(page=page, tools=offered))).tools == offered


@pytest.mark.parametrize(
    ("paths", "checked_or_why"),
    [
        (["cv.pdf", "cv.pdf"], ["cv.pdf"]),
        ("cv.pdf", ["cv.pdf"]),
        (["/etc/passwd"], 'browser_file_upload: there is no file "/etc/passwd"; send names of: cv.pdf, süß, (1).txt.'),
        (["cv.pdf", "CV.pdf"], 'browser_file_upload: there is no file "CV.pdf"; send names of: cv.pdf, süß, (1).txt.'),
        ([], '"paths" is empty; send the name of at least one file.'),
    ],
)
@pytest.mark.parametrize("name", ["paths", "files"])
def test_only_declared_names_are_accepted(name: str, paths: Any, checked_or_why: Any) -> None:
    action_checked = check_action(Action(tool="browser_file_upload", params={name: paths}), file_tools(FILES), SNAPSHOT)
    assert (
        action_checked.text if isinstance(action_checked, Complaint) else action_checked.params["paths"]
    ) == checked_or_why
