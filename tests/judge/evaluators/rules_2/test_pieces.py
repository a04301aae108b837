"""Content without a reference beside an editor: what of it the site wrote."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.evaluators.rules_2.pieces import as_the_site_wrote
from shared.snapshot import parse_snapshot


def nodes_as_written(snapshot: str, state: str) -> list[tuple[str, str, str]]:
    """Role, name and text of each node as the site wrote it."""
    page = parse_snapshot(snapshot)
    around = page.by_ref("e1")
    assert around is not None
    return [(node.role, node.name, node.text) for _, node in sorted(as_the_site_wrote(page, around, state).items())]


def test_text_beside_an_editor_keeps_what_the_site_wrote() -> None:
    assert nodes_as_written("- generic [ref=e1]: Paid to Ann today", "0-6,9-14") == [("generic", "", "Paid to today")]


def test_an_element_is_the_sites_with_its_role_and_name() -> None:
    lines = (
        '- generic [ref=e1]:\n  - heading "Order placed" [level=2]\n  - heading "Paid" [level=2]\n  - paragraph: Thanks'
    )
    assert nodes_as_written(lines, "0-11,15-21,heading:0-11,paragraph:15-21") == [
        ("generic", "", ""),
        ("heading", "Order placed", ""),
        ("", "", ""),
        ("paragraph", "", "Thanks"),
    ]


@pytest.mark.parametrize("state", ["0-4,paragraph:0-4", "0-4,heading:0-2", "0-2", "0-0"])
def test_an_element_that_the_site_did_not_write_so_has_no_role(state: str) -> None:
    assert [role for role, _, _ in nodes_as_written('- generic [ref=e1]:\n  - heading "Paid" [level=2]', state)] == [
        "generic",
        "",
    ]


def test_a_name_that_is_not_the_elements_text_is_not_kept() -> None:
    assert nodes_as_written('- generic [ref=e1]:\n  - button "Paid": x', "0-1,button:0-1")[1] == ("button", "", "x")


def test_what_another_element_with_a_reference_contains_is_left_to_it() -> None:
    lines = "- generic [ref=e1]:\n  - paragraph [ref=e2]:\n    - text: typed\n  - text: ours"
    assert nodes_as_written(lines, "0-4") == [("generic", "", ""), ("", "", "ours")]


class ShownPiece(NamedTuple):
    """A line of text or an element, and who wrote it."""

    is_element: bool
    is_site: bool
    text: str


# Few characters, so that typed texts repeat what the site wrote.
SHOWN_PIECES = st.lists(
    st.builds(ShownPiece, st.booleans(), st.booleans(), st.text("ab ", min_size=1, max_size=4)), max_size=8
)


@given(SHOWN_PIECES)
def test_each_piece_is_kept_exactly_if_the_site_wrote_it(pieces: list[ShownPiece]) -> None:
    pieces = [each for each in pieces if each.text.strip()]
    lines = ["- generic [ref=e1]:"]
    states, length = ["0-0"], 0
    for each in pieces:
        lines.append(f'  - heading "{each.text}" [level=2]' if each.is_element else f'  - text: "{each.text}"')
        begin, length = length, length + len("".join(each.text.split()))
        if each.is_site:
            states.append(f"{begin}-{length}")
            states += [f"heading:{begin}-{length}"] if each.is_element else []
    assert nodes_as_written("\n".join(lines), ",".join(states))[1:] == [
        (
            "heading" if each.is_element else "",
            each.text if each.is_element else "",
            "" if each.is_element else " ".join(each.text.split()),
        )
        if each.is_site
        else ("", "", "")
        for each in pieces
    ]
