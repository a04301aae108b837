"""Who wrote what a snapshot shows: facts of the browser, written into the snapshot's lines."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.named_pages import in_frames, named_page, wrong_results
from helpers.browser.sessions import a_browser
from helpers.browser.written_pages import two_sites, verdicts, written_page
from helpers.cases import each
from judge.browser.provenance import DocumentReport, mark, read_documents
from shared.snapshot import as_shown, parse_snapshot

SHOP, OTHER = "https://shop.example", "https://pay.example"


def document(refs: str, count: int, **facts: object) -> DocumentReport:
    known = {"is_main": False, "address": f"{SHOP}/", "address_origin": SHOP, "origin": SHOP}
    return DocumentReport.model_validate({**known, "refs": refs, "count": count, **facts})


def main(**facts: object) -> DocumentReport:
    """That of `PAGE`."""
    return document("e1 e2 e3 e4", 5, is_main=True, **facts)


PAGE = """- generic [active] [ref=e1] [box=0,0,9,9]:
  - 'heading "a: [ref=e9]" [level=1] [ref=e2] [box=0,0,9,9]'
  - iframe [ref=e3] [box=0,0,9,9]:
    - paragraph [ref=f1e1] [box=0,0,9,9]: inner
  - textbox "Note" [ref=e4] [box=0,0,9,9]
  - text: end"""


def test_a_frame_carries_the_origin_of_its_document() -> None:
    framed = document("f1e1", 1, address=f"{OTHER}/x", address_origin=OTHER, origin=OTHER)
    marked = mark(PAGE, [main(), framed])
    assert f"- iframe [ref=e3] [box=0,0,9,9] [origin={OTHER}]:" in marked.snapshot
    assert (marked.origin, marked.is_complete) == (SHOP, True)


def test_a_page_of_the_judge_in_place_of_the_sites_is_the_judges() -> None:
    assert mark(PAGE, [main(is_judges=True)]).origin == "judge"
    marked = mark(PAGE, [main(), document("f1e1", 1, is_judges=True)])
    assert "- iframe [ref=e3] [box=0,0,9,9] [origin=judge]:" in marked.snapshot
    assert marked.origin == SHOP


def test_a_frame_is_in_the_document_of_the_frame_around_it_not_of_one_before_it() -> None:
    page = """- iframe [ref=e1] [box=0,0,9,9]:
  - paragraph [ref=f1e1] [box=0,0,9,9]: theirs
