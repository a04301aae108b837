"""Browsers that are used for one task after the other: nothing of a task reaches the next one."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from helpers.browser.hostile_site import Handler, Page, Site, hostile_site
from helpers.browser.sessions import browser_settings, left_behind, processes_of_browser, ref_of
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool, browser_pool
from judge.browser.processes import is_browser
from judge.browser.session import Hop
from judge.browser.settle import settle_code
from judge.sites import NetworkPolicy
from shared.errors import ParticipantError, SiteFault

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

# What a page leaves behind, and how a later page finds it.
LEAVES = {
    "cookies": ("document.cookie = 'left=1; max-age=9999'", "document.cookie !== ''"),
    "local storage": ("localStorage.left = 1", "'left' in localStorage"),
    "session storage": ("sessionStorage.left = 1", "'left' in sessionStorage"),
    "databases": (
        "await new Promise(done => indexedDB.open('left').onsuccess = done)",
        "(await indexedDB.databases()).length > 0",
    ),
    "cache storage": ("await (await caches.open('left')).put('/x', new Response('x'))", "await caches.has('left')"),
    "service workers": (
        "await navigator.serviceWorker.register('/worker.js'); await navigator.serviceWorker.ready",
        "(await navigator.serviceWorker.getRegistrations()).length > 0",
    ),
}
ASYNC_PAGE = """<p role="status" id="said">wait</p><script type="module">
    try { said.textContent = String(await (async () => { %s })()) } catch (error) { said.textContent = error }
    </script>"""
# After the answer to its request, which tells that it hangs, it does nothing else.
HANGS = """<script>setTimeout(() => {
    const request = new XMLHttpRequest(); request.open("GET", "/hangs", false); request.send(); for (;;);
    }, 500)</script>"""
GRANT = "async page => await page.context().grantPermissions(['geolocation'])"


def cached(handler: Handler) -> None:
    handler.send(b"document.title = 'cached'", Cache_Control="max-age=3600", Content_Type="text/javascript")


def private(handler: Handler) -> None:
    if "Authorization" in handler.headers:
        handler.send(b"<title>Inside</title>")
    else:
        handler.send(b"<title>Outside</title>", 401, WWW_Authenticate='Basic realm="x"')


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages: dict[str, Page] = {
        "/worker.js": lambda handler: handler.send(b"", Content_Type="text/javascript"),
        "/cached.js": cached,
        "/with-script": "<script src=/cached.js></script>",
        "/private": private,
        "/files": "<a href=/file download>save</a>",
        "/loop": HANGS,
        "/alert": "<button onclick='alert(1)'>ask</button>",
        "/geolocation": ASYNC_PAGE % "return (await navigator.permissions.query({name: 'geolocation'})).state",
    }
    with hostile_site(pages) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[BrowserPool]:
    async with browser_pool(browser_settings()) as running:
        yield running


def policy(*sites: Site) -> NetworkPolicy:
    return NetworkPolicy.for_websites(site.url for site in sites)


def pid(browser: PlaywrightBrowser) -> int:
    return next(each.pid for each in processes_of_browser(browser) if is_browser(each, browser.folder))


async def said(browser: PlaywrightBrowser, url: str) -> str:
    """What the page at `url` says once its script is done."""
    await browser.open(url)
    await browser.act("browser_wait_for", {"textGone": "wait"})
    return (await browser.observe()).snapshot.rpartition(": ")[2].strip('"')


@pytest.mark.parametrize("kind", LEAVES)
async def test_what_a_page_stores_is_gone_with_the_next_task(pool: BrowserPool, site: Site, kind: str) -> None:
    leave, find = LEAVES[kind]
    site.pages |= {"/leave": ASYNC_PAGE % leave, "/find": ASYNC_PAGE % f"return {find}"}
    async with pool.browser(policy(site)) as browser:
        first = pid(browser)
        await said(browser, f"{site.url}leave")
        assert await said(browser, f"{site.url}find") == "true"
    async with pool.browser(policy(site)) as browser:
        assert await said(browser, f"{site.url}find") == "false"
        assert pid(browser) == first


async def test_the_http_cache_of_a_task_is_gone_with_the_next(pool: BrowserPool, site: Site) -> None:
    site.seen.clear()
    for _ in range(2):
        async with pool.browser(policy(site)) as browser:
            await browser.open(f"{site.url}with-script")
            await browser.open(f"{site.url}with-script")
    assert site.seen.count("/cached.js") == 2


async def test_a_log_in_to_a_server_is_gone_with_the_next_task(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser.open(f"{site.url.replace('://', '://ada:secret@')}private")
        await browser.open(f"{site.url}private")
        assert (await browser.observe()).title == "Inside"
    async with pool.browser(policy(site)) as browser:
        await browser.open(f"{site.url}private")
        assert (await browser.observe()).title == "Outside"


async def test_permissions_of_a_task_are_gone_with_the_next(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser._server.call("browser_run_code_unsafe", {"code": GRANT})
        assert await said(browser, f"{site.url}geolocation") == "granted"
    async with pool.browser(policy(site)) as browser:
        assert await said(browser, f"{site.url}geolocation") == "denied"


async def test_downloads_and_files_of_a_task_are_gone_with_the_next(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        before = {path.name for path in browser.folder.iterdir() if path.is_file()}
        await browser.open(f"{site.url}files")
        page = await browser.observe()
        clicked = await browser._server.call("browser_click", {"target": ref_of(page.snapshot, 'link "save"')})
        settled = await browser._server.call("browser_run_code_unsafe", {"code": settle_code(5)})
        assert "ownload" in clicked.text + settled.text, "it is this task's, and this test does not take it"
        assert {path.name for path in browser.folder.iterdir() if path.is_file()} > before
    async with pool.browser(policy(site)) as browser:
        assert {path.name for path in browser.folder.iterdir() if path.is_file()} == before
        await browser.open(site.url)
        assert (await browser.observe()).downloads == ()


async def test_hops_and_refusals_of_a_task_are_not_those_of_the_next(pool: BrowserPool, site: Site) -> None:
    with hostile_site() as other:
        async with pool.browser(policy(site)) as browser:
            await browser.open(other.url)
        async with pool.browser(policy(other)) as browser:
            assert browser.take_hops() == ()
            await browser.open(other.url)
            page = await browser.observe()
            assert (page.title, page.refused) == ("Home", ())
            assert browser.take_hops() == (Hop(url=other.url),)
            await browser.open(site.url)
            assert (await browser.observe()).refused != ()
        assert other.seen.count("/") == 1


async def test_connections_end_with_their_task(pool: BrowserPool, site: Site) -> None:
    asked, ended = threading.Event(), threading.Event()

    def endless(handler: Handler) -> None:
        asked.set()
        handler.rfile.read(1)  # until the browser hangs up
        ended.set()

    site.pages |= {"/endless": endless, "/asking": "<script>fetch('/endless')</script>"}
    async with pool.browser(policy(site)) as browser:
        await browser.open(f"{site.url}asking")
        assert await asyncio.to_thread(asked.wait, 10)
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_dialog_that_is_open_at_the_end_is_not_seen_by_the_next_task(pool: BrowserPool, site: Site) -> None:
    async with pool.browser(policy(site)) as browser:
        await browser.open(f"{site.url}alert")
        page = await browser.observe()
        await browser.act("browser_click", {"target": ref_of(page.snapshot, 'button "ask"')})
    async with pool.browser(policy(site)) as browser:
        await browser.open(site.url)
        assert (await browser.observe()).dialog is None


async def test_a_page_that_hangs_at_the_end_does_not_hold_up_the_next_task(pool: BrowserPool, site: Site) -> None:
    hanging = threading.Event()

    def hangs(handler: Handler) -> None:
        handler.send(b"")
        hanging.set()

    site.pages["/hangs"] = hangs
    async with pool.browser(policy(site)) as browser:
        await browser.open(f"{site.url}loop")
        assert await asyncio.to_thread(hanging.wait, 10)
    async with pool.browser(policy(site)) as browser:
        await browser.open(site.url)
        assert (await browser.observe()).title == "Home"


async def test_tasks_at_the_same_time_have_browsers_of_their_own(pool: BrowserPool, site: Site) -> None:
    with hostile_site() as other:
        async with pool.browser(policy(site)) as one, pool.browser(policy(other)) as two:
            assert one.folder != two.folder
            await asyncio.gather(one.open(site.url), two.open(other.url))
            assert (one.take_hops(), two.take_hops()) == ((Hop(url=site.url),), (Hop(url=other.url),))


async def folder_after(pool: BrowserPool, site: Site, *errors: Exception) -> Path:
    """The folder of a browser whose task ended with the first of `errors`, if there is one."""
    with contextlib.suppress(*map(type, errors)):
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
            for error in errors:
                raise error
    return browser.folder


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [(ParticipantError("late"), True), (SiteFault("silent"), False), (KeyError("internal"), False)],
    ids=repr,
)
async def test_a_browser_is_replaced_unless_only_the_participant_failed(
    site: Site, error: Exception, is_kept: bool
) -> None:
    async with browser_pool(browser_settings()) as pool:
        assert (await folder_after(pool, site, error) == await folder_after(pool, site)) is is_kept


async def test_a_browser_is_replaced_when_a_call_is_still_unanswered(site: Site) -> None:
    async with browser_pool(browser_settings()) as pool:
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await browser.act("browser_wait_for", {"time": 5})
        assert browser.folder != await folder_after(pool, site)


def kill(browser: PlaywrightBrowser) -> None:
    found = [each.pid for each in processes_of_browser(browser) if is_browser(each, browser.folder)]
    # The last is the program itself; a wrapper script may stand before it.
    program = psutil.Process(found[-1])
    program.kill()
    program.wait(10)


async def test_a_browser_that_dies_at_the_end_of_its_task_is_replaced(site: Site) -> None:
    async with browser_pool(browser_settings()) as pool:
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
            kill(browser)
        assert browser.folder != await folder_after(pool, site)


async def test_a_browser_that_dies_while_it_waits_for_a_task_is_replaced(site: Site) -> None:
    async with browser_pool(browser_settings()) as pool:
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
        await asyncio.gather(*pool._waiting)
        kill(browser)
        assert browser.folder != await folder_after(pool, site)


async def test_a_browser_is_replaced_after_so_many_tasks(site: Site, browser_files: Path) -> None:
    async with browser_pool(browser_settings(), tasks_per_browser=2) as pool:
        folders = [await folder_after(pool, site) for _ in range(3)]
        assert folders[0] == folders[1] != folders[2]
    assert left_behind(browser_files) == []
