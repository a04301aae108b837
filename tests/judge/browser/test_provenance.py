"""Who wrote what a snapshot shows: facts of the browser, written into the snapshot's lines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.sessions import a_browser
from helpers.browser.written_pages import two_sites, verdicts, written_page
from judge.browser.provenance import Document, mark, read_documents
from shared.snapshot import as_shown, parse_snapshot

SHOP, OTHER = "https://shop.example", "https://pay.example"


def document(refs: str, **facts: object) -> Document:
    known = {"is_main": False, "address": f"{SHOP}/", "address_origin": SHOP, "origin": SHOP, "inside": ""}
    return Document.model_validate({**known, "refs": refs, **facts})


PAGE = """- generic [active] [ref=e1] [box=0,0,9,9]:
  - 'heading "a: [ref=e9]" [level=1] [ref=e2] [box=0,0,9,9]'
  - iframe [ref=e3] [box=0,0,9,9]:
    - paragraph [ref=f1e1] [box=0,0,9,9]: inner
  - textbox "Note" [ref=e4] [box=0,0,9,9]
  - text: end"""


def test_a_frame_carries_the_origin_of_its_document() -> None:
    framed = document("f1e1", address=f"{OTHER}/x", address_origin=OTHER, origin=OTHER)
    marked = mark(PAGE, [document("e1 e2 e3 e4", is_main=True), framed])
    assert f"- iframe [ref=e3] [box=0,0,9,9] [origin={OTHER}]:" in marked.snapshot
    assert (marked.origin, marked.is_complete, marked.is_mixed) == (SHOP, True, False)


def test_a_frame_is_in_the_document_of_the_frame_around_it_not_of_one_before_it() -> None:
    page = """- iframe [ref=e1] [box=0,0,9,9]:
  - paragraph [ref=f1e1] [box=0,0,9,9]: theirs
- generic [ref=e2] [box=0,0,9,9]:
  - iframe [ref=e3] [box=0,0,9,9]:
    - paragraph [ref=f2e1] [box=0,0,9,9]: ours"""
    theirs = document("f1e1", address=f"{OTHER}/x", address_origin=OTHER, origin=OTHER)
    ours = document("f2e1", address="about:srcdoc", address_origin="null", origin=SHOP)
    marked = mark(page, [document("e1 e2 e3", is_main=True), theirs, ours])
    assert f"- iframe [ref=e3] [box=0,0,9,9] [origin={SHOP}]:" in marked.snapshot


def test_a_frame_whose_document_gave_no_answer_has_no_origin() -> None:
    marked = mark(PAGE, [document("e1 e2 e3 e4", is_main=True)])
    assert "[origin=" not in marked.snapshot
    assert not marked.is_complete


@pytest.mark.parametrize(
    ("facts", "origin"),
    [
        ({"address": "about:srcdoc", "address_origin": "null", "origin": "null"}, SHOP),
        ({"address": "about:blank", "address_origin": "null", "origin": OTHER}, OTHER),
        ({"address": "about:blank", "address_origin": "null", "origin": "null"}, "null"),
        ({"address": f"blob:{OTHER}/1", "address_origin": OTHER, "origin": OTHER}, OTHER),
        ({"address": "blob:null/1", "address_origin": "null", "origin": "null"}, "null"),
        ({"address": "data:text/html,x", "address_origin": "null", "origin": "null"}, "null"),
        ({"address": f"{OTHER}/x", "address_origin": OTHER, "origin": "null"}, OTHER),
        ({"address": "http://[::1]:80/", "address_origin": "http://[::1]:80", "origin": "null"}, "http://%5B::1%5D:80"),
    ],
)
def test_a_document_is_its_makers(facts: dict[str, str], origin: str) -> None:
    marked = mark(PAGE, [document("e1 e2 e3 e4", is_main=True), document("f1e1", **facts)])
    frame = parse_snapshot(marked.snapshot).by_ref("e3")
    assert frame is not None
    assert frame.states["origin"] == origin


def test_an_editing_host_and_what_is_inside_it_are_marked() -> None:
    host = {"ref": "e4", "text": 'a\n"b" \\ ', "around": ["e1"]}
    marked = mark(PAGE, [document("e1 e2 e3 e4 f1e1", is_main=True, inside="e2", hosts=[host], named=["e1"])])
    page = parse_snapshot(marked.snapshot)
    assert {node.ref: node.states["editable"] for node in page.nodes if "editable" in node.states} == {
        "e1": "name",
        "e2": "true",
        "e4": "host",
    }
    box = page.by_ref("e4")
    assert box is not None
    # The snapshot itself leaves the text of such a box out.
    assert page.value_of(box) == 'a "b" \\'


def test_text_of_a_host_that_is_not_shown_marks_what_is_around_it() -> None:
    host = {"ref": "e8", "text": "", "around": ["e7", "e1"]}
    marked = mark(PAGE, [document("e1 e2 e3 e4 e8 f1e1", is_main=True, hosts=[host])])
    assert "[ref=e1] [box=0,0,9,9] [editable=text]:" in marked.snapshot


def test_content_without_a_reference_that_the_site_wrote_is_marked_beside_a_host() -> None:
    host = {"ref": "", "text": "", "around": ["e1"]}
    pieces = [["in", "e1"], ["typed", "Ann"], ["in", "e2"], ["site", "a:"], ["out", ""], ["site", "end"], ["out", ""]]
    page = PAGE.replace("text: end", "text: Ann end")
    marked = mark(page, [document("e1 e2 e3 e4 f1e1", is_main=True, hosts=[host], pieces=pieces)])
    assert "[ref=e1] [box=0,0,9,9] [editable=text] [site=3-6]:" in marked.snapshot
    assert as_shown(marked.snapshot, boxes=True) == page


def test_text_of_a_host_with_nothing_shown_around_it_marks_the_document() -> None:
    host = {"ref": "", "text": "", "around": []}
    shown = [document("e1 e2 e3 e4", is_main=True, hosts=[host]), document("f1e1")]
    assert mark(PAGE, shown).is_mixed
    framed = [document("e1 e2 e3 e4", is_main=True), document("f1e1", hosts=[host])]
    assert f"[ref=e3] [box=0,0,9,9] [origin={SHOP}] [editable=text]:" in mark(PAGE, framed).snapshot


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({"joined_before": "e2 e4", "joined_after": "e4"}, "[joined=before]"),
        ({"joined_before": "e4", "joined_after": "e2"}, "[joined=after]"),
        ({"joined_before": "e2", "joined_after": "e2", "named": ("e2",)}, "[editable=name] [joined]"),
    ],
)
def test_an_element_that_is_one_word_with_what_is_beside_it_is_marked(facts: dict[str, object], state: str) -> None:
    marked = mark(PAGE, [document("e1 e2 e3 e4", is_main=True, **facts)])
    assert f"""[level=1] [ref=e2] [box=0,0,9,9] {state}'\n""" in marked.snapshot
    assert as_shown(marked.snapshot, boxes=True) == PAGE


