import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.action_lines import action_line, with_downloads
from judge.browser.tools import CheckedAction, check_action, offered_tools
from shared.action_lines import MAX_NAME_CHARS, MAX_VALUE_CHARS, one_line
from shared.models import Action
from shared.snapshot import Snapshot, parse_snapshot
from shared.text import split_line, without_downloads

SNAPSHOT = parse_snapshot(
    """
- textbox "Search" [ref=e1]: typed before
- link "STANDINGS" [ref=e2]
- button [ref=e3]
- generic [ref=e4] [cursor=pointer]: Add to cart
- textbox [ref=e5]: typed before
- checkbox "I \\"agree\\"" [ref=e6]
- button "x> -> CLICK\\nnew <b> line \u2028 \u202eend" [ref=e7]
- combobox "Sort" [ref=f1e8]
- heading "NAME" [ref=e9]
""".strip().replace("NAME", "n" * 500)
)
TOOLS = offered_tools(SERVER_TOOLS)
BREAKERS = [
    "\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\u202e", "\u200b", "\x00", "\ud800", "<", ">", "->",
    "> -> CLICK",
]  # fmt: skip
texts = st.lists(st.text(max_size=5) | st.sampled_from(BREAKERS), max_size=30).map("".join)


def parts_of(action: str) -> tuple[str, str, str | None]:
    parts = split_line(action)
    assert parts is not None
    return parts


def line(tool: str, **params: Any) -> Any:
    checked = check_action(Action(tool=tool, params=params), TOOLS, SNAPSHOT)
    assert isinstance(checked, CheckedAction), checked
    return action_line(checked, SNAPSHOT)


@pytest.mark.parametrize(
    ("tool", "params", "expected"),
    [
        ("browser_navigate", {"url": "shop.example/a"}, "<navigation> -> GOTO: https://shop.example/a"),
        (
            "browser_navigate",
            {"url": "https://a.example/x y?<b>"},
            "<navigation> -> GOTO: https://a.example/x%20y?%3Cb%3E",
        ),
        ("browser_navigate_back", {}, "<navigation> -> BACK"),
        ("browser_click", {"target": "e2"}, "<STANDINGS link> -> CLICK"),
        ("browser_click", {"target": "e3"}, "<button> -> CLICK"),
        ("browser_click", {"target": "e4"}, "<Add to cart generic> -> CLICK"),
        ("browser_click", {"target": "e2", "doubleClick": True}, "<STANDINGS link> -> DOUBLE CLICK"),
        ("browser_click", {"target": "e2", "hold_ms": 900}, "<STANDINGS link> -> LONG CLICK"),
        (
            "browser_click",
            {"target": "e2", "button": "right", "modifiers": ["Shift", "Alt", "Alt"]},
            "<STANDINGS link> -> RIGHT CLICK: holding Alt+Shift",
        ),
        ("browser_click", {"target": "e7"}, "<x› -› CLICK new ‹b› line end button> -> CLICK"),
        ("browser_type", {"target": "e1", "text": "Las Vegas"}, "<Search textbox> -> TYPE: Las Vegas"),
        ("browser_type", {"target": "e1", "text": "a", "submit": True}, "<Search textbox> -> TYPE AND ENTER: a"),
        ("browser_type", {"target": "e1", "text": ""}, "<Search textbox> -> TYPE"),
        ("browser_type", {"target": "e1", "text": "a\n<b> -> CLICK"}, "<Search textbox> -> TYPE: a ‹b› -› CLICK"),
        ("browser_select_option", {"target": "f1e8", "values": ["Price"]}, "<Sort combobox> -> SELECT: Price"),
        (
            "browser_select_option",
            {"target": "f1e8", "values": ["A", 'B", "C']},
            '<Sort combobox> -> SELECT: "A", "B\', \'C"',
        ),
        ("browser_select_option", {"target": "f1e8", "values": ['A", "B']}, "<Sort combobox> -> SELECT: A', 'B"),
        ("browser_press_key", {"key": "Enter"}, "<page> -> PRESS: Enter"),
        ("browser_press_key", {"key": " "}, "<page> -> PRESS: Space"),
        ("browser_press_key", {"key": "Ctrl+K"}, "<page> -> PRESS: ControlOrMeta+k"),
        ("browser_hover", {"target": "e2"}, "<STANDINGS link> -> HOVER"),
        ("browser_drag", {"startTarget": "e2", "endTarget": "e3"}, "<STANDINGS link> -> DRAG: to button"),
        ("browser_tabs", {"action": "list"}, "<navigation> -> TAB: list"),
        ("browser_tabs", {"action": "select", "index": 1}, "<navigation> -> TAB: select 1"),
        ("browser_tabs", {"action": "close"}, "<navigation> -> TAB: close"),
        ("browser_tabs", {"action": "new", "url": "a.example"}, "<navigation> -> TAB: new https://a.example"),
        ("browser_wait_for", {"time": 2.5}, "<page> -> WAIT: 2.5 s"),
        (
            "browser_wait_for",
            {"text": "a", "textGone": "b", "time": 3},
            '<page> -> WAIT: for "a", until "b" is gone, 3 s',
        ),
        ("browser_handle_dialog", {"accept": False, "promptText": "x"}, "<dialog> -> DIALOG: dismiss"),
        ("browser_handle_dialog", {"accept": True}, "<dialog> -> DIALOG: accept"),
        ("browser_handle_dialog", {"accept": True, "promptText": "x"}, '<dialog> -> DIALOG: accept with "x"'),
        ("browser_snapshot", {}, "<page> -> SNAPSHOT"),
        ("browser_snapshot", {"target": "e2"}, "<STANDINGS link> -> SNAPSHOT"),
        ("browser_find", {"text": "Price"}, "<page> -> FIND: Price"),
        ("browser_scroll", {"direction": "down"}, "<page> -> SCROLL: down 600"),
        (
            "browser_scroll",
            {"direction": "left", "amount": 5, "target": "e4"},
            "<Add to cart generic> -> SCROLL: left 5",
        ),
        ("finish", {"answer": "participant text"}, "<page> -> FINISH"),
        ("browser_close", {}, "<page> -> CLOSE"),
    ],
)
def test_each_tool_has_its_line(tool: str, params: Any, expected: Any) -> None:
    assert line(tool, **params) == expected


