"""Browsers that are logged in before their first page, and nothing of it in the next task."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from helpers.browser.hostile_site import Handler, Page, Site, hostile_site
from helpers.browser.sessions import browser_settings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool, browser_pool
from judge.browser.session import Hop
from judge.scenario.models import ONE_TASK
from judge.sites import NetworkPolicy
from shared.errors import BrowserFault, SiteFault
from shared.models import Task

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

WHO = "<title>Who</title><p id=said></p><script>said.textContent = document.cookie + ' ' + localStorage.token</script>"
LOG_OUT = "<script>localStorage.token = 'changed'; location = '/who'</script>"


def private(handler: Handler) -> None:
    # "ada" and "pass-word"
    if handler.headers["Authorization"] == "Basic YWRhOnBhc3Mtd29yZA==":
        handler.send(b"<title>Inside</title>")
    else:
        handler.send(b"<title>Outside</title>", 401, WWW_Authenticate='Basic realm="x"')


PAGES: dict[str, Page] = {"/who": WHO, "/log-out": LOG_OUT, "/private": private}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with hostile_site(PAGES) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[BrowserPool]:
    async with browser_pool(browser_settings()) as running:
        yield running


def task_on(site: Site, **keys: Any) -> Task:
    return ONE_TASK.validate_python({"task_id": "t", "website": site.url, "task": "x", **keys})


def logged_in(site: Site) -> dict[str, Any]:
    cookie = {"name": "session", "value": "cookie-1", "domain": "127.0.0.1", "path": "/", "expires": -1}
    token = {"origin": site.url.rstrip("/"), "localStorage": [{"name": "token", "value": "token-1"}]}
    return {"cookies": [cookie], "origins": [token]}


def policy(*sites: Site) -> NetworkPolicy:
    return NetworkPolicy.for_websites(site.url for site in sites)


async def text_of(browser: PlaywrightBrowser, url: str) -> str:
    await browser.open(url)
    return (await browser.observe()).snapshot


@pytest.mark.parametrize("settle", ["real-time", "page-time"])
async def test_the_first_page_has_the_cookies_and_the_local_storage(pool: BrowserPool, site: Site, settle: Any) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser.log_in(task_on(site, storage_state=logged_in(site)))
        site.seen.clear()
        await browser.open(f"{site.url}who", settle)
        page = await browser.observe()
        assert "session=cookie-1 token-1" in page.snapshot
        assert [path for path in site.seen if path != "/favicon.ico"] == ["/who"]
        assert browser.take_hops() == (Hop(url=f"{site.url}who"),)
        assert (len(page.tabs), page.refused) == (1, ())


async def test_what_a_page_changes_later_stays_changed(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser.log_in(task_on(site, storage_state=logged_in(site)))
        assert "session=cookie-1 changed" in await text_of(browser, f"{site.url}log-out")


async def test_the_next_task_is_not_logged_in(pool: BrowserPool, site: Site) -> None:
    credentials = {"username": "ada", "password": "pass-word"}
    async with pool.browser(policy(site)) as browser:
        await browser.log_in(task_on(site, storage_state=logged_in(site), http_credentials=credentials))
        await browser.open(f"{site.url}private")
        first, folder = await browser.observe(), browser.folder
        assert "token-1" in await text_of(browser, f"{site.url}who")
    async with pool.browser(policy(site)) as browser:
        await browser.log_in(task_on(site))
        assert "undefined" in await text_of(browser, f"{site.url}who")
        assert "cookie-1" not in (await browser.observe()).snapshot
        await browser.open(f"{site.url}private")
        assert (first.title, (await browser.observe()).title) == ("Inside", "Outside")
        assert browser.folder == folder


async def test_credentials_reach_their_own_origins_only(pool: BrowserPool, site: Site) -> None:
    with hostile_site(PAGES) as second, hostile_site(PAGES) as foreign:
        credentials = [
            {"username": "ada", "password": "pass-word"},
            {"username": "ada", "password": "pass-word", "origin": second.url},
        ]
        async with pool.browser(policy(site, second, foreign)) as browser:
            await browser.log_in(task_on(site, http_credentials=credentials))
            titles = []
            for each in (site, second, foreign):
                await browser.open(f"{each.url}private")
                titles.append((await browser.observe()).title)
    assert titles == ["Inside", "Inside", "Outside"]


async def test_a_storage_state_that_the_browser_refuses_is_a_fault_without_its_values(site: Site) -> None:
    # Only a secure origin may set such a cookie.
    state = {"cookies": [{"name": "__Host-id", "value": "cookie-1", "domain": "127.0.0.1", "path": "/x"}]}
    async with browser_pool(browser_settings()) as pool, pool.browser(policy(site)) as browser:
        with pytest.raises(BrowserFault, match="refused the task's storage_state") as caught:
            await browser.log_in(task_on(site, storage_state=state))
        assert "cookie-1" not in str(caught.value)


async def test_start_pages_are_tabs_with_the_first_in_front(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser.open(site.url, "page-time")
        await browser.open_tabs([f"{site.url}who", f"{site.url}goal"])
        page = await browser.observe()
        assert [(tab.url, tab.current) for tab in page.tabs] == [
            (site.url, True),
            (f"{site.url}who", False),
            (f"{site.url}goal", False),
        ]
        assert page.title == "Home"


async def test_a_start_page_that_cannot_be_reached_is_a_fault_of_the_site(site: Site) -> None:
    async with browser_pool(browser_settings()) as pool, pool.browser(policy(site)) as browser:
        await browser.open(site.url)
        with pytest.raises(SiteFault, match=r"http://127.0.0.1:9/ cannot be reached"):
            await browser.open_tabs(["http://127.0.0.1:9/"])
