import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.snapshot import REF, as_shown, cut_snapshot, parse_snapshot

# Written by Playwright 1.65's server for a page made for the purpose (Chromium 156).
REAL = r"""
- generic [active] [ref=e1]:
  - 'heading "Hello: \"big\" # world" [level=1] [ref=e2]'
  - 'link "link a: b" [ref=e3] [cursor=pointer]':
    - /url: two.html?a=1&b=2#x
  - 'link "It''s: fine" [ref=e4] [cursor=pointer]':
    - /url: x
  - 'link "{braces} `tick`" [ref=e5] [cursor=pointer]':
    - /url: "y"
  - link "back\\slash \"q\"" [ref=e6] [cursor=pointer]:
    - /url: z
  - paragraph [ref=e7]: "plain text - with: colon"
  - paragraph [ref=e11]: "\"quoted\""
  - paragraph [ref=e12]: "line sep … nel \x7f del"
  - generic [ref=e13]:
    - text: Name
    - textbox "Name" [ref=e14]:
      - /placeholder: "Type: here"
      - text: "abc: def"
  - checkbox "Chk" [checked] [ref=e15]
  - checkbox "Mixed" [checked=mixed] [ref=e16]
  - button "PM" [pressed=mixed] [ref=e18]
  - button "D" [disabled] [ref=e19]
  - button "E" [expanded] [ref=e20]
  - button [ref=e21]
  - combobox "Sel" [ref=e23]:
    - option "A"
    - option "B" [selected]
  - slider "R" [ref=e24]: "30"
  - textbox "TA" [ref=e25]: one two
  - list [ref=e28]:
    - listitem [ref=e29]: item one
    - listitem [ref=e30]:
      - text: item two
      - link "in" [ref=e31] [cursor=pointer]:
        - /url: q
  - iframe [ref=e37]:
    - generic [ref=f1e1]:
      - button "in frame" [ref=f1e2] [box=8,8.5,64,21]
      - iframe [ref=f1e3]:
        - button "deep" [ref=f2e2]
  - textbox "inv" [invalid] [ref=e39]: "5"
  - link "/regex/" [ref=e41] [cursor=pointer]:
    - /url: w
  - img "a]b [ref=e1]" [ref=e43]
  - paragraph [ref=e44]: text [ref=e9]
  - paragraph [ref=e46]: "link \"x\" [ref=e3]:"
""".strip("\n")
SNAPSHOT = parse_snapshot(REAL)


def node(ref: Any) -> Any:
    node_found = SNAPSHOT.by_ref(ref)
    assert node_found is not None
    return node_found


@pytest.mark.parametrize(
    ("ref", "role", "name"),
    [
        ("e2", "heading", 'Hello: "big" # world'),
        ("e3", "link", "link a: b"),
        ("e4", "link", "It's: fine"),
        ("e5", "link", "{braces} `tick`"),
        ("e6", "link", 'back\\slash "q"'),
        ("e21", "button", ""),
        ("f2e2", "button", "deep"),
        ("e41", "link", "/regex/"),
        ("e43", "img", "a]b [ref=e1]"),
    ],
)
def test_role_and_name_are_read_with_any_quoting(ref: Any, role: str, name: str) -> None:
    assert (node(ref).role, node(ref).name) == (role, name)


@pytest.mark.parametrize(
    ("ref", "states"),
    [
        ("e1", {"active": "true"}),
        ("e3", {"cursor": "pointer"}),
        ("e15", {"checked": "true"}),
        ("e16", {"checked": "mixed"}),
        ("e18", {"pressed": "mixed"}),
        ("e19", {"disabled": "true"}),
        ("e20", {"expanded": "true"}),
        ("e39", {"invalid": "true"}),
        ("e21", {}),
    ],
)
def test_states_are_read(ref: Any, states: Any) -> None:
    assert node(ref).states == states


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ("e7", "plain text - with: colon"),
        ("e11", '"quoted"'),
        ("e12", "line sep … nel \x7f del"),
        ("e14", "abc: def"),
        ("e24", "30"),
        ("e25", "one two"),
        ("e30", "item two"),
        ("e39", "5"),
        ("e44", "text [ref=e9]"),
        ("e46", 'link "x" [ref=e3]:'),
        ("e21", ""),
    ],
)
def test_what_an_element_holds_is_read(ref: Any, value: Any) -> None:
    assert SNAPSHOT.value_of(node(ref)) == value


def test_properties_belong_to_the_element_around_them() -> None:
    assert node("e3").url == "two.html?a=1&b=2#x"
    assert node("e5").url == "y"
    assert node("e14").placeholder == "Type: here"


