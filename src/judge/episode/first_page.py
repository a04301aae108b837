"""PageObserver with which an attempt cannot begin or go on, and whether one that failed has lost its site."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judge.browser.session import BrowserFactory
from judge.browser.settle import ClockStalled, SettleMode, settle_mode
from judge.config import RunConfig
from judge.episode.part import AttemptStage
from judge.network.attempt import AttemptNetwork
from judge.records.notices import notice_text
from judge.records.sites import Site
from judge.records.steps import Navigation, StopReason
from judge.records.tasks import Task
from judge.trajectory.record import JUDGED_ENDS
from shared.errors import SiteBlocked, SiteUnreachable, WabeError
from shared.models import Page
from shared.patience import patience

SERVER_ERRORS = 500
# Failures of these ends may be due to a lost site. Other ends are the participant's, such as replies that cannot be
# read.
OPEN_TO_LOSS: tuple[StopReason, ...] = (*JUDGED_ENDS, "max_steps", "task_timeout")
# The page itself ended the request, for example by leaving.
_ABORTED = "net::ERR_ABORTED"
_log = logging.getLogger(__name__)


def first_address(task: Task) -> str:
    """The address of the page with which attempts at the task begin."""
    return task.start_urls[0] if task.start_urls else task.website


def require_first_page(page: Page, website: str, settle: SettleMode | None, *, is_missing: bool = False) -> None:
    """Raises a `SiteFault` for a page that shows no site. Later, a participant's action may have led there.

    `is_missing`: an archive has no answer. That would be the same in every attempt, so another one would not help.
    """
    if page.notice and page.notice.code == "script_stopped" and settle == "page-time":
        raise ClockStalled
    if page.notice:
        raise SiteUnreachable(f"{website[:200]} cannot be observed: {notice_text(page.notice)}")
    if page.wall:
        raise SiteBlocked(f"{website[:200]} shows {page.wall} instead of its first page")
    # Other errors may be what a task is about: that something is missing, or not allowed.
    if page.http_status is not None and page.http_status >= SERVER_ERRORS and not is_missing:
        raise SiteUnreachable(f"{website[:200]} answers with HTTP status {page.http_status} instead of its first page")


async def mode_of(stage: AttemptStage) -> SettleMode:
    """How to wait for the pages of an attempt."""
    setting = "real-time" if stage.in_real_time or stage.network.is_real_time else stage.config.settle
    if setting == "auto" and stage.network.clock_ms is not None:
        # Only in page time can the clock start with the recording. No names are resolved, either.
        return "page-time"
    return await settle_mode(setting, stage.task.website)


def require_page(stage: AttemptStage, page: Page, navigations: Sequence[Navigation]) -> None:
    """Raises a `SiteFault` for a first page that shows no site, and for a page whose clock stalled."""
    if not stage.steps:
        frozen = stage.network.frozen()
        is_missing = frozen is not None and frozen.coverage == "off_archive"
        require_first_page(page, stage.task.website, stage.settle, is_missing=is_missing)
    elif _needs_real_time(stage, page, navigations):
        raise ClockStalled


def _needs_real_time(stage: AttemptStage, page: Page, navigations: Sequence[Navigation]) -> bool:
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


def has_failed(entries: Iterable[Mapping[str, Any]], site: Site) -> bool:
    """Whether a request to the task's site had no answer or a server error. `entries` are HAR's."""
    return any(_is_failure(entry["response"]) and site.holds(entry["request"]["url"]) for entry in entries)


def _is_failure(response: Mapping[str, Any]) -> bool:
    return response["status"] >= SERVER_ERRORS or response.get("_error") not in (None, _ABORTED)


async def loss_of(
    task: Task, config: RunConfig, network: AttemptNetwork, browsers: BrowserFactory, *, is_page_time: bool
) -> SiteUnreachable | None:
    """Why the site does not show its first page any more, in a browser that opens it as an attempt does.

    `None` if it does, or if this could not be found out.
    """
    address = first_address(task)
    settle: SettleMode = "page-time" if is_page_time else "real-time"
    try:
        async with patience(config.step_timeout_s), network.browser(browsers) as browser:
            await browser.log_in(task)
            await browser.open(address, settle)
            require_first_page(await browser.observe(), address, settle)
    except SiteUnreachable as fault:
        return fault
    except (WabeError, TimeoutError) as error:
        _log.warning("task %s: whether its site still works is not known: %s", task.task_id, error)
    return None
