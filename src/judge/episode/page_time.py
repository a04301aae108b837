"""Whether an attempt waits for pages in page time, and the pages with which it cannot go on."""

from collections.abc import Sequence

from judge.browser.settle import ClockStalled, SettleMode, settle_mode
from judge.episode.first_page import require_first_page
from judge.episode.part import Stage
from judge.records.steps import Navigation
from shared.models import Page


async def mode_of(stage: Stage) -> SettleMode:
    """How to wait for the pages of an attempt."""
    setting = "real-time" if stage.in_real_time or stage.network.is_real_time else stage.config.settle
    if setting == "auto" and stage.network.clock_ms is not None:
        # Only in page time can the clock start with the recording. No names are resolved, either.
        return "page-time"
    return await settle_mode(setting, stage.task.website)


def require_page(stage: Stage, page: Page, navigations: Sequence[Navigation]) -> None:
    """Raises a `SiteFault` for a first page that shows no site, and for a page whose clock stalled."""
    if not stage.steps:
        frozen = stage.network.frozen()
        is_missing = frozen is not None and frozen.coverage == "off_archive"
        require_first_page(page, stage.task.website, stage.settle, is_missing=is_missing)
    elif _needs_real_time(stage, page, navigations):
        raise ClockStalled


def _needs_real_time(stage: Stage, page: Page, navigations: Sequence[Navigation]) -> bool:
    """Whether a script was stopped that may have waited for the page's clock, and playing again is fair. It is not if
    the participant named the page's address: it could get another attempt whenever it wanted.
    """
    if stage.settle != "page-time" or not stage.can_replay or page.notice is None:
        return False
    if page.notice.code == "script_stopped":
        return not stage.route.has_named(page.url)
    # The page is gone. It was the one to which the browser navigated last.
    url = navigations[-1].url if navigations else stage.steps[-1].url
    return page.notice.code == "tab_busy" and not stage.route.has_named(url)
