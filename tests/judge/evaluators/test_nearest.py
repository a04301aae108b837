"""The step at which a failed check went wrong, as far as the record shows."""

from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion, assertions_in
from judge.records.verdicts import Verdict

COLOURS = """- group "Colour" [ref=e1]:
  - checkbox "Red" [ref=e2]
  - checkbox "Blue"{blue} [ref=e3]
- group "Size" [ref=e4]:
  - radio "Small" [ref=e5]
- textbox "Name" [ref=e6]
- link "Red wine" [ref=e7]"""
PLAIN, BLUE = COLOURS.replace("{blue}", ""), COLOURS.replace("{blue}", " [checked]")
RED = {"kind": "element", "element": 'checkbox "Red" [checked]', "within": 'group "Colour"'}
BASKET: dict[str, Any] = {"kind": "action", "line": "<Add to cart button> -> CLICK", "on": "/lamp"}


def click(name: str, ref: str = "", snapshot: str = PLAIN, path: str = "/") -> RecordedStep:
    return RecordedStep(path=path, snapshot=snapshot, line=f"<{name}> -> CLICK", refs=(ref,) if ref else ())


def last(snapshot: str = PLAIN, path: str = "/") -> RecordedStep:
    return RecordedStep(path=path, snapshot=snapshot, line="<page> -> FINISH", tool="finish")


def first_of(folder: Path, check: dict[str, Any], steps: list[RecordedStep], *others: dict[str, Any]) -> Assertion:
    assertions = evaluate(recorded_attempt(folder, [check, *others], steps))[0]
    assert assertions.passed is False
    return assertions


@pytest.mark.parametrize(
    ("check", "steps", "near"),
    [
        pytest.param(RED, [click("Blue checkbox", "e3"), last(BLUE)], 0, id="another element of the group"),
        pytest.param(RED, [click("Small radio", "e5"), last()], None, id="an element of another group"),
        pytest.param(RED, [click("Red wine link", "e7"), last()], None, id="a similar name with another role"),
        pytest.param(
            {"kind": "element", "element": 'checkbox "Red" [checked]'},
            [last(), click("Blue checkbox", "e3"), last(BLUE)],
            1,
            id="beside the element",
        ),
        pytest.param(
            {"kind": "element", "element": 'textbox "Name": Ada'},
            [click("Name textbox", "e6"), click("Name textbox", "e6"), last()],
            1,
            id="the element with another value",
        ),
        pytest.param(BASKET, [click("Add to cart button", path="/rug"), last(path="/lamp")], 0, id="on another page"),
        pytest.param(
            {"kind": "action", "line": "<Accept all button> -> CLICK"},
            [click("Accept button"), last()],
            0,
            id="a similar name",
        ),
        pytest.param(
            {"kind": "action", "line": "<Accept all button> -> CLICK"},
            [click("Lamps link"), last()],
            None,
            id="another name",
        ),
        pytest.param(
            {"kind": "page", "url": "/search?max=400"},
            [click("Filter button"), last(path="/search?max=600"), last(path="/search?max=600")],
            0,
            id="the page with another query",
        ),
        pytest.param({"kind": "page", "url": "/search?max=400"}, [last(path="/")], None, id="another page"),
        pytest.param(
            {**RED, "not": True}, [click("Blue checkbox", "e3"), last("")], 0, id="nothing to show at the end"
        ),
    ],
)
def test_a_failed_check_names_the_action_that_was_nearly_the_expected_one(
    tmp_path: Path, check: dict[str, Any], steps: list[RecordedStep], near: int | None
) -> None:
    assertion = first_of(tmp_path, check, steps)
    assert (assertion.last_step if check.get("not") else assertion.near_step) == near


EDITED = """- textbox "Note" [ref=e1] [editable=host]:
  - checkbox "Red" [ref=e2] [editable]
  - checkbox "Blue" [ref=e3] [editable]
- button "Order" [ref=e4] [editable]"""
ORDERED: dict[str, Any] = {"kind": "action", "line": "<Order button> -> CLICK"}


@pytest.mark.parametrize(
    ("check", "step", "near"),
    [
        pytest.param(
            {"kind": "element", "element": 'checkbox "Red" [checked]'},
            click("Blue checkbox", "e3", EDITED),
            None,
            id="an element inside an editor",
        ),
        pytest.param(
            {"kind": "element", "element": 'checkbox "Red" [checked]', "editable": True},
            click("Blue checkbox", "e3", EDITED),
            0,
            id="where editors count",
        ),
        pytest.param(ORDERED, click("Order button", "e4", EDITED), 0, id="the expected action where it does not count"),
    ],
)
def test_what_was_written_into_a_page_is_not_nearly_an_element_of_it(
    tmp_path: Path, check: dict[str, Any], step: RecordedStep, near: int | None
) -> None:
    assert first_of(tmp_path, check, [step, last()]).near_step == near


def test_an_element_that_another_check_expects_is_not_a_wrong_one(tmp_path: Path) -> None:
    blue = {"kind": "element", "element": 'checkbox "Blue" [checked]'}
    assert first_of(tmp_path, RED, [click("Blue checkbox", "e3"), last(BLUE)], blue).near_step is None


def test_the_last_request_that_differs_names_its_action(tmp_path: Path) -> None:
    check = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"pieces": 2}}
    request = RecordedRequest(path="/order", post='{"pieces": 1}')
    steps = [click("Shop link"), RecordedStep(line="<Order button> -> CLICK", requests=(request,)), last()]
    assert first_of(tmp_path, check, steps).near_step == 1


@pytest.mark.parametrize(
    ("check", "steps", "expected"),
    [
        ({"kind": "page", "url": "/a"}, ["/", "/a", "/a", "/b"], 2),
        ({"kind": "page", "url": "/b", "not": True}, ["/", "/a", "/b"], 1),
        ({"kind": "page", "url": "/b", "not": True, "at": "any"}, ["/", "/b", "/a"], 0),
        ({"kind": "page", "url": "/b", "not": True, "at": "any"}, ["/b", "/a"], None),
        ({"kind": "page", "url": "/c"}, ["/", "/b"], None),
        ({"any_of": [{"kind": "page", "url": "/a"}, {"kind": "page", "url": "/b"}]}, ["/a", "/b", "/c"], 1),
    ],
)
def test_a_failed_check_names_the_last_step_at_which_it_held(
    tmp_path: Path, check: dict[str, Any], steps: list[str], expected: int | None
) -> None:
    assert first_of(tmp_path, check, [last(path=path) for path in steps]).last_step == expected


def test_what_is_unknown_is_left_out_so_that_older_verdicts_stay_valid(tmp_path: Path) -> None:
    assertion = first_of(tmp_path, {"kind": "page", "url": "/c"}, [last(path="/")])
    document = assertion.model_dump(mode="json")
    assert not {"last_step", "near_step"} & set(document)
    assert assertions_in(Verdict(outcome="failure", reason="", evidence={"checks": [document]})) == [assertion]


def test_a_check_that_passed_names_neither(tmp_path: Path) -> None:
    assertions = evaluate(recorded_attempt(tmp_path, [{"kind": "page", "url": "/a"}], [last(path="/a")]))[0]
    assert (assertions.passed, assertions.last_step, assertions.near_step) == (True, None, None)
