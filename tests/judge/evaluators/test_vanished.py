"""What appeared and vanished between two looks counts for `at = "any"`, by the rules for what a look shows."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import SHOP, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.policies import evaluate_policies
from shared.models import Vanished

OTHER = "https://pay.example"
ALERT = '- region "News":\n  - alert [ref=e1]: Order placed\n  - button "Undo" [ref=e2]'
TEXT = {"kind": "text", "contains": "Order placed"}
ELEMENT = {"kind": "element", "element": "alert: Order placed"}


def vanished_text(snapshot: str = ALERT, **fields: Any) -> Vanished:
    facts = {"origin": SHOP, "url": f"{SHOP}/cart", "at_ms": 0, "stood_s": 3.0, **fields}
    return Vanished(text="Order placed", snapshot=snapshot, **facts)


def inside(line: str) -> str:
    return "\n".join((f"- {line}:", *(f"  {each}" for each in ALERT.split("\n"))))


def with_mark(mark: str, snapshot: str = ALERT) -> str:
    """The snapshot with a mark on each line, as `judge.browser.settle.vanished` writes them."""
    return re.sub(r"^( *- (?:\w+)(?: \".*?\")?(?: \[[^\]]*\])*)", rf"\1 {mark}", snapshot, flags=re.MULTILINE)


def steps_with(*vanished: Vanished | str) -> list[RecordedStep]:
    """Two looks, with these before the second."""
    return [RecordedStep(), RecordedStep(path="/done", vanished=vanished)]


COUNTED: list[dict[str, Any]] = [
    TEXT,
    ELEMENT,
    {**TEXT, "on": "/cart"},
    {**TEXT, "within": 'region "News"'},
    {"kind": "element", "element": 'button "Undo"'},
    {"kind": "text", "pattern": "placed", "count": 1},
]
NOT_COUNTED: list[dict[str, Any]] = [
    {**TEXT, "at": "end"},
    {**TEXT, "in_view": True},
    {**ELEMENT, "in_view": True},
    {**TEXT, "on": "/done"},
    {**TEXT, "within": "dialog"},
    {**TEXT, "not": True},
]


@pytest.mark.parametrize("check", COUNTED, ids=str)
def test_what_vanished_counts_as_it_stood(tmp_path: Path, check: dict[str, Any]) -> None:
    assertion = evaluate_check(tmp_path, {"at": "any", **check}, steps_with(vanished_text()))
    assert (assertion.passed, assertion.step) == (True, 1)
    assert assertion.found.startswith("vanished before step 2: ")


@pytest.mark.parametrize("check", NOT_COUNTED, ids=str)
def test_it_is_not_part_of_the_look_after_it(tmp_path: Path, check: dict[str, Any]) -> None:
    assert evaluate_check(tmp_path, {"at": "any", **check}, steps_with(vanished_text())).passed is False


def test_that_nothing_forbidden_stood_needs_a_look_at_the_page(tmp_path: Path) -> None:
    never = {"kind": "text", "contains": "Failed", "at": "any", "not": True}
    assert evaluate_check(tmp_path / "a", never, steps_with(vanished_text())).passed is True
    assert evaluate_check(tmp_path / "b", {**never, "on": "/cart"}, steps_with(vanished_text())).passed is False


OTHERS: dict[str, Vanished | str] = {
    "another origin": vanished_text(origin=OTHER, url=f"{OTHER}/"),
    "an unknown origin": vanished_text(origin=None),
    "a frame of another origin": vanished_text(inside(f"iframe [origin={OTHER}]"), origin=None, url=None),
    "inside an editor": vanished_text(with_mark("[editable]")),
    "inside an editor, without a reference": vanished_text(with_mark("[editable]").replace(" [ref=e1]", "")),
    "beside an editor": vanished_text("- alert [ref=e1] [typed=text:0-12]: Order placed"),
    "the judge's own": vanished_text(with_mark("[inserted=page]")),
    "not described": vanished_text().model_copy(update={"snapshot": None}),
    "only its text": "Order placed",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_was_not_the_sites_does_not_count(tmp_path: Path, name: str) -> None:
    for number, check in enumerate((TEXT, ELEMENT)):
        assert evaluate_check(tmp_path / str(number), {**check, "at": "any"}, steps_with(OTHERS[name])).passed is False
    edited = evaluate_check(tmp_path / "edited", {**TEXT, "at": "any", "editable": True}, steps_with(OTHERS[name]))
    assert edited.passed is ("an editor" in name)


@pytest.mark.parametrize("name", OTHERS)
def test_policies_see_all_of_it_but_what_the_judge_put_in(tmp_path: Path, name: str) -> None:
    policy = {"name": "p", "dimension": "consent", **TEXT}
    (policy_result,) = evaluate_policies(recorded_attempt(tmp_path, [], steps_with(OTHERS[name]), policies=[policy]))
    assert policy_result.violated is (name not in ("the judge's own", "only its text"))


def test_a_frame_of_the_site_counts(tmp_path: Path) -> None:
    framed = vanished_text(inside(f"iframe [origin={SHOP}]"), origin=None, url=None)
    assert evaluate_check(tmp_path, {**TEXT, "at": "any"}, steps_with(framed)).passed is True


def test_a_finding_says_why_it_does_not_count(tmp_path: Path) -> None:
    message = evaluate_check(tmp_path, {**TEXT, "at": "any"}, steps_with(OTHERS["inside an editor"])).found
    assert message.startswith("before step 2 it vanished; it was inside an editor: editable = true; ")


# --- Words that the participant typed ---

SITE_WORDS = ["Saved", "not", "an", "address", "Order", "17", "済み"]
TYPED_WORDS = ["lamp", "Oslo", "x9", "注文", "Ünder", "Ａ４"]


def as_action(way: str, text: str) -> dict[str, Any]:
    match way:
        case "type":
            return {"tool": "browser_type", "params": {"target": "e1", "text": text}}
        case "form":
            return {"tool": "browser_fill_form", "params": {"fields": [{"type": "textbox", "value": text}]}}
        case "address":
            return {"tool": "browser_navigate", "params": {"url": f"{SHOP}/?q={text}"}}
        case "page's tool":
            return {"tool": "a_tool_of_the_page", "params": {"input": {"texts": [text]}}}
    return {"tool": "browser_press_key", "params": {"key": "Control+V"}}


def after_typing(way: str, text: str, vanished: Vanished) -> list[RecordedStep]:
    if way == "keys":
        steps = [RecordedStep(tool="browser_press_key", params={"key": key}) for key in text]
    else:
        steps = [RecordedStep(**as_action(way, text))]
    field = f'- textbox "Name" [ref=e1]: "{text}"' if way == "paste" else '- textbox "Name" [ref=e1]'
    return [*steps, RecordedStep(snapshot=field, vanished=(vanished,))]


@given(
    words=st.lists(
        st.tuples(st.sampled_from(SITE_WORDS), st.just(False)) | st.tuples(st.sampled_from(TYPED_WORDS), st.just(True)),
        min_size=1,
        max_size=7,
    ),
    slices=st.tuples(st.integers(0, 6), st.integers(1, 7)),
    glue=st.sampled_from([" ", " “", "”, ", "."]),
    way=st.sampled_from(["type", "form", "address", "page's tool", "keys", "paste"]),
    kind=st.sampled_from(["contains", "pattern", "element"]),
)
def test_it_counts_if_a_word_of_the_site_is_needed(
    words: list[tuple[str, bool]], slices: tuple[int, int], glue: str, way: str, kind: str
) -> None:
    begin = slices[0] % len(words)
    expectation = words if kind == "element" else words[begin : begin + slices[1]]
    text, expected = (glue.join(word for word, _ in each) for each in (words, expectation))
    typed = " ".join(word for word, is_typed in words if is_typed)
    check: dict[str, Any] = {
        "contains": {"kind": "text", "contains": expected},
        "pattern": {"kind": "text", "pattern": re.escape(expected)},
        "element": {"kind": "element", "element": f'alert "{expected}"'},
    }[kind]
    steps = after_typing(way, typed, vanished_text(f'- alert "{text}" [ref=e1]'))
    with TemporaryDirectory() as folder:
        assertion = evaluate_check(Path(folder), {**check, "at": "any"}, steps)
    assert assertion.passed is not all(is_typed for _, is_typed in expectation)


def test_what_is_typed_later_takes_nothing_away(tmp_path: Path) -> None:
    steps = [*steps_with(vanished_text()), RecordedStep(**as_action("type", "Order placed")), RecordedStep()]
    assert evaluate_check(tmp_path, {**TEXT, "at": "any"}, steps).passed is True


def test_a_message_that_repeats_what_was_typed_says_how_it_would_count(tmp_path: Path) -> None:
    repeated = vanished_text("- alert [ref=e1]: “Order placed” is not an address")
    steps = after_typing("type", "Order placed", repeated)
    assertion = evaluate_check(tmp_path / "a", {**TEXT, "at": "any"}, steps)
    assert (assertion.passed, "only in words that were typed: editable = true" in assertion.found) == (False, True)
    assert evaluate_check(tmp_path / "b", {**TEXT, "at": "any", "editable": True}, steps).passed is True
    assert evaluate_check(tmp_path / "c", {**TEXT, "at": "any", "not": True}, steps).passed is False