- generic [ref=e2] [box=0,0,9,9]:
  - iframe [ref=e3] [box=0,0,9,9]:
    - paragraph [ref=f2e1] [box=0,0,9,9]: ours"""
    theirs = document("f1e1", 1, address=f"{OTHER}/x", address_origin=OTHER, origin=OTHER)
    ours = document("f2e1", 1, address="about:srcdoc", address_origin="null", origin=SHOP)
    marked = mark(page, [document("e1 e2 e3", 3, is_main=True), theirs, ours])
    assert f"- iframe [ref=e3] [box=0,0,9,9] [origin={SHOP}]:" in marked.snapshot


def test_a_frame_whose_document_gave_no_answer_has_no_origin() -> None:
    marked = mark(PAGE, [main()])
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
    marked = mark(PAGE, [main(), document("f1e1", 1, **facts)])
    frame = parse_snapshot(marked.snapshot).by_ref("e3")
    assert frame is not None
    assert frame.states["origin"] == origin


def test_a_frame_without_references_is_known_by_that_of_its_element() -> None:
    page = PAGE.replace(" [ref=f1e1]", "")
    marked = mark(page, [main(), document("", 1, frame="e3", address=f"{OTHER}/x", address_origin=OTHER, origin=OTHER)])
    assert f"- iframe [ref=e3] [box=0,0,9,9] [origin={OTHER}]:" in marked.snapshot
    assert marked.is_complete


def test_what_is_known_of_a_line_becomes_its_states() -> None:
    facts = [
        {"at": 0, "is_host": True, "text": "0-1"},
        {"at": 1, "author": "typed", "added_name": "3-9"},
        {"at": 3, "is_control": True, "value": 'a\n"b" \\ ', "name": "0-2,3-4"},
        {"at": 4, "text": "0-3"},
    ]
    marked = mark(PAGE, [main(lines=facts), document("f1e1", 1, lines=[{"at": 0, "author": "judge"}])])
    page = parse_snapshot(marked.snapshot)
    assert [
        {key: value for key, value in node.states.items() if key not in ("active", "origin")} for node in page.nodes
    ] == [
        {"editable": "host", "typed": "text:0-1"},
        {"editable": "true", "added": "name:3-9"},
        {},
        {"inserted": "page"},
        {"typed": "value,name:0-2,name:3-4"},
        {"typed": "text:0-3"},
    ]
    # The snapshot itself leaves the text of such a box out.
    assert page.value_of(page.nodes[4]) == 'a "b" \\'
    assert marked.inserted == ("f1e1",)
    assert as_shown(marked.snapshot, boxes=True).replace(': "a \\"b\\" \\\\"', "") == PAGE


@pytest.mark.parametrize(
    "documents",
    [[document("e1 e2 e4", 5, is_main=True)], [document("e1 e2 e3 e4", 6, is_main=True)], [document("f1e1", 5)], []],
    ids=["other references", "other lines", "another document", "none"],
)
def test_nothing_is_known_of_a_document_if_the_facts_are_about_another_snapshot(
    documents: list[DocumentReport],
) -> None:
    marked = mark(PAGE, [*documents, document("f1e1", 1)])
    assert not marked.is_complete
    unknown = [node.ref for node in parse_snapshot(marked.snapshot).nodes if node.states.get("editable") == "unknown"]
    assert unknown == ["e1", "e2", "e3", "e4", None]
    assert as_shown(marked.snapshot, boxes=True) == PAGE


def test_a_text_with_very_many_ranges_counts_as_typed_from_the_first_to_the_last() -> None:
    ranges = ",".join(f"{2 * at}-{2 * at + 1}" for at in range(1, 3_000))
    marked = mark(PAGE, [main(lines=[{"at": 1, "name": ranges}]), document("f1e1", 1)])
    assert "[typed=name:2-5999]" in marked.snapshot


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({"joined_before": "e2 e4", "joined_after": "e4"}, "[joined=before]"),
        ({"joined_before": "e4", "joined_after": "e2"}, "[joined=after]"),
        (
            {"joined_before": "e2", "joined_after": "e2", "lines": [{"at": 1, "name": "0-1"}]},
            "[typed=name:0-1] [joined]",
        ),
    ],
)
def test_an_element_that_is_one_word_with_what_is_beside_it_is_marked(facts: dict[str, object], state: str) -> None:
    marked = mark(PAGE, [main(**facts), document("f1e1", 1)])
    assert f"""[level=1] [ref=e2] [box=0,0,9,9] {state}'\n""" in marked.snapshot
    assert as_shown(marked.snapshot, boxes=True) == PAGE


@pytest.mark.parametrize("answer", [[1], [None], [{"refs": 1}], ["x"]])
def test_an_unusable_answer_gives_no_documents(answer: list[object]) -> None:
    assert read_documents(answer) == []


NAMES = st.text(max_size=30)