def test_level_and_box_are_numbers() -> None:
    assert node("e2").level == 1
    assert node("f1e2").box == (8, 8.5, 64, 21)


def test_a_reference_in_a_name_or_text_names_nothing() -> None:
    assert SNAPSHOT.by_ref("e9") is None
    assert node("e1").role == "generic"


def test_parents_come_from_the_inside_out() -> None:
    assert [parent.ref for parent in SNAPSHOT.parents(node("f2e2"))] == ["f1e3", "f1e1", "e37", "e1"]


def test_the_content_of_an_element_comes_in_order() -> None:
    assert [inner.name for inner in SNAPSHOT.subtree(node("e23"))] == ["Sel", "A", "B"]
    assert SNAPSHOT.text_of(node("e28")) == "item one item two in"


def test_a_regular_expression_is_read_as_a_name() -> None:
    [node_found] = parse_snapshot(r"- link /Issue \d+\/x/ [ref=e2]").nodes
    assert (node_found.name, node_found.ref) == (r"Issue \d+\/x", "e2")


def test_a_separator_in_a_name_does_not_end_the_line() -> None:
    [node_found] = parse_snapshot('- button "a\u2028- link \u0085b" [ref=e2]').nodes
    assert node_found.name == "a\u2028- link \u0085b"


def test_the_first_of_two_elements_with_one_reference_counts() -> None:
    page = parse_snapshot('- link "a" [ref=e2]\n- link "b" [ref=e2]')
    assert page.by_ref("e2") == page.nodes[0]


def test_a_state_written_twice_counts_once() -> None:
    assert parse_snapshot("- button [ref=e2] [ref=e3]").nodes[0].ref == "e2"


@pytest.mark.parametrize(
    "line", ["", "-", "- ", "- 'open", '- link "open', "x", "- link [ref", "- a b", "- 'a: b'", "- /url: x"]
)
def test_a_line_that_is_not_a_node_is_ignored(line: str) -> None:
    assert [node_found.role for node_found in parse_snapshot(f"- main\n{line}\n- button").nodes] == ["main", "button"]


@pytest.mark.parametrize("ref", ["e", "x1", "e1 ", "e-1", "f1", "e" + "1" * 30, "E1"])
def test_an_invalid_reference_is_ignored(ref: Any) -> None:
    assert not REF.fullmatch(ref)
    assert parse_snapshot(f"- button [ref={ref}]").nodes[0].ref is None


def test_a_lone_surrogate_in_a_name_becomes_encodable() -> None:
    parse_snapshot(r'- button "\ud800" [ref=e1]').nodes[0].name.encode("utf-8")


def yaml_key(role: str, name: str, ref: Any) -> Any:
    """As Playwright's renderer writes it, always quoted."""
    key = f"{role} {json.dumps(name, ensure_ascii=False)} [ref={ref}]"
    return "'" + key.replace("'", "''") + "'"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs", "Cc"])),
)
def test_any_name_and_value_come_back(name: str, value: Any) -> None:
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    [node_found] = parse_snapshot(f"- {yaml_key('button', name, 'e7')}: {quoted}").nodes
    assert (node_found.role, node_found.name, node_found.ref, node_found.text) == ("button", name, "e7", value)


pieces = st.sampled_from(
    ["- ", "  ", "\n", "'", '"', ":", ": ", "[", "]", "[ref=e1]", "link", "/url", "\\", "\\x4", "text"]
)


@given(st.lists(pieces | st.text(max_size=3), max_size=40).map("".join))
def test_no_text_raises_and_parents_enclose_their_children(text: str) -> None:
    snapshot = parse_snapshot(text)
    for node_found in snapshot.nodes:
        assert all(parent.depth < node_found.depth for parent in snapshot.parents(node_found))
        assert next(snapshot.subtree(node_found)) is node_found
        snapshot.value_of(node_found)