def test_an_element_that_is_gone_is_marked_as_unknown() -> None:
    marked = mark(PAGE, [document("e1 e3 e4 f1e1", is_main=True)])
    assert not marked.is_complete
    assert "[ref=e2] [box=0,0,9,9] [editable=unknown]'" in marked.snapshot


@pytest.mark.parametrize("found", [[1], [None], [{"refs": 1}], ["x"]])
def test_an_unusable_answer_gives_no_documents(found: list[object]) -> None:
    assert read_documents(found) == []


NAMES = st.text(max_size=30)


@given(
    names=st.lists(NAMES, min_size=1, max_size=6),
    inside=st.sets(st.integers(0, 6)),
    named=st.sets(st.integers(0, 6)),
    covered=st.sets(st.integers(0, 6)),
)
def test_participants_see_the_same_snapshot_with_and_without_the_facts(
    names: list[str], inside: set[int], named: set[int], covered: set[int]
) -> None:
    lines = [f"- button {json.dumps(name)} [ref=e{at}] [box=1,2,3,4]" for at, name in enumerate(names)]
    lines.append("- iframe [ref=e6] [box=1,2,3,4]:")
    snapshot = "\n".join(lines)

    def listed(numbers: set[int]) -> str:
        return " ".join(f"e{number}" for number in numbers)

    facts = document(listed(covered), is_main=True, inside=listed(inside), named=[f"e{each}" for each in named])
    marked = mark(snapshot, [facts]).snapshot
    assert as_shown(marked) == as_shown(snapshot)
    assert as_shown(marked, boxes=True) == snapshot
    # No name of the page's is taken for a fact.
    before, after = parse_snapshot(snapshot).nodes, parse_snapshot(marked).nodes
    assert [(node.role, node.name, node.ref) for node in after] == [(node.role, node.name, node.ref) for node in before]
    for node in after:
        number = int((node.ref or "e0")[1:])
        expected = "unknown" if number not in covered else "true" if number in inside else "name"
        is_marked = number not in covered or number in inside | named
        assert node.states.get("editable") == (expected if is_marked else None)


@pytest.mark.e2e
async def test_checks_count_what_was_planted_where_the_sites_own_documents_show_it(tmp_path: Path) -> None:
    wrong = []
    with two_sites() as (own, other, documents):
        async with a_browser() as browser:
            # `benchmarks/written_pages.py` observes 2,000 of them.
            for seed in range(30):
                page = written_page(seed, own, other)
                documents.clear()
                documents |= page.documents
                await browser.open(own + page.path, "page-time")
                seen = await browser.observe()
                found = verdicts(seen, page.expected, own, other, tmp_path)
                wrong += [(seed, each, page.shape) for each in found if each[1] != each[2]]
    assert wrong == []
