"""What stood on a page and vanished is recorded in the notation of snapshots, with who wrote it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.settle.vanished import RawVanished, read_vanished
from judge.evaluators.provenance import evidence, written_by
from shared.models import Vanished
from shared.snapshot import Snapshot, parse_snapshot

SITE, OTHER = "https://shop.test", "https://pay.test"
LINES = "- alert [ref=e1] [box=0,0,9,9]:\n  - strong [ref=e2] [box=0,0,9,9]: Order\n  - text: placed"


def raw_vanished(snapshot: str = LINES, **fields: Any) -> dict[str, Any]:
    """As the browser reports it."""
    facts: dict[str, Any] = {"refs": ["e1", "e2"], "around": []}
    facts |= {kind: [] for kind in ("typed", "mixed", "named", "inserted", "foreign")}
    flags = {"is_typed": False, "is_mixed": False, "is_inserted": False, "is_main": True}
    origins = {"address": f"{SITE}/cart", "address_origin": SITE, "origin": SITE, "parent": None}
    return {"snapshot": snapshot, **facts, **flags, **origins, **fields}


def recorded(**fields: Any) -> Vanished:
    raw = RawVanished.model_validate(
        {"text": "Order placed", "at": 5.4, "stood_ms": 1234, "stood": raw_vanished(**fields)}
    )
    (vanished,) = read_vanished((raw,))
    return vanished


def counted(vanished: Vanished) -> Snapshot:
    """What of it is evidence, on a page of the site."""
    page = parse_snapshot(vanished.snapshot or "")
    origin = SITE if vanished.url is None else vanished.origin
    return evidence(page, written_by(page, origin), lambda each: each == SITE)


def text_of(page: Snapshot) -> str:
    return " ".join(node.text for node in page.nodes if node.text)


def test_it_is_recorded_with_its_time_and_document() -> None:
    expected = Vanished(text="Order placed", snapshot=LINES, origin=SITE, url=f"{SITE}/cart", at_ms=5, stood_s=1.23)
    assert recorded() == expected


@pytest.mark.parametrize(
    ("is_typed", "is_mixed", "is_inserted", "origin", "is_main"),
    list(itertools.product((False, True), (False, True), (False, True), (SITE, OTHER, "null"), (False, True))),
)
def test_only_what_the_site_wrote_is_evidence(
    is_typed: bool, is_mixed: bool, is_inserted: bool, origin: str, is_main: bool
) -> None:
    marks = {"typed": ["e1", "e2"] if is_typed else [], "mixed": ["e1"] if is_mixed and not is_typed else []}
    marks["inserted"] = ["e1", "e2"] if is_inserted else []
    flags = {"is_typed": is_typed, "is_mixed": is_mixed, "is_inserted": is_inserted, "is_main": is_main}
    page = counted(recorded(address_origin=origin, origin=origin, **flags, **marks))
    is_sites = origin == SITE and not is_inserted and not is_typed
    # Beside an editor, what has a reference is known to be the site's.
    assert text_of(page) == ("" if not is_sites else "Order" if is_mixed else "Order placed")


def test_a_document_in_a_frame_is_that_of_its_author() -> None:
    frame = {"is_main": False, "address": "about:srcdoc", "address_origin": "null", "origin": "null"}
    assert counted(recorded(**frame, parent=SITE)).find("alert")
    assert not counted(recorded(**frame, parent=OTHER)).find("alert")
    assert not counted(recorded(**frame, parent=None)).find("alert")


def test_an_element_of_which_nothing_is_known_does_not_count() -> None:
    assert text_of(counted(recorded(refs=["e2"]))) == "Order"


def test_a_name_that_may_come_from_an_editor_does_not_count() -> None:
    named = '- group "Order placed" [ref=e1] [box=0,0,9,9]:\n  - button "Undo" [ref=e2] [box=0,0,9,9]'
    page = counted(recorded(snapshot=named, named=["e1"]))
    assert [(node.role, node.name) for node in page.nodes if node.role] == [("button", "Undo")]


@given(st.lists(st.tuples(st.sampled_from(["region", "dialog", "main"]), st.text(max_size=30)), max_size=5))
def test_the_regions_around_it_are_recorded_whatever_their_names(around: list[tuple[str, str]]) -> None:
    page = counted(recorded(around=around))
    outer = [node for node in page.nodes if node.role in ("region", "dialog", "main")]
    assert [node.role for node in outer] == [role for role, _ in around]
    (alert,) = page.find("alert")
    assert [node.role for node in page.parents(alert)] == [role for role, _ in reversed(around)]
