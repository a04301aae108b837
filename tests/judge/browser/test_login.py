"""Browsers that are logged in before their first page, and nothing of it in the next task."""

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.browser.hops import pages_of
from helpers.browser.hostile_site import Handler, Page, Site, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from judge.network.policy import NetworkPolicy
from judge.records.tasks import Task
from judge.scenario.models import ONE_TASK
from shared.errors import BrowserFault, SiteFault

pytestmark = pytest.mark.e2e

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


def task_on(site: Site, **keys: Any) -> Task:
    return ONE_TASK.validate_python({"task_id": "t", "website": site.url, "task": "x", **keys})


def logged_in(site: Site) -> dict[str, Any]:
    cookie = {"name": "session", "value": "cookie-1", "domain": "127.0.0.1", "path": "/", "expires": -1}
    token = {"origin": site.url.rstrip("/"), "localStorage": [{"name": "token", "value": "token-1"}]}
    return {"cookies": [cookie], "origins": [token]}


def policy(*sites: Site) -> NetworkPolicy:
    return NetworkPolicy.for_websites(site.url for site in sites)


async def the_first_page_has_the_cookies_and_the_local_storage(
    browser: PlaywrightBrowser, site: Site, settle: SettleMode
) -> None:
    site.paths.clear()
    await browser.open(f"{site.url}who", settle)
    page = await browser.observe()
    assert "session=cookie-1 token-1" in page.snapshot
    assert [path for path in site.paths if path != "/favicon.ico"] == ["/who"]
    assert pages_of(browser.take_hops()) == [(f"{site.url}who", False)]
    assert (len(page.tabs), page.refused) == (1, ())


async def title_of(browser: PlaywrightBrowser, url: str) -> str:
    await browser.open(url)
    return (await browser.observe()).title


async def test_a_log_in_holds_from_the_first_page_to_the_end_of_its_task(subtests: pytest.Subtests, site: Site) -> None:
    with hostile_site(PAGES) as second, hostile_site(PAGES) as foreign:
        ada = {"username": "ada", "password": "pass-word"}
        task = task_on(site, storage_state=logged_in(site), http_credentials=[ada, {**ada, "origin": second.url}])
        async with browser_pool(browser_settings()) as pool:
            async with pool.browser(policy(site, second, foreign)) as browser:
                await browser.log_in(task)
                with subtests.test("the first page, in page time"):
                    await the_first_page_has_the_cookies_and_the_local_storage(browser, site, "page-time")
                with subtests.test("what a page changes later stays changed"):
                    await browser.open(f"{site.url}log-out")
                    assert "session=cookie-1 changed" in (await browser.observe()).snapshot
                with subtests.test("credentials reach their own origins only"):
                    titles = [await title_of(browser, f"{each.url}private") for each in (site, second, foreign)]
                    assert titles == ["Inside", "Inside", "Outside"]
                folder = browser.folder
            async with pool.browser(policy(site)) as browser:
                with subtests.test("the next task is not logged in"):
                    await browser.log_in(task_on(site))
                    await browser.open(f"{site.url}who", "page-time")
                    snapshot = (await browser.observe()).snapshot
                    assert "undefined" in snapshot
                    assert "cookie-1" not in snapshot
                    assert await title_of(browser, f"{site.url}private") == "Outside"
                    assert browser.folder == folder
                with subtests.test("start pages are tabs, the first in front; one out of reach is a fault of the site"):
                    await browser.open(site.url)
                    await browser.open_tabs([f"{site.url}who", f"{site.url}goal"])
                    page = await browser.observe()
                    assert [(tab.url, tab.current) for tab in page.tabs] == [
                        (site.url, True),
                        (f"{site.url}who", False),
                        (f"{site.url}goal", False),
                    ]
                    assert page.title == "Home"
                    with pytest.raises(SiteFault, match=r"http://127.0.0.1:9/ cannot be reached"):
                        await browser.open_tabs(["http://127.0.0.1:9/"])
            async with pool.browser(policy(site)) as browser:
                with subtests.test("the first page, in real time"):
                    await browser.log_in(task)
                    await the_first_page_has_the_cookies_and_the_local_storage(browser, site, "real-time")
                with subtests.test("a storage state that the browser refuses is a fault without its values"):
                    # Only a secure origin may set such a cookie.
                    cookie = {"name": "__Host-id", "value": "cookie-1", "domain": "127.0.0.1", "path": "/x"}
                    with pytest.raises(BrowserFault, match="refused the task's storage_state") as caught:
                        await browser.log_in(task_on(site, storage_state={"cookies": [cookie]}))
                    assert "cookie-1" not in str(caught.value)
