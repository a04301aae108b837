"""Whether an element is the same after a page has changed: by role, name and place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.same_elements import same_element, same_params
from shared.snapshot import parse_snapshot


def rows(*items: tuple[str, str], around: str = "list") -> str:
    """A list of rows, each with a text and a button of the same name with this reference."""
    lines = [f"- {around}:"]
    for text, ref in items:
        lines += ["  - listitem:", f"    - text: {text}", f'    - button "Delete" [ref={ref}]']
    return "\n".join(lines)


THREE = rows(("Chair 1", "e1"), ("Desk 1", "e2"), ("Lamp 1", "e3"))
SAME = {
    "unchanged": (THREE, "e2"),
    "another row was deleted": (rows(("Desk 1", "e2"), ("Lamp 1", "e3")), "e2"),
    "a row was added above": (rows(("Sofa 1", "e9"), ("Chair 1", "e1"), ("Desk 1", "e2"), ("Lamp 1", "e3")), "e2"),
    "only a number in its row changed": (rows(("Chair 1", "e1"), ("Desk 2", "e2"), ("Lamp 1", "e3")), "e2"),
    "its list was rebuilt": (rows(("Chair 1", "e11"), ("Desk 1", "e12"), ("Lamp 1", "e13")), "e12"),
    "another row was deleted, and the list rebuilt": (rows(("Desk 1", "e12"), ("Lamp 1", "e13")), "e12"),
}
CHANGED = {
    "it is gone": rows(("Chair 1", "e1"), ("Lamp 1", "e3")),
    "it shows the next row, because elements are used again": rows(("Chair 1", "e1"), ("Lamp 1", "e2")),
    "the next row moved up and another one was loaded": rows(("Desk 1", "e1"), ("Lamp 1", "e2"), ("Sofa 1", "e3")),
    "it cannot be told from the rows that now read the same": rows(
        ("Desk 1", "e1"), ("Desk 1", "e2"), ("Lamp 1", "e3")
    ),
    "it is in a dialog now": "- dialog:\n" + "\n".join(f"  {line}" for line in THREE.split("\n")),
    "it has another name": THREE.replace('"Delete" [ref=e2]', '"Deleted" [ref=e2]'),
    "it has another role": THREE.replace('button "Delete" [ref=e2]', 'link "Delete" [ref=e2]'),
}


@pytest.mark.parametrize(("now", "ref"), SAME.values(), ids=SAME)
def test_an_element_is_the_same(now: str, ref: str) -> None:
    assert same_element(parse_snapshot(THREE), "e2", parse_snapshot(now)) == ref


@pytest.mark.parametrize("now", CHANGED.values(), ids=CHANGED)
def test_an_element_may_be_another_one(now: str) -> None:
    assert same_element(parse_snapshot(THREE), "e2", parse_snapshot(now)) is None


FORM = (
    '- form "Order":\n  - textbox "Name" [ref=e1]\n  - spinbutton "Number" [ref=e2]: "1"\n  - button "Order" [ref=e3]'
)


def test_what_fields_contain_does_not_matter() -> None:
    typed = FORM.replace("[ref=e1]", "[ref=e1]: Ada").replace('"1"', '"27"')
    params = {"fields": [{"target": "e2", "value": "3"}, {"target": "e1", "value": "Eva"}]}
    assert same_params(parse_snapshot(FORM), params, parse_snapshot(typed)) == params


def test_every_element_of_an_action_must_be_the_same() -> None:
    params = {"startTarget": "e1", "endTarget": "e3"}
    assert same_params(parse_snapshot(FORM), params, parse_snapshot(FORM.replace("e3", "e8"))) == {
        "startTarget": "e1",
        "endTarget": "e8",
    }
    assert (
        same_params(parse_snapshot(FORM), params, parse_snapshot(FORM.replace('"Order" [ref', '"Send" [ref'))) is None
    )


def test_of_a_point_the_element_there_must_be_the_same() -> None:
    page = '- button "Up" [ref=e1] [box=0,0,50,50]\n- button "Down" [ref=e2] [box=0,100,50,50]'
    scrolled = page.replace("0,100,", "0,10,").replace("0,0,", "0,-90,")
    at = {"x": 10, "y": 20}
    assert same_params(parse_snapshot(page), at, parse_snapshot(page)) == at
    assert same_params(parse_snapshot(page), at, parse_snapshot(scrolled)) is None


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)), st.booleans())
def test_no_row_is_ever_taken_for_another(order: list[int], gone: set[int], is_reused: bool) -> None:
    """Rows are moved and removed; elements belong to their rows, or are used again for the rows that are left."""
    names = ["Chair", "Desk", "Lamp", "Sofa", "Rug"]
    left = [row for row in order if row not in gone]
    refs = [f"e{place}" if is_reused else f"e{row}" for place, row in enumerate(left)]
    before = parse_snapshot(rows(*((name, f"e{row}") for row, name in enumerate(names))))
    after = parse_snapshot(rows(*((names[row], ref) for row, ref in zip(left, refs, strict=True))))
    for row in range(5):
        element = same_element(before, f"e{row}", after)
        assert element is None or left[refs.index(element)] == row
