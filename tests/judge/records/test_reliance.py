"""What a look rests on follows from the ledger and from the documents that were loaded."""

from collections.abc import Sequence

import pytest

from judge.records.ledger import MAX_ENTRIES, Coverage, Frozen, Grade, LedgerEntry
from judge.records.reliance import Reliance
from judge.records.steps import Step
from shared.models import Action

URL = "https://shop.example/"


def asked(step: int, grade: Grade = "miss", kind: str = "fetch", **effects: bool) -> LedgerEntry:
    miss = "decisive" if grade == "miss" else None
    effects = {"is_read": True, **effects}
    return LedgerEntry(step=step, method="GET", url=URL, kind=kind, grade=grade, miss=miss, **effects)


def document(step: int, grade: Grade = "exact") -> LedgerEntry:
    return asked(step, grade, "document")


def looks(entries: Sequence[LedgerEntry], *loaded: int, count: int = 3) -> list[Coverage]:
    """What each look rests on; in the steps `loaded`, the page's document was replaced."""
    steps = [Step(index=index, url=URL, title="", is_loaded=index in loaded) for index in range(count)]
    reliance = Reliance.of(Frozen(archives=()).with_ledger(entries), steps)
    return [reliance.of_look(index) for index in range(count)]


def test_a_missing_answer_affects_its_page_until_another_document_with_a_certain_answer_replaces_it() -> None:
    assert looks([asked(1)]) == ["full", "off_archive", "off_archive"]
    assert looks([asked(1), document(2)], 2) == ["full", "off_archive", "full"]


@pytest.mark.parametrize(
    ("entries", "loaded"),
    [
        # Not shown as the page: a download, or the document of a frame or of another tab.
        ([document(2)], ()),
        # It may come from a worker of the page, or was fetched before: nobody knows whose answer it is.
        ([asked(1, "exact", "worker")], (2,)),
        ([asked(1, "uncertain", "prefetch")], (2,)),
        ([document(2, "uncertain")], (2,)),
        ([document(2), document(2, "miss")], (2,)),
        # The new page misses something itself.
        ([document(2), asked(2)], (2,)),
    ],
)
def test_nothing_else_replaces_it(entries: list[LedgerEntry], loaded: tuple[int, ...]) -> None:
    assert looks([asked(1), *entries], *loaded)[2] != "full"


def test_a_document_from_the_browsers_cache_is_certain() -> None:
    assert looks([asked(1)], 2) == ["full", "off_archive", "full"]


def test_what_the_page_before_asked_for_in_the_same_step_does_not_concern_the_new_page() -> None:
    assert looks([asked(1), document(1)], 1) == ["full", "full", "full"]


def test_what_may_change_later_answers_affects_everything_after_it() -> None:
    written = [asked(1, "uncertain", is_read=False), document(2)]
    assert looks(written, 2) == ["full", "uncertain", "uncertain"]


def test_what_an_affected_page_writes_affects_everything_after_it() -> None:
    written = asked(2, "exact", is_read=False)
    assert looks([asked(1), written, document(3)], 3, count=4)[3] == "off_archive"
    assert looks([asked(1), document(2), written, document(3)], 2, 3, count=4)[3] == "full"
    # By a form, whose answer is the next page.
    form = document(2).model_copy(update={"is_read": False})
    assert looks([asked(1), form], 2) == ["full", "off_archive", "off_archive"]


@pytest.mark.parametrize("harmless", [asked(1, "exact"), asked(1, "fuzzy"), asked(1, "synthesised")])
def test_certain_answers_affect_nothing(harmless: LedgerEntry) -> None:
    assert looks([harmless.model_copy(update={"is_read": False})]) == ["full"] * 3


@pytest.mark.parametrize("miss", ["harmless", "cosmetic"])
def test_misses_that_decide_nothing_affect_nothing(miss: str) -> None:
    assert looks([asked(1, is_read=False).model_copy(update={"miss": miss})]) == ["full"] * 3


def test_what_is_asked_after_the_last_look_concerns_that_look() -> None:
    assert looks([asked(3)])[-1] == "off_archive"


def test_requests_rest_on_the_look_before_and_on_those_of_their_own_step() -> None:
    steps = [Step(index=index, url=URL, title="", is_loaded=index == 2) for index in range(3)]
    reliance = Reliance.of(Frozen(archives=()).with_ledger([asked(1, "uncertain"), document(2)]), steps)
    assert [reliance.of_requests(step) for step in (0, 1, 2, None)] == ["full", "uncertain", "uncertain", "uncertain"]


def test_requests_that_were_left_out_affect_everything_after_the_last_recorded_one() -> None:
    entries = [*[asked(0, "exact")] * MAX_ENTRIES, asked(1)]
    assert looks(entries) == ["off_archive"] * 3


def absent(entries: Sequence[LedgerEntry], tool: str, *loaded: int) -> Coverage:
    """What it rests on that nothing else was sent, if the participant did this on the second of three pages."""
    tools = ["browser_navigate", tool, "finish"]
    steps = [
        Step(index=index, url=URL, title="", is_loaded=index in loaded, action=Action(tool=name, params={}))
        for index, name in enumerate(tools)
    ]
    return Reliance.of(Frozen(archives=()).with_ledger(entries), steps).absent


def test_that_nothing_was_sent_rests_on_what_pages_could_have_sent() -> None:
    left = [document(1, "miss"), document(2)]
    assert absent(left, "browser_navigate_back", 1, 2) == "full"
    # The page could have been another one to act on.
    assert absent(left, "browser_click", 1, 2) == "off_archive"
    assert absent([document(1, "miss")], "browser_navigate_back", 1) == "off_archive"
    # A script may go on with an answer, unless such scripts are known not to.
    assert absent([asked(1), document(2)], "browser_navigate_back", 2) == "off_archive"
    quiet = asked(1, is_quiet=True)
    assert absent([quiet, document(2)], "browser_navigate_back", 2) == "full"
    assert absent([quiet.model_copy(update={"step": 2})], "browser_click") == "full"
    assert absent([quiet, document(2)], "browser_click", 2) == "off_archive"
