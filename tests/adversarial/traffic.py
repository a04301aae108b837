"""What a browser records of the pages that are opened in it one after the other."""

import asyncio
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from helpers.browser.hostile_site import Site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.trajectory.recordings import checked
from judge.browser.installed import FoundBrowser
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.session import Traffic
from judge.browser.settle import SettleMode
from judge.records.assertions import Assertion
from judge.records.tasks import Task


def _traffic(browser: PlaywrightBrowser) -> Traffic:
    traffic = browser.traffic()
    assert traffic is not None
    return traffic


def _is_recorded(traffic: Traffic, step: int, path: str) -> bool:
    """Whether what is recorded of the requests of a path in a step is complete; where the log is full, none may be.

    A site may know of a request before the browser has told it.
    """
    entries = [each for each in traffic.entries if each["_step"] == step and path in each["request"]["url"]]
    is_told = bool(entries) or any(not each.url or path in each.url for each in traffic.left_out)
    is_answered = is_told and all(
        each["response"]["status"] or "_error" in each["response"] or each["_resourceType"] == "websocket"
        for each in entries
    )
    return is_answered and not traffic.is_pending


async def recorded_traffic(
    settle: SettleMode,
    website: str,
    until_by_url: Mapping[str, str],
    *,
    site: Site,
    program: FoundBrowser | None = None,
) -> Traffic:
    """All that is recorded. Each page is left when `site` was asked for the path that stands with its address, if any.

    The number of a page, from 1, is the step of its requests.
    """
    async with browser_pool(browser_settings(program), is_guarded=False) as pool, pool.browser(None) as browser:
        await browser.log_in(Task(task_id="t", website=website, task="x"))
        await browser.open(website, settle)
        await browser.observe()
        for number, (url, until) in enumerate(until_by_url.items(), 1):
            before = site.count(until)
            browser.begin_step(number)
            await browser.act("browser_navigate", {"url": url})
            async with asyncio.timeout(60):
                for tries in count(1):
                    if not until or (site.count(until) > before and _is_recorded(_traffic(browser), number, until)):
                        break
                    await asyncio.sleep(0.05)
                    if tries % 20 == 0:
                        # A page's clock may stand until the next look, as in an attempt.
                        await browser.observe()
        return _traffic(browser)


class Recorded(NamedTuple):
    """What was recorded of a family of pages, by name, while they were opened in one browser one after the other."""

    website: str
    traffic: Mapping[str, Traffic]

    def checked(self, folder: Path, name: str, check: dict[str, Any]) -> Assertion:
        return checked(folder, self.website, check, self.traffic[name])


def of_step(traffic: Traffic, step: int) -> Traffic:
    """What belongs to one page, as if it were the first."""
    entries = []
    for entry in (each for each in traffic.entries if each["_step"] == step):
        messages = [{**each, "_step": 1} for each in entry.get("_webSocketMessages", ())]
        entries.append({**entry, "_step": 1} | ({"_webSocketMessages": messages} if messages else {}))
    return traffic.model_copy(update={"entries": tuple(entries)})


async def recorded_family(
    settle: SettleMode,
    site: Site,
    pages: Mapping[str, tuple[str, str]],
    website: str,
    program: FoundBrowser | None = None,
) -> Recorded:
    """`pages` are their addresses, each with the path that it asks the site for."""
    traffic = await recorded_traffic(settle, website, dict(pages.values()), site=site, program=program)
    return Recorded(website, {name: of_step(traffic, number) for number, name in enumerate(pages, 1)})
