"""The first page of a task's site: without it no attempt begins, and one that failed may have lost its site."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from judge.browser.session import BrowserFactory
from judge.browser.settle import ClockStalled, SettleMode
from judge.config import RunConfig
from judge.network.attempt import AttemptNetwork
from judge.records.notices import notice_text
from judge.records.sites import Site
from judge.records.steps import StopReason
from judge.records.tasks import Task
from judge.trajectory.record import JUDGED_ENDS
from shared.errors import SiteBlocked, SiteUnreachable, WabeError
from shared.models import Page

SERVER_ERRORS = 500
# Failures of these ends may be due to a lost site. Other ends are the participant's own, such as replies that cannot be
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


def has_failed(entries: Iterable[Mapping[str, Any]], site: Site) -> bool:
    """Whether a request to the task's site had no answer or a server error. `entries` are those of HAR."""
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
        async with asyncio.timeout(config.step_timeout_s), network.browser(browsers) as browser:
            await browser.log_in(task)
            await browser.open(address, settle)
            require_first_page(await browser.observe(), address, settle)
    except SiteUnreachable as fault:
        return fault
    except (WabeError, TimeoutError) as error:
        _log.warning("task %s: whether its site still works is not known: %s", task.task_id, error)
    return None