@given(
    names=st.lists(NAMES, min_size=1, max_size=6),
    texts=st.lists(NAMES, max_size=4),
    inside=st.sets(st.integers(0, 9)),
    typed=st.sets(st.integers(0, 9)),
)
def test_participants_see_the_same_snapshot_with_and_without_the_facts(
    names: list[str], texts: list[str], inside: set[int], typed: set[int]
) -> None:
    lines = [f"- button {json.dumps(name)} [ref=e{at}] [box=1,2,3,4]" for at, name in enumerate(names)]
    lines += [f"- text: {json.dumps(text)}" for text in texts]
    snapshot = "\n".join(lines)
    facts = [
        {"at": at, **({"author": "typed"} if at in inside else {}), **({"text": "1-2"} if at in typed else {})}
        for at in range(len(lines))
    ]
    refs = " ".join(f"e{at}" for at in range(len(names)))
    marked = mark(snapshot, [document(refs, len(lines), is_main=True, lines=facts)])
    assert marked.is_complete
    assert as_shown(marked.snapshot) == as_shown(snapshot)
    assert as_shown(marked.snapshot, boxes=True) == snapshot
    # No name or text of the page's is taken for a fact.
    before, after = parse_snapshot(snapshot).nodes, parse_snapshot(marked.snapshot).nodes
    assert [(node.role, node.name, node.text, node.ref) for node in after] == [
        (node.role, node.name, node.text, node.ref) for node in before
    ]
    for at, node in enumerate(after):
        assert ("editable" in node.states, "typed" in node.states) == (at in inside, at in typed)


@pytest.mark.e2e
async def test_what_was_typed_is_left_out_of_every_name_and_text(tmp_path: Path) -> None:
    wrong: list[str] = []
    with two_sites() as (own, _, documents):
        async with a_browser() as browser:
            for first in range(0, 100, 25):
                items = [named_page(seed) for seed in range(first, first + 25)]
                documents[f"/{first}"] = in_frames(items)
                await browser.open(f"{own}/{first}", "page-time")
                result, text = wrong_results(items, await browser.observe(), own, tmp_path)
                wrong += result
                assert text > 50
    assert wrong == []


@pytest.mark.e2e
async def test_reading_what_was_typed_leaves_the_page_and_its_references_as_they_are() -> None:
    page = """<title>t</title><label><input type=radio> Other: <input value=plum></label><h3 contenteditable>Memo</h3>
      <p id=said></p><script>
      // Taking a screenshot changes styles.
      new MutationObserver((_, observer) => { observer.disconnect(); said.textContent = 'changed'; }).observe(
        document.body, {subtree: true, childList: true, characterData: true, attributeFilter: ['id', 'role', 'value']});
      const { get } = Object.getOwnPropertyDescriptor(Node.prototype, 'textContent');
      setInterval(() => { if (Object.getOwnPropertyDescriptor(Node.prototype, 'textContent').get !== get ||
        Object.prototype._lastAriaSnapshotForQuery) said.textContent = 'seen'; }, 50)</script>"""
    with two_sites() as (own, _, documents):
        documents["/"] = page
        async with a_browser() as browser:
            await browser.open(f"{own}/", "real-time")
            first, second = await browser.observe(), await browser.observe()
    assert "[typed=name:7-11]" in first.snapshot
    assert first.snapshot == second.snapshot
    refs = [int(node.ref[1:]) for node in parse_snapshot(first.snapshot).nodes if node.ref]
    assert refs == sorted(refs)
    assert "changed" not in second.snapshot
    assert "seen" not in second.snapshot


SEEDS = {"every kind": (1, 3, 4, 5, 6, 9, 11, 12, 13, 14, 16, 19, 20, 29), "all": tuple(range(30))}


def test_the_chosen_pages_have_every_kind_of_frame_editor_and_element() -> None:
    def kinds(seeds: Iterable[int]) -> set[str]:
        return {kind for seed in seeds for kind in written_page(seed, SHOP, OTHER).shape.split(" > ")}

    assert kinds(SEEDS["every kind"]) == kinds(SEEDS["all"])


@pytest.mark.e2e
@pytest.mark.parametrize("pages", each(SEEDS, suite=["every kind"]))
async def test_checks_count_what_was_planted_where_the_sites_own_documents_show_it(tmp_path: Path, pages: str) -> None:
    wrong = []
    with two_sites() as (own, other, documents):
        async with a_browser() as browser:
            for seed in SEEDS[pages]:
                page = written_page(seed, own, other)
                documents.clear()
                documents |= page.documents
                await browser.open(own + page.path, "page-time")
                observation = await browser.observe()
                result = verdicts(observation, page.expected, own, other, tmp_path)
                wrong += [(seed, each, page.shape) for each in result if each[1] != each[2]]
    assert wrong == []
