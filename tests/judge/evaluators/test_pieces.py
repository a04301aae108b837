"""Content without a reference beside an editor: what of it the site wrote."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.evaluators.pieces import as_the_site_wrote, written_by_site
from shared.snapshot import Snapshot, parse_snapshot

Piece = tuple[str, str]


def kept(page: Snapshot, state: str) -> list[tuple[str, str, str]]:
    """Role, name and text of each node as the site wrote it."""
    around = page.by_ref("e1")
    assert around is not None
    return [(node.role, node.name, node.text) for _, node in sorted(as_the_site_wrote(page, around, state).items())]


def told(snapshot: str, *pieces: Piece) -> tuple[Snapshot, str | None]:
    page = parse_snapshot(snapshot)
    return page, written_by_site(page, [("in", "e1"), *pieces, ("out", "")], {"e1"}).get("e1")


def test_text_beside_an_editor_keeps_what_the_site_wrote() -> None:
    page, state = told("- generic [ref=e1]: Paid to Ann today", ("site", "Paidto"), ("typed", "Ann"), ("site", "today"))
    assert state == "0-6,9-14"
    assert kept(page, state) == [("generic", "", "Paid to today")]


def test_an_element_is_the_sites_with_its_role_and_name() -> None:
    lines = (
        '- generic [ref=e1]:\n  - heading "Order placed" [level=2]\n  - heading "Paid" [level=2]\n  - paragraph: Thanks'
    )
    heading, paragraph = ("as", "heading"), ("as", "paragraph")
    page, state = told(
        lines,
        heading,
        ("site", "Orderplaced"),
        ("out", ""),
        ("typed", "Paid"),
        paragraph,
        ("site", "Thanks"),
        ("out", ""),
    )
    assert state is not None
    assert kept(page, state) == [
        ("generic", "", ""),
        ("heading", "Order placed", ""),
        ("", "", ""),
        ("paragraph", "", "Thanks"),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        # Another role, another extent, and typed text in it.
        [("as", "paragraph"), ("site", "Paid"), ("out", "")],
        [("as", "heading"), ("site", "Pa"), ("out", ""), ("site", "id")],
        [("as", "heading"), ("site", "Pa"), ("typed", "id"), ("out", "")],
    ],
)
def test_an_element_that_the_site_did_not_write_so_has_no_role(pieces: list[Piece]) -> None:
    page, state = told('- generic [ref=e1]:\n  - heading "Paid" [level=2]', *pieces)
    assert state is not None
    assert [role for role, _, _ in kept(page, state)] == ["generic", ""]


def test_a_name_that_is_not_the_elements_text_is_not_kept() -> None:
    button = [("as", "button"), ("site", "x"), ("out", "")]
    page, state = told('- generic [ref=e1]:\n  - button "Paid": x', *button)
    assert state is not None
    assert kept(page, state)[1] == ("button", "", "x")


@pytest.mark.parametrize(
    "pieces",
    [
        [("site", "Paid")],
        [("site", "Paid"), ("typed", "no")],
        [],
    ],
)
def test_nothing_is_kept_where_the_browser_tells_of_another_text(pieces: list[Piece]) -> None:
    _, state = told("- generic [ref=e1]: Paid now", *pieces)
    assert state is None


def test_what_another_element_with_a_reference_contains_is_left_to_it() -> None:
    lines = "- generic [ref=e1]:\n  - paragraph [ref=e2]:\n    - text: typed\n  - text: ours"
    page, state = told(
        lines, ("in", "e2"), ("typed", "typed"), ("out", ""), ("in", "e9"), ("site", "ours"), ("out", "")
    )
    assert state == "0-4"
    assert kept(page, state) == [("generic", "", ""), ("", "", "ours")]


class Shown(NamedTuple):
    """A line of text or an element, and who wrote it."""

    is_element: bool
    is_site: bool
    text: str


# Few characters, so that typed texts repeat what the site wrote.
SHOWN = st.lists(st.builds(Shown, st.booleans(), st.booleans(), st.text("ab ", min_size=1, max_size=4)), max_size=8)


@given(SHOWN)
def test_each_piece_is_kept_exactly_if_the_site_wrote_it(shown: list[Shown]) -> None:
    shown = [each for each in shown if each.text.strip()]
    lines = ["- generic [ref=e1]:"]
    pieces: list[Piece] = []
    for each in shown:
        lines.append(f'  - heading "{each.text}" [level=2]' if each.is_element else f'  - text: "{each.text}"')
        text = ("site" if each.is_site else "typed", each.text)
        is_told = each.is_element and each.is_site
        pieces += [("as", "heading"), text, ("out", "")] if is_told else [text]
    page, state = told("\n".join(lines), *pieces)
    assert state is not None
    assert kept(page, state)[1:] == [
        (
            "heading" if each.is_element else "",
            each.text if each.is_element else "",
            "" if each.is_element else " ".join(each.text.split()),
        )
        if each.is_site
        else ("", "", "")
        for each in shown
    ]
