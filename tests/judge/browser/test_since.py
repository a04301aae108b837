"""What is reported with an observation, of all that happened since the one before."""

from typing import Any

import pytest

from judge.browser.settle import Report
from judge.browser.since import BLANK, ChangesSince
from shared.models import Notice, Page, SettleTime

SHOP = "https://shop.example/"
FIELD = '- textbox "Name" [ref=e1]: {}'
SLOW_S = 10.0


def page(snapshot: str = "- text: Shop", url: str = SHOP, **keys: Any) -> Page:
    return Page(url=url, title="Shop", snapshot=snapshot, **keys)


def code(since: ChangesSince, observed: Page) -> str | None:
    notice = since.notice(observed, SLOW_S)
    return notice.code if notice else None


@pytest.mark.parametrize(
    ("reports", "events", "expected"),
    [
        ([], {}, None),
        ([], {"has_chosen": True}, "file_chooser_cancelled"),
        ([], {"has_chosen": True, "was_loading": True}, "loading_stopped"),
        ([{"closed_tabs": 2}, {"closed_tabs": 1}], {"was_loading": True}, "tabs_closed"),
        ([{"stopped": True}, {"closed_tabs": 1}], {"was_loading": True}, "script_stopped"),
    ],
)
def test_the_most_serious_event_is_reported(
    reports: list[dict[str, Any]], events: dict[str, Any], expected: str | None
) -> None:
    assert code(ChangesSince(reports=[Report(**each) for each in reports], **events), page()) == expected


@pytest.mark.parametrize(("cause", "expected"), [("crashed", "tab_crashed"), ("flooded", "tab_flooded")])
def test_a_lost_tab_is_reported_only_with_the_empty_page_in_its_place(cause: Any, expected: str) -> None:
    since = ChangesSince(reports=[Report(lost=cause)])
    assert (code(since, page()), code(since, page(url=BLANK))) == (None, expected)


def test_what_something_worse_kept_from_being_reported_is_reported_with_the_next_observation() -> None:
    since, busy = ChangesSince(was_loading=True, has_chosen=True), page(notice=Notice(code="no_snapshot"))
    assert code(since, busy) == "no_snapshot"
    later = since.after(busy)
    assert code(later, page()) == "loading_stopped"
    assert code(later.after(page()), page()) is None


@pytest.mark.parametrize(
    ("value", "is_done", "is_found_again", "expected"),
    [("Ann", True, False, None), ("An", True, False, "not_as_typed"), ("", False, False, None), ("", True, True, None)],
)
def test_a_field_that_does_not_show_what_was_typed_is_reported(
    value: str, is_done: bool, is_found_again: bool, expected: str | None
) -> None:
    since, params = ChangesSince(), {"target": "e1", "text": "Ann"}
    since.acted("browser_type", params, is_done=is_done, is_found_again=is_found_again)
    assert code(since, page(FIELD.format(value))) == expected
    assert code(since.after(page()), page(FIELD.format(value))) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("- a", b"1"), ("- a [active]", b"1"), "nothing_changed"),
        (("- a", b"1"), ("- b", b"1"), None),
        (("- a", b"1"), ("- a", b"2"), None),
        (("- a", None), ("- a", None), None),
    ],
)
def test_a_drag_that_changed_nothing_is_reported(
    before: tuple[str, bytes | None], after: tuple[str, bytes | None], expected: str | None
) -> None:
    since = ChangesSince().after(page(before[0], screenshot=before[1]))
    since.acted("browser_mouse_drag_xy", {}, is_done=True, is_found_again=False)
    assert code(since, page(after[0], screenshot=after[1])) == expected


def test_the_findings_of_each_settling_belong_to_the_next_observation_alone() -> None:
    since = ChangesSince()
    for real_s, waited_for in ((1.0, ("timer", "request")), (2.0, ("request",))):
        settled = SettleTime(real_s=real_s, page_s=0.5, waited_for=waited_for)
        since.settled(Report(settled=settled, downloads=("a.csv",), links=((SHOP, "https://x.example/"),)))
    result = since.as_fields()
    assert result["settled"] == SettleTime(real_s=3.0, page_s=1.0, waited_for=("timer", "request"))
    assert (result["downloads"], len(result["links"])) == (("a.csv", "a.csv"), 2)
    empty = since.after(page()).as_fields()
    assert (empty["settled"], empty["downloads"], empty["links"]) == (SettleTime(), (), ())


def test_a_download_is_reported_once() -> None:
    since = ChangesSince()
    since.settled(Report(downloads=("a.csv",)))
    assert (since.take_downloads(), since.as_fields()["downloads"]) == (("a.csv",), ())


def test_a_tab_that_does_not_answer_stays_condemned_until_it_is_replaced() -> None:
    since = ChangesSince(tabs=3, is_settled=True)
    since.settled(Report(silent=True))
    since = since.after(page())
    before, tab = since.condemned, page(url=BLANK)
    since.replaced(tab)
    assert (before, since.condemned) == (Notice(code="tab_busy"), None)
    assert (since.is_settled, since.url, since.tabs) == (False, BLANK, len(tab.tabs))
