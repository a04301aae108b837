"""What happened in the browser since the last observation, and what that one showed."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

from judge.browser import fields, settle
from judge.browser.settle import Report
from judge.records.tools import HOLD, tool_of
from shared.models import Notice, Page, SettleTime

BLANK = "about:blank"
# A page that keeps replacing its elements is observed anyway, without the facts about those elements.
MARK_TRIES = 2


@dataclass
class ChangesSince:
    """One for each observation: it begins when the observation before it ends.

    `url`, `title` and `tabs` (their number) are the browser's as last seen; `snapshot` and `screenshot` are what
    the last observation showed, empty before the first one.
    """

    url: str = BLANK
    title: str = ""
    tabs: int = 1
    snapshot: str = ""
    screenshot: bytes | None = None
    reports: list[Report] = field(default_factory=list)
    downloads: tuple[str, ...] = ()
    # Whether loading was stopped, and whether a file chooser was cancelled.
    was_loading: bool = False
    has_chosen: bool = False
    # Whether a file chooser was open when the page last settled.
    has_chooser: bool = False
    # What the last action typed, by the field's reference; and whether it was a drag or a long press.
    typed: dict[str, str] = field(default_factory=dict)
    has_held: bool = False
    # Why the page in front must be replaced before anything else.
    condemned: Notice | None = None
    # Whether the page has settled since the last action, and when it last did.
    is_settled: bool = False
    settled_at: float = field(default_factory=time.monotonic)
    # How many more times a page may be observed again because it replaced elements meanwhile.
    marks_left: int = MARK_TRIES

    def after(self, page: Page) -> "ChangesSince":
        """Where the next observation begins. What was not reported, because something worse was, still is to be."""
        return replace(self, snapshot=page.snapshot, screenshot=page.screenshot, reports=[], downloads=())

    def settled(self, report: Report) -> None:
        """Record how the page settled."""
        self.reports.append(report)
        self.downloads += report.downloads
        self.settled_at = time.monotonic()
        self.has_chooser = report.has_chooser
        if report.silent:
            self.condemned = Notice(code="tab_busy")

    def acted(self, tool: str, params: dict[str, Any], *, is_done: bool, is_found_again: bool) -> None:
        """Record an action whose effect the next observation shows."""
        self.typed = tool_of(tool).fills(params) if is_done and not is_found_again else {}
        self.has_held = is_done and (tool_of(tool).drops or bool(params.get(HOLD)))

    @property
    def has_lost_document(self) -> bool:
        """Whether the page has had no document since it last settled."""
        return bool(self.reports) and self.reports[-1].lost_document

    def shows(self, url: str, title: str) -> None:
        """Record which page is in front."""
        self.url, self.title = url, title

    def replaced(self, page: Page) -> None:
        """Record an empty tab in place of the one in front."""
        self.shows(page.url, page.title)
        self.tabs = len(page.tabs)
        self.condemned, self.is_settled = None, False

    def loss(self) -> Notice | None:
        """How a tab was lost, if any. A page may also be empty for other reasons."""
        cause = next((report.lost for report in self.reports if report.lost), None)
        return Notice(code="tab_crashed" if cause == "crashed" else "tab_flooded") if cause else None

    def notice(self, page: Page, navigation_timeout_s: float) -> Notice | None:
        """What is to be reported with an observation: the most serious event, or a missing effect."""
        cause = self.loss() if page.url == BLANK else None
        return page.notice or cause or self._event(navigation_timeout_s) or self._effect(page)

    def _event(self, navigation_timeout_s: float) -> Notice | None:
        was_loading, self.was_loading = self.was_loading, False
        has_chosen, self.has_chosen = self.has_chosen, False
        if any(report.stopped for report in self.reports):
            return Notice(code="script_stopped", seconds=settle.MAX_CPU_S)
        if closed := sum(report.closed_tabs for report in self.reports):
            return Notice(code="tabs_closed", count=closed)
        if was_loading:
            return Notice(code="loading_stopped", seconds=navigation_timeout_s)
        if self.has_chooser:
            return Notice(code="file_chooser_open")
        return Notice(code="file_chooser_cancelled") if has_chosen else None

    def _effect(self, page: Page) -> Notice | None:
        """Whether the last action did not have the effect that it has elsewhere."""
        typed, self.typed = self.typed, {}
        has_held, self.has_held = self.has_held, False
        if count := fields.count_differing(page.snapshot, typed, self.snapshot):
            return Notice(code="not_as_typed", count=count)
        is_same = _without_focus(page.snapshot) == _without_focus(self.snapshot) and page.screenshot == self.screenshot
        return Notice(code="nothing_changed") if has_held and is_same and page.screenshot is not None else None

    def as_fields(self) -> dict[str, Any]:
        """The duration and findings of all settling, and the downloads, as fields of a page."""
        settled = SettleTime(
            real_s=sum(wait.settled.real_s for wait in self.reports),
            page_s=sum(wait.settled.page_s for wait in self.reports),
            waited_for=tuple(dict.fromkeys(reason for wait in self.reports for reason in wait.settled.waited_for)),
        )
        vanished = tuple(each for wait in self.reports for each in wait.vanished)
        return {
            "settled": settled,
            "vanished": tuple(each.text for each in vanished),
            "vanished_records": vanished,
            "links": tuple(link for wait in self.reports for link in wait.links),
            "downloads": self.downloads,
        }

    def take_downloads(self) -> tuple[str, ...]:
        """The downloads that no observation and no action has reported yet."""
        downloads, self.downloads = self.downloads, ()
        return downloads


def _without_focus(snapshot: str) -> str:
    return snapshot.replace(" [active]", "")
