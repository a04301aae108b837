"""What counts as evidence by who wrote it: documents of the task's own site, without what was typed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import SHOP, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.evaluators.provenance import evidence, own_names, written_by
from shared.snapshot import parse_snapshot

OTHER = "https://pay.example"
PAGE = f"""- generic [ref=e1]:
  - heading "Shop" [level=1] [ref=e2]
  - iframe [ref=e3] [box=0,0,1,1] [origin={OTHER}]:
    - heading "Paid" [level=1] [ref=f1e1]
    - iframe [ref=f1e2] [box=0,0,1,1] [origin={SHOP}]:
      - paragraph [ref=f2e1]: Back at the shop
  - iframe [ref=e4] [box=0,0,1,1] [origin=null]:
    - paragraph [ref=f3e1]: Nobody said so
  - iframe [ref=e5] [box=0,0,1,1]:
    - paragraph [ref=f4e1]: Said by somebody
  - textbox "Note" [ref=e6] [editable=host]:
    - heading "Order placed" [level=2] [ref=e7] [editable]
    - paragraph [editable]: and confirmed
    - iframe [ref=e8] [editable] [origin={SHOP}]:
      - button "Send" [ref=f5e1]
  - heading "Dear Ann" [level=3] [ref=e9] [typed=name:5-8]
  - row "Desk 2 pieces" [ref=e10] [typed=name:5-13]:
    - cell "Desk" [ref=e11]
    - cell "2 pieces" [ref=e12] [editable=host] [typed=name:0-8]
  - listitem [ref=e13] [editable=host] [typed=text:0-4]: Milk
  - paragraph [ref=e14] [typed=text:0-5]: Bread and butter
  - button "Buy" [ref=e15] [editable=unknown]
  - textbox "Search" [ref=e16] [typed=value,text:0-3]: oak
  - gridcell "Pieces" [ref=e17] [typed=value,text:0-2]: 17
  - 'radio "Other: plum" [ref=e18] [typed=name:7-11]'
  - generic [ref=e19]:
    - text: Memo
    - text [typed=text:0-6]: wholly
    - heading "Sent to Mary" [level=4]
    - heading "All received" [level=4] [editable]
    - textbox "Draft" [editable=host]:
      - paragraph [editable]: unfinished
  - text [typed=text:0-4]: Ours and theirs
  - text: Footer"""
PAGE_STEP = RecordedStep(snapshot=PAGE)
OWN = [
    {"kind": "element", "element": 'heading "Shop"'},
    {"kind": "text", "contains": "Back at the shop"},
    {"kind": "text", "contains": "Footer"},
    {"kind": "element", "element": 'textbox "Search": oak'},
    {"kind": "element", "element": 'gridcell "Pieces": 17'},
    {"kind": "element", "element": 'textbox "Note": Order placed and confirmed Send'},
    {"kind": "element", "element": 'row "Desk"'},
    {"kind": "element", "element": 'cell "Desk"'},
    {"kind": "element", "element": 'heading "Dear"'},
    {"kind": "element", "element": 'radio "Other:"'},
    {"kind": "text", "contains": "and butter"},
    {"kind": "text", "contains": "and theirs"},
    {"kind": "element", "element": "heading", "count": 3},
    {"kind": "text", "contains": "Memo"},
    {"kind": "text", "contains": "Desk", "count": 1},
    {"kind": "element", "element": 'heading "Sent to Mary"'},
]
OTHERS = [
    {"kind": "element", "element": 'heading "Paid"'},
    {"kind": "text", "contains": "Nobody said so"},
    {"kind": "text", "contains": "Said by somebody"},
    {"kind": "element", "element": "paragraph: Said by somebody"},
]
TYPED = [
    {"kind": "element", "element": 'heading "Order placed"'},
    {"kind": "text", "contains": "Order placed"},
    {"kind": "text", "contains": "and confirmed"},
    {"kind": "element", "element": 'button "Send"'},
    {"kind": "element", "element": 'heading "Dear Ann"'},
    {"kind": "text", "contains": "Dear Ann"},
    {"kind": "element", "element": 'row "Desk 2 pieces"'},
    {"kind": "element", "element": 'cell "2 pieces"'},
    {"kind": "element", "element": "listitem: Milk"},
    {"kind": "text", "contains": "Milk"},
    {"kind": "text", "contains": "Bread"},
    {"kind": "text", "contains": "17"},
    {"kind": "text", "contains": "plum"},
    {"kind": "text", "contains": "Ours"},
    {"kind": "element", "element": 'radio "Other: plum"'},
    {"kind": "element", "element": 'button "Buy"'},
    {"kind": "text", "within": 'textbox "Note"', "contains": "confirmed"},
    {"kind": "text", "contains": "wholly"},
    {"kind": "element", "element": 'heading "All received"'},
    {"kind": "text", "contains": "unfinished"},
]


@pytest.mark.parametrize("check", OWN, ids=str)
def test_what_the_site_itself_wrote_counts(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, check, [PAGE_STEP]).passed is True


@pytest.mark.parametrize("check", [*OTHERS, *TYPED], ids=str)
def test_what_others_wrote_does_not_count(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, check, [PAGE_STEP]).passed is False


@pytest.mark.parametrize("check", TYPED, ids=str)
def test_with_editable_what_was_typed_counts(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, {**check, "editable": True}, [PAGE_STEP]).passed is True


@pytest.mark.parametrize("check", OTHERS, ids=str)
def test_with_editable_a_document_of_another_origin_still_does_not_count(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, {**check, "editable": True}, [PAGE_STEP]).passed is False


def test_an_allowed_sites_document_counts(tmp_path: Path) -> None:
    assert evaluate_check(tmp_path, OTHERS[0], [PAGE_STEP], allowed_sites=[OTHER]).passed is True


@pytest.mark.parametrize("check", TYPED, ids=str)
def test_what_must_not_be_there_must_not_be_typed_either(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, {**check, "not": True}, [PAGE_STEP]).passed is False


def test_an_element_that_an_editor_owns_is_still_the_sites(tmp_path: Path) -> None:
    page = "- generic [ref=e1] [editable=host]:\n  - alert [ref=e2]: Sold out"
    steps = [RecordedStep(snapshot=page)]
    assert evaluate_check(tmp_path / "a", {"kind": "element", "element": "alert: Sold out"}, steps).passed is True


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "element", "element": "listitem", "count": 1},
        {"kind": "text", "pattern": r"€(\d+)", "max": 400},
        {"kind": "text", "pattern": r"€(\d+)", "sorted": "ascending"},
    ],
    ids=str,
)
def test_what_is_inside_an_editor_does_not_undo_what_must_not_be_there(tmp_path: Path, check: dict[str, Any]) -> None:
    page = (
        "- listitem [ref=e1]: €300\n- generic [ref=e2] [editable=host]:\n"
        "  - listitem [ref=e3] [editable]: €900\n  - listitem [ref=e4] [editable]: €800"
    )
    assert evaluate_check(tmp_path, {**check, "not": True}, [RecordedStep(snapshot=page)]).passed is False


def test_a_page_whose_origin_is_unknown_is_not_evidence(tmp_path: Path) -> None:
    step = RecordedStep(path="about:blank", snapshot=PAGE)
    assert evaluate_check(tmp_path, {"kind": "text", "contains": "Shop"}, [step]).passed is False


# As for an address that an archive does not have.
JUDGES = RecordedStep(
    path="/orders?q=oak",
    title="Not in the archive",
    snapshot='- heading "Not in the archive" [ref=e1]\n- paragraph [ref=e2]: GET /orders?q=oak was not recorded',
    is_judges=True,
)


@pytest.mark.parametrize("is_inverted", [False, True])
@pytest.mark.parametrize(
    "check",
    [
        {"kind": "page", "url": "/orders", "extra_query": True},
        {"kind": "page", "url": ["/", "/orders?q=oak"]},
        {"kind": "page", "url": "/cart"},
        {"kind": "page", "title": "Not in the archive"},
        {"kind": "text", "contains": "oak"},
        {"kind": "text", "contains": "Sold out"},
        {"kind": "text", "contains": "oak", "on": "/orders*"},
        {"kind": "element", "element": "heading"},
        {"kind": "element", "element": "alert"},
    ],
    ids=str,
)
def test_a_page_of_the_judge_is_not_a_page_of_the_site(
    tmp_path: Path, check: dict[str, Any], is_inverted: bool
) -> None:
    check = {**check, "not": True} if is_inverted else check
    assert evaluate_check(tmp_path, check, [RecordedStep(), JUDGES]).passed is False
    # It hides nothing that was there before.
    assert evaluate_check(tmp_path, {"kind": "text", "contains": "Shop", "at": "any"}, [RecordedStep(), JUDGES]).passed


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (OTHERS[0], f"it is in a frame of {OTHER}, which is not the task's site: allowed_sites"),
        (OTHERS[1], "it is in a document of no known origin, which is not the task's site"),
        (TYPED[0], "it is inside an editor: editable = true"),
    ],
)
def test_a_match_that_does_not_count_is_named_with_the_remedy(
    tmp_path: Path, check: dict[str, Any], message: str
) -> None:
    assert evaluate_check(tmp_path, check, [PAGE_STEP]).found.startswith(message)


def test_in_a_recording_of_another_program_everything_counts(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [OTHERS[0], TYPED[0]], [PAGE_STEP], is_marked=False)
    assert [each.passed for each in evaluate(attempt)] == [True, True]


@given(st.text("ab é\U0001f600", min_size=1, max_size=12), st.data())
def test_exactly_the_ranges_are_left_out(name: str, data: st.DataObject) -> None:
    name = " ".join(name.split()) or "a"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(name)), max_size=6)))
    ranges = list(zip(cuts[::2], cuts[1::2], strict=False))
    typed = ",".join(f"name:{begin}-{end}" for begin, end in ranges)
    page = parse_snapshot(f'- button "{name}" [ref=e1]' + (f" [typed={typed}]" if typed else ""))
    (node,) = evidence(page, written_by(page, SHOP), lambda _: True).nodes
    remaining = "".join(" " if any(b <= at < e for b, e in ranges) else char for at, char in enumerate(name))
    assert node.name.split() == remaining.split()


CLICKED = {"kind": "action", "line": "<Send button> -> CLICK"}


def clicked(*refs: str) -> list[RecordedStep]:
    return [RecordedStep(snapshot=PAGE, line="<Send button> -> CLICK", refs=refs), PAGE_STEP]


@pytest.mark.parametrize(
    ("refs", "passes", "with_editable"),
    [
        (("e2",), True, True),
        (("e11",), True, True),
        (("f2e1",), True, True),
        ((), True, True),
        (("e6",), True, True),
        (("e9",), True, True),
        (("f5e1",), False, True),
        (("e7",), False, True),
        (("e15",), False, True),
        (("f1e1",), False, False),
        (("f4e1",), False, False),
        (("e99",), False, False),
        (("",), False, False),
        (("e2", "f1e1"), False, False),
        (("f1e1", "e7"), False, False),
    ],
)
def test_an_action_counts_by_the_elements_that_it_was_executed_on(
    tmp_path: Path, refs: tuple[str, ...], passes: bool, with_editable: bool
) -> None:
    assert evaluate_check(tmp_path, CLICKED, clicked(*refs)).passed is passes
    assert evaluate_check(tmp_path, {**CLICKED, "editable": True}, clicked(*refs)).passed is with_editable


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ({"line": "<Other: radio> -> CLICK"}, True),
        ({"line": "<Other: plum radio> -> CLICK"}, False),
        ({"pattern": "^<Other: plum"}, False),
        ({"line": "<Other: plum radio> -> CLICK", "editable": True}, True),
        ({"line": "<Other: radio> -> CLICK", "not": True}, False),
        ({"line": "<Other: plum radio> -> CLICK", "not": True}, False),
    ],
)
def test_an_action_names_its_element_without_what_was_typed(tmp_path: Path, line: dict[str, Any], passes: bool) -> None:
    step = RecordedStep(
        snapshot=PAGE, line="<Other: plum radio> -> CLICK", own_line="<Other: radio> -> CLICK", refs=("e18",)
    )
    assert evaluate_check(tmp_path, {"kind": "action", **line}, [step, PAGE_STEP]).passed is passes


def test_names_for_actions_are_without_what_was_typed() -> None:
    page = own_names(parse_snapshot(PAGE))
    names = {ref: page.name_of(node) for ref in ("e2", "e9", "e18", "f1e1", "f4e1") if (node := page.by_ref(ref))}
    assert names == {"e2": "Shop", "e9": "Dear", "e18": "Other:", "f1e1": "Paid", "f4e1": "Said by somebody"}


def test_an_action_that_does_not_count_is_named_with_the_remedy(tmp_path: Path) -> None:
    message = evaluate_check(tmp_path, CLICKED, clicked("f5e1")).found
    assert message == "no <Send button> -> CLICK that counts: an element was inside an editor: editable = true"


def test_an_action_that_must_not_happen_counts_on_any_element(tmp_path: Path) -> None:
    assert evaluate_check(tmp_path, {**CLICKED, "not": True}, clicked("f1e1")).passed is False