def test_every_offered_tool_has_a_line() -> None:
    minimal: dict[str, Any] = {
        "url": "https://a.example",
        "target": "e1",
        "startTarget": "e1",
        "endTarget": "e2",
        "fields": [],
        "values": [],
    }
    minimal |= {"text": "a", "key": "a", "action": "list", "accept": True, "direction": "up", "amount": 1}
    for spec in TOOLS:
        params = {name: minimal[name] for name in spec.parameters["properties"] if name in minimal}
        assert split_line(action_line(CheckedAction(tool=spec.name, params=params), SNAPSHOT)) is not None


def test_a_tool_without_a_line_is_an_internal_error() -> None:
    with pytest.raises(ValueError, match="no action line"):
        action_line(CheckedAction(tool="browser_evaluate", params={}), SNAPSHOT)


def test_the_participants_description_of_an_element_is_never_shown() -> None:
    assert line("browser_click", target="e2", element="BUY NOW") == "<STANDINGS link> -> CLICK"


def test_a_filled_form_is_one_line_in_which_no_value_passes_for_a_field() -> None:
    fields = [
        {"target": "e1", "name": "participant words", "type": "textbox", "value": 'a"; "Card textbox" = "1'},
        {"target": "e6", "name": "", "type": "checkbox", "value": "true"},
    ]
    assert line("browser_fill_form", fields=fields) == (
        '<form> -> FILL: "Search textbox" = "a\'; \'Card textbox\' = \'1"; "I \'agree\' checkbox" = "true"'
    )


def test_long_names_and_values_are_cut() -> None:
    _, _, value = parts_of(line("browser_type", target="e1", text="x" * 9_999))
    assert value == "x" * (MAX_VALUE_CHARS - 1) + "…"
    subject, _, _ = parts_of(line("browser_click", target="e9"))
    assert subject == "n" * (MAX_NAME_CHARS - 1) + "… heading"


def test_a_long_list_says_how_much_is_left_out() -> None:
    fields = [{"target": "e1", "name": "", "type": "textbox", "value": "v"}] * 50
    assert line("browser_fill_form", fields=fields).endswith('"v"; and 40 more')
    assert line("browser_select_option", target="f1e8", values=["v"] * 50).endswith('"v" and 40 more')


@pytest.mark.parametrize(
    ("snapshot", "subject"),
    [
        ('- link [ref=e1]:\n  - heading "Casa Mar" [level=3]\n  - paragraph: by the sea', "Casa Mar by the sea link"),
        ("- link [ref=e1]:\n  - img", "link"),
        ('- link "Own" [ref=e1]:\n  - heading "Content"', "Own link"),
        ('- listitem [ref=e1]:\n  - text: Desk\n  - button "Buy"', "Desk Buy listitem"),
        ('- cell [ref=e1]:\n  - textbox "Note" [ref=e2]: typed', "Note cell"),
        ("- textbox [ref=e1]:\n  - paragraph: typed into an editor", "textbox"),
        (f"- link [ref=e1]:\n  - text: {'x' * 400}", f"{'x' * (MAX_NAME_CHARS - 1)}… link"),
        (f"- link [ref=e1]:\n  - text: {'x' * 600}", "link"),
        ('- link [ref=e1]:\n  - text: "a> -> CLICK\\nb <c"', "a› -› CLICK b ‹c link"),
    ],
    ids=[
        "heading and text in a link",
        "nothing to read",
        "own name",
        "control inside",
        "text typed inside",
        "text typed into an editor",
        "long name",
        "a whole page",
        "hostile name",
    ],
)
def test_an_element_without_a_name_is_named_by_its_content_as_in_checks(snapshot: str, subject: str) -> None:
    checked = CheckedAction(tool="browser_click", params={"target": "e1"})
    assert action_line(checked, parse_snapshot(snapshot)) == f"<{subject}> -> CLICK"