HOSTILE = [
    "- a " + '"\\' * 200_000,
    "- '" + "''" * 200_000,
    "- a" + " [x]" * 200_000 + "!",
    "- a" + " [" * 200_000,
    "- /" * 200_000,
    "- a\n" + "  - /url: x\n" * 50_000,
    "".join("  " * depth + "- a\n" for depth in range(1_000)),
    '- a: "' + "\\x" * 200_000 + '"',
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_of_any_size_is_read_to_its_end(text: str) -> None:
    nodes = parse_snapshot(text + "\n- button [ref=e5]").nodes
    assert nodes[-1].ref == "e5"


@settings(deadline=None)
@given(st.lists(st.text("ab -", max_size=30), max_size=40).map("\n".join), st.integers(0, 500))
def test_a_cut_snapshot_keeps_whole_lines_and_its_bound(text: str, limit: int) -> None:
    cut = cut_snapshot(text, limit)
    assert len(cut) <= limit
    if cut != text:
        whole_lines = cut.rpartition("\n")[0]
        assert f"{text}\n".startswith(f"{whole_lines}\n") or whole_lines == ""


def test_a_snapshot_that_fits_is_not_touched() -> None:
    assert cut_snapshot(REAL, len(REAL)) == REAL


def test_the_note_states_what_was_left_out() -> None:
    text = "\n".join(f"- text: {number:04}" for number in range(100))
    cut = cut_snapshot(text, 250).split("\n")
    left_out = 100 - (len(cut) - 1)
    assert cut[-1].startswith(f"# {left_out} more lines ({left_out * 13 - 1} characters) left out: use browser_find")
    assert cut[-2] == f"- text: {100 - left_out - 1:04}"


@pytest.mark.parametrize(
    ("boxed", "plain"),
    [
        ('- link "Go" [ref=e1] [cursor=pointer] [box=8,-16,20,10]:', '- link "Go" [ref=e1] [cursor=pointer]:'),
        ("  - paragraph [ref=e2] [box=0,0,1264,18]: Price", "  - paragraph [ref=e2]: Price"),
        ("- 'heading \"a: b\" [level=1] [ref=e2] [box=1.5,2,3,4]'", "- 'heading \"a: b\" [level=1] [ref=e2]'"),
        ("- 'link \"it''s: x\" [ref=e2] [box=1,2,3,4]':", "- 'link \"it''s: x\" [ref=e2]':"),
        ('- button "\\"" [ref=e3] [box=1,2,3,4]', '- button "\\"" [ref=e3]'),
    ],
)
def test_only_the_box_is_removed(boxed: str, plain: str) -> None:
    assert as_shown(boxed) == plain


@pytest.mark.parametrize(
    "line",
    [
        '- link "x [box=1,2,3,4]" [ref=e1]',
        "- text: see [box=1,2,3,4]",
        "- paragraph [ref=e2]: it says [box=1,2,3,4]",
        "  - /url: /x [box=1,2,3,4]",
    ],
)
def test_page_content_that_looks_like_a_box_is_kept(line: str) -> None:
    assert as_shown(line) == line


@given(st.text(max_size=40), st.lists(st.integers(-9999, 9999), min_size=4, max_size=4))
def test_removing_boxes_keeps_any_name(name: str, box: list[int]) -> None:
    head = f"- link {json.dumps(name)} [ref=e1]"
    assert as_shown(f"{head} [box={','.join(map(str, box))}]:") == f"{head}:"


@given(st.text())
def test_a_text_as_shown_is_unchanged(text: str) -> None:
    if "[box=" not in text:
        assert as_shown(text) == text


CODE = """- code [ref=e1]:
  - link "json" [ref=e2] [joined=after]:
    - /url: /x
  - text: .
  - strong [ref=e3] [joined]: dumps
  - text: (
  - emphasis [ref=e4]: obj"""


def test_what_is_joined_is_one_word() -> None:
    page = parse_snapshot(CODE)
    assert page.name_of(page.nodes[0]) == "json.dumps( obj"
    assert page.text_of(page.nodes[0]) == "json.dumps( obj"


def test_a_snapshot_that_does_not_say_what_is_joined_has_spaces_between_all_pieces() -> None:
    page = parse_snapshot(re.sub(r" \[joined[^\]]*\]", "", CODE))
    assert page.name_of(page.nodes[0]) == "json . dumps ( obj"


@pytest.mark.parametrize("between", ['- textbox "Note" [ref=e9]: typed', "- img [ref=e9]", '- option "b"'])
def test_pieces_with_something_between_them_are_not_joined(between: str) -> None:
    page = parse_snapshot(f'- paragraph [ref=e1]:\n  - link "a" [joined] [ref=e2]\n  {between}\n  - link "c" [joined]')
    assert "ac" not in page.name_of(page.nodes[0])


def test_a_name_is_not_joined_to_the_content_of_its_own_element() -> None:
    page = parse_snapshot('- region "Cart" [joined] [ref=e1]:\n  - emphasis [joined] [ref=e2]: empty')
    assert page.text_of(page.nodes[0]) == "Cart empty"


def test_a_very_deep_page_is_joined_in_reasonable_time() -> None:
    lines = [f"{'  ' * depth}- generic [joined] [ref=e{depth}]:" for depth in range(1_000)]
    page = parse_snapshot("\n".join([*lines, *(f"{'  ' * 1_000}- text: a" for _ in range(1_000))]))
    assert page.text_of(page.nodes[0]) == " ".join("a" * 1_000)
