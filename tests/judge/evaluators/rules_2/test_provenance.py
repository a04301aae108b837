"""Recordings of version 2: what counts as evidence by who wrote it."""

from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import SHOP, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.base import Assertion
from judge.evaluators.checks import evaluate
from judge.trajectory.record import FIRST_RULES, SECOND_RULES

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
    - paragraph: and confirmed
    - iframe [ref=e8] [editable] [origin={SHOP}]:
      - button "Send" [ref=f5e1]
  - heading "Dear Ann" [level=3] [ref=e9] [editable=name+text]
  - row "Desk 2 pieces" [ref=e10] [editable=name]:
    - cell "Desk" [ref=e11]
    - cell "2 pieces" [ref=e12] [editable=host+name]
  - listitem [ref=e13] [editable=host]: Milk
  - paragraph [ref=e14] [editable=text]: Bread and
  - button "Buy" [ref=e15] [editable=unknown]
  - textbox "Search" [ref=e16]: oak
  - generic [ref=e17] [editable=text] [site=0-4,10-20,heading:10-20]:
    - text: Memo
    - text: wholly
    - heading "Sent to Mary" [level=4]
    - heading "All received" [level=4]
    - textbox "Draft":
      - paragraph: unfinished
  - text: Footer"""
PAGE_STEP = RecordedStep(snapshot=PAGE)
OWN = [
    {"kind": "element", "element": 'heading "Shop"'},
    {"kind": "text", "contains": "Back at the shop"},
    {"kind": "text", "contains": "Footer"},
    {"kind": "element", "element": 'textbox "Search": oak'},
    {"kind": "element", "element": 'textbox "Note": Order placed and confirmed Send'},
    {"kind": "element", "element": 'row "Desk"'},
    {"kind": "element", "element": 'cell "Desk"'},
    {"kind": "element", "element": "heading", "count": 3},
    {"kind": "text", "contains": "Memo"},
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
    {"kind": "element", "element": 'button "Buy"'},
    {"kind": "text", "within": 'textbox "Note"', "contains": "confirmed"},
    {"kind": "text", "contains": "wholly"},
    {"kind": "element", "element": 'heading "All received"'},
    {"kind": "text", "contains": "unfinished"},
]


def decided(folder: Path, check: dict[str, Any], steps: list[RecordedStep], **task: Any) -> Assertion:
    return evaluate_check(folder, check, steps, rules_version=SECOND_RULES, **task)


@pytest.mark.parametrize("check", OWN, ids=str)
def test_what_the_site_itself_wrote_counts(tmp_path: Path, check: dict[str, Any]) -> None:
    assert decided(tmp_path, check, [PAGE_STEP]).passed is True


@pytest.mark.parametrize("check", [*OTHERS, *TYPED], ids=str)
def test_what_others_wrote_does_not_count(tmp_path: Path, check: dict[str, Any]) -> None:
    assert decided(tmp_path, check, [PAGE_STEP]).passed is False


@pytest.mark.parametrize("check", TYPED, ids=str)
def test_with_editable_what_is_inside_an_editor_counts(tmp_path: Path, check: dict[str, Any]) -> None:
    assert decided(tmp_path, {**check, "editable": True}, [PAGE_STEP]).passed is True


@pytest.mark.parametrize("check", OTHERS, ids=str)
def test_with_editable_a_document_of_another_origin_still_does_not_count(tmp_path: Path, check: dict[str, Any]) -> None:
    assert decided(tmp_path, {**check, "editable": True}, [PAGE_STEP]).passed is False


def test_an_element_of_the_site_counts_with_its_text_beside_what_was_typed(tmp_path: Path) -> None:
    page = """- generic [ref=e1] [editable=text]:
  - text: Typed
  - cell [ref=e2]:
    - text: Written by the shop"""
    steps = [RecordedStep(snapshot=page)]
    assert decided(tmp_path / "own", {"kind": "text", "contains": "Written by the shop"}, steps).passed
    assert not decided(tmp_path / "typed", {"kind": "text", "contains": "Typed"}, steps).passed


def test_an_allowed_sites_document_counts(tmp_path: Path) -> None:
    assert decided(tmp_path, OTHERS[0], [PAGE_STEP], allowed_sites=[OTHER]).passed is True


@pytest.mark.parametrize("check", TYPED, ids=str)
def test_what_must_not_be_there_must_not_be_in_an_editor_either(tmp_path: Path, check: dict[str, Any]) -> None:
    assert decided(tmp_path, {**check, "not": True}, [PAGE_STEP]).passed is False


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
    assert decided(tmp_path, {**check, "not": True}, [RecordedStep(snapshot=page)]).passed is False


def test_a_page_whose_origin_is_unknown_is_not_evidence(tmp_path: Path) -> None:
    step = RecordedStep(path="about:blank", snapshot=PAGE)
    assert decided(tmp_path, {"kind": "text", "contains": "Shop"}, [step]).passed is False


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
    assert decided(tmp_path, check, [PAGE_STEP]).found.startswith(message)


def test_an_older_recording_is_decided_by_the_rules_of_its_version(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [OTHERS[0], TYPED[0]], [PAGE_STEP], rules_version=FIRST_RULES)
    assert [each.passed for each in evaluate(attempt)] == [True, True]


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
        (("f5e1",), False, True),
        (("e7",), False, True),
        (("e9",), False, True),
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
    assert decided(tmp_path, CLICKED, clicked(*refs)).passed is passes
    assert decided(tmp_path, {**CLICKED, "editable": True}, clicked(*refs)).passed is with_editable


def test_an_action_that_does_not_count_is_named_with_the_remedy(tmp_path: Path) -> None:
    message = decided(tmp_path, CLICKED, clicked("f5e1")).found
    assert message == "no <Send button> -> CLICK that counts: an element was inside an editor: editable = true"


def test_an_action_that_must_not_happen_counts_on_any_element(tmp_path: Path) -> None:
    assert decided(tmp_path, {**CLICKED, "not": True}, clicked("f1e1")).passed is False