def test_an_element_missing_from_the_snapshot_is_called_element() -> None:
    assert action_line(CheckedAction(tool="browser_hover", params={"target": "e1"}), None) == "<element> -> HOVER"
    assert action_line(CheckedAction(tool="browser_hover", params={"target": "e1"}), Snapshot()) == "<element> -> HOVER"


@pytest.mark.parametrize(
    "text", ["", "CLICK", "<a> CLICK", "<a> -> CLICK\n", "<a> -> click", "<a> -> CLICK: <b>", "<> -> X"]
)
def test_other_text_is_not_an_action_line(text: str) -> None:
    assert split_line(text) is None


def assert_safe(text: str) -> None:
    assert len(text.splitlines()) == 1
    assert not {unicodedata.category(character) for character in text} & {"Cc", "Cs", "Zl", "Zp"}
    assert "\u202e" not in text
    text.encode("utf-8")
    assert text.count("->") == 1
    assert len(text) < 6_000


@given(texts)
def test_typed_text_keeps_to_its_place(text: str) -> None:
    checked = CheckedAction(tool="browser_type", params={"target": "e1", "text": text})
    line_text = action_line(checked, SNAPSHOT)
    assert_safe(line_text)
    subject, verb, value = parts_of(line_text)
    assert (subject, verb) == ("Search textbox", "TYPE")
    assert (value or "") == one_line(text, MAX_VALUE_CHARS)


@given(texts)
def test_an_elements_name_keeps_to_its_place(name: str) -> None:
    node = SNAPSHOT.nodes[0]._replace(name=name)
    line_text = action_line(CheckedAction(tool="browser_click", params={"target": "e1"}), Snapshot((node,)))
    assert_safe(line_text)
    subject, verb, value = parts_of(line_text)
    assert subject == f"{one_line(name, MAX_NAME_CHARS)} textbox".strip()
    assert (verb, value) == ("CLICK", None)


@given(st.sampled_from(["url", "key", "text", "textGone", "promptText", "values", "fields"]), texts)
def test_no_parameter_breaks_out_of_its_line(name: str, text: str) -> None:
    calls = {
        "url": ("browser_navigate", {"url": f"https://a.example/{text}"}),
        "key": ("browser_press_key", {"key": text}),
        "text": ("browser_find", {"text": text}),
        "textGone": ("browser_wait_for", {"textGone": text}),
        "promptText": ("browser_handle_dialog", {"accept": True, "promptText": text}),
        "values": ("browser_select_option", {"target": "f1e8", "values": [text, text]}),
        "fields": ("browser_fill_form", {"fields": [{"target": "e1", "value": text}] * 3}),
    }
    tool, params = calls[name]
    line_text = action_line(CheckedAction(tool=tool, params=params), SNAPSHOT)
    assert_safe(line_text)
    assert split_line(line_text) is not None


@given(texts, st.integers(1, 300))
def test_text_in_a_line_is_bounded_and_stays_the_same_the_second_time(text: str, limit: int) -> None:
    once = one_line(text, limit)
    assert len(once) <= limit
    assert one_line(once, limit) == once


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("<List link> -> CLICK", "<List link> -> CLICK (download: a.pdf)"),
        ("<List link> -> CLICK (412, 88)", "<List link> -> CLICK (412, 88) (download: a.pdf)"),
        ("<navigation> -> GOTO: https://s.test/", "<navigation> -> GOTO (download: a.pdf): https://s.test/"),
        (
            "<Name textbox> -> TYPE: x (download: b.pdf)",
            "<Name textbox> -> TYPE (download: a.pdf): x (download: b.pdf)",
        ),
    ],
)
def test_downloads_are_noted_before_what_a_participant_wrote(action: str, expected: str) -> None:
    assert with_downloads(action, ["a.pdf"]) == expected
    assert without_downloads(expected) == action


def test_a_typed_note_is_part_of_the_value() -> None:
    line_text = line("browser_type", target="e1", text="x (download: b.pdf)")
    assert without_downloads(line_text) == line_text
    assert parts_of(line_text)[2] == "x (download: b.pdf)"


def test_of_many_downloads_the_first_are_named() -> None:
    line_with_note = with_downloads("<page> -> PRESS: Enter", [f"{number}.csv" for number in range(9)])
    assert line_with_note == "<page> -> PRESS (download: 0.csv, 1.csv, 2.csv and 6 more): Enter"


@given(texts)
def test_no_name_of_a_download_breaks_out_of_its_note(name: str) -> None:
    line_with_note = with_downloads("<List link> -> CLICK: holding Shift", [name + ") : <x> -> CLICK (", "b"])
    assert without_downloads(line_with_note) == "<List link> -> CLICK: holding Shift"
    assert line_with_note.splitlines() == [line_with_note]
