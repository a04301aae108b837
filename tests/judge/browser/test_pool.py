"""Browsers that are used for one task after the other: nothing of a task reaches the next one."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

from helpers.browser.hops import pages_of
from helpers.browser.hostile_site import Handler, Page, Site, hostile_site
from helpers.browser.sessions import browser_settings, left_behind, processes_of_browser, ref_of
from judge.browser import pool as pool_module
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool, browser_pool
from judge.browser.processes import is_browser
from judge.browser.settle import settle_code
from judge.network.policy import NetworkPolicy
from shared.errors import ParticipantError, SiteFault
from shared.snapshot import Snapshot, parse_snapshot

pytestmark = pytest.mark.e2e

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
LEAVE = "; ".join(leave for leave, _ in LEAVES.values())
FINDS = "; ".join(f"if ({find}) found.push('{kind}')" for kind, (_, find) in LEAVES.items())
ASYNC_PAGE = """<p role="status" id="said">wait</p><script type="module">
    try { said.textContent = String(await (async () => { %s })()) } catch (error) { said.textContent = error }
    </script>"""
# It hangs when it is let go. After the answer to its second request, which tells that it hangs, it does nothing else.
HANGS = """<script>fetch("/go").then(() => {
    const request = new XMLHttpRequest(); request.open("GET", "/hangs", false); request.send(); for (;;);
    })</script>"""
COPIES = """<title>Copies</title><script>const say = text => { said.textContent = text };
    const copy = () => navigator.clipboard.writeText('a secret').then(() => say('copied'), say);
    const read = () => navigator.clipboard.readText().then(say, error => say(error.name));
    </script>
    <p id=said role=status></p><button onclick="copy()">Copy</button><button onclick="read()">Read</button>
    <input aria-label=Field>"""
GRANT = "async page => await page.context().grantPermissions(['geolocation'])"


def cached(handler: Handler) -> None:
    handler.send(b"document.title = 'cached'", Cache_Control="max-age=3600", Content_Type="text/javascript")


def private(handler: Handler) -> None:
    if "Authorization" in handler.headers:
        handler.send(b"<title>Inside</title>")
    else:
        handler.send(b"<title>Outside</title>", 401, WWW_Authenticate='Basic realm="x"')


@pytest.fixture
def site() -> Iterator[Site]:
    pages: dict[str, Page] = {
        "/leave": ASYNC_PAGE % LEAVE,
        "/find": ASYNC_PAGE % f"const found = []; {FINDS}; return found.join(', ') || 'nothing'",
        "/worker.js": lambda handler: handler.send(b"", Content_Type="text/javascript"),
        "/cached.js": cached,
        "/with-script": "<script src=/cached.js></script>",
        "/private": private,
        "/files": "<a href=/file download>save</a>",
        "/loop": HANGS,
        "/asking": "<script>fetch('/endless')</script><button onclick='alert(1)'>ask</button>",
        "/geolocation": ASYNC_PAGE % "return (await navigator.permissions.query({name: 'geolocation'})).state",
    }
    with hostile_site(pages) as running:
        yield running


def policy(*sites: Site) -> NetworkPolicy:
    return NetworkPolicy.for_websites(site.url for site in sites)


def pid(browser: PlaywrightBrowser) -> int:
    return next(each.pid for each in processes_of_browser(browser) if is_browser(each, browser.folder))


def files_of(browser: PlaywrightBrowser) -> set[str]:
    return {path.name for path in browser.folder.iterdir() if path.is_file()}


async def text_at(browser: PlaywrightBrowser, url: str) -> str:
    """What the page at `url` says once its script is done."""
    await browser.open(url)
    await browser.act("browser_wait_for", {"textGone": "wait"})
    return (await browser.observe()).snapshot.rpartition(": ")[2].strip('"')


async def leave_everything(browser: PlaywrightBrowser, site: Site) -> None:
    """Whatever pages, their site and a log-in can leave behind."""
    for _ in range(2):
        await browser.open(f"{site.url}with-script", "page-time")
    assert site.paths.count("/cached.js") == 1
    await text_at(browser, f"{site.url}leave")
    assert await text_at(browser, f"{site.url}find") == ", ".join(LEAVES)
    await browser.open(f"{site.url.replace('://', '://ada:secret@')}private")
    await browser.open(f"{site.url}private")
    assert (await browser.observe()).title == "Inside"
    await browser._server.call("browser_run_code_unsafe", {"code": GRANT})
    assert await text_at(browser, f"{site.url}geolocation") == "granted"


async def leave_unread(browser: PlaywrightBrowser, site: Site, foreign: Site, end: threading.Event) -> None:
    """A download, a refusal and a dialog that nobody has been told of, and a connection until `end`."""
    is_requested = threading.Event()

    def endless(handler: Handler) -> None:
        is_requested.set()
        handler.rfile.read(1)  # until the browser hangs up
        end.set()

    site.pages["/endless"] = endless
    await browser.open(f"{site.url}files")
    await browser._server.call("browser_click", {"target": "a"})
    settled = await browser._server.call("browser_run_code_unsafe", {"code": settle_code(5, 5)})
    assert '"downloads":["file.html"]' in settled.text, "it is this task's, and this test does not take it"
    await browser.open(foreign.url)
    await browser.open(f"{site.url}asking")
    assert await asyncio.to_thread(is_requested.wait, 60)
    await browser._server.call("browser_click", {"target": "button"})


async def test_nothing_of_a_task_reaches_the_next_one(subtests: pytest.Subtests, site: Site) -> None:
    is_over = threading.Event()
    with hostile_site() as former, hostile_site() as other:
        async with browser_pool(browser_settings()) as pool:
            async with pool.browser(policy(site, former)) as browser:
                first, files = pid(browser), files_of(browser)
                await leave_everything(browser, site)
                await leave_unread(browser, site, other, is_over)
                assert files_of(browser) > files
            with subtests.test("connections"):
                assert await asyncio.to_thread(is_over.wait, 60)
            async with pool.browser(policy(site, other)) as browser:
                traffic = browser.traffic()
                assert traffic is not None
                assert (pid(browser), browser.take_hops(), traffic.entries, files_of(browser)) == (first, (), (), files)
                await browser.open(other.url, "page-time")
                page = await browser.observe()
                assert (page.title, page.refused, page.downloads, page.dialog) == ("Home", (), (), None)
                assert pages_of(browser.take_hops()) == [(other.url, False)]
                with subtests.test("what the network policy allowed"):
                    await browser.open(former.url)
                    assert (await browser.observe()).refused != ()
                    assert former.paths == []
                with subtests.test("storage"):
                    assert await text_at(browser, f"{site.url}find") == "nothing"
                with subtests.test("permissions"):
                    assert await text_at(browser, f"{site.url}geolocation") == "denied"
                with subtests.test("a log-in to a server"):
                    await browser.open(f"{site.url}private")
                    assert (await browser.observe()).title == "Outside"
                with subtests.test("the HTTP cache"):
                    await browser.open(f"{site.url}with-script")
                    assert site.paths.count("/cached.js") == 2
            with subtests.test("tasks at the same time have browsers of their own"):
                async with pool.browser(policy(site)) as one, pool.browser(policy(other)) as two:
                    assert one.folder != two.folder
                    await asyncio.gather(one.open(site.url), two.open(other.url))
                    went = [pages_of(each.take_hops()) for each in (one, two)]
                    assert went == [[(site.url, False)], [(other.url, False)]]


async def folder_after(pool: BrowserPool, site: Site, error: Exception | None = None) -> Path:
    """The folder of a browser whose task ended with `error`, if there is one."""
    with pytest.raises(type(error)) if error else nullcontext() as caught:
        async with pool.browser(policy(site)) as browser:
            if error:
                raise error
    assert caught is None or caught.value is error
    return browser.folder


def kill(browser: PlaywrightBrowser) -> None:
    results = [each.pid for each in processes_of_browser(browser) if is_browser(each, browser.folder)]
    # The last is the program itself; a wrapper script may stand before it.
    program = psutil.Process(results[-1])
    program.kill()
    program.wait(60)


async def test_a_browser_is_replaced_after_so_many_tasks_and_unless_only_the_participant_failed(
    site: Site, browser_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, hanging = threading.Event(), threading.Event()

    def go(handler: Handler) -> None:
        let_go.wait(60)
        handler.send(b"")

    def hangs(handler: Handler) -> None:
        handler.send(b"")
        hanging.set()

    site.pages |= {"/go": go, "/hangs": hangs}
    folders: dict[str, Path] = {}
    async with browser_pool(browser_settings(), tasks_per_browser=2) as pool:
        folders["the participant failed"] = await folder_after(pool, site, ParticipantError("late"))
        folders["the second task of its browser"] = await folder_after(pool, site)
        folders["the site failed"] = await folder_after(pool, site, SiteFault("silent"))
        folders["internal error"] = await folder_after(pool, site, KeyError("internal"))
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await browser.act("browser_wait_for", {"time": 5})
        folders["a call is still unanswered"] = browser.folder
        async with pool.browser(policy(site)) as browser:
            kill(browser)
        folders["died at the end of its task"] = browser.folder
        async with pool.browser(policy(site)) as browser:
            pass
        await asyncio.gather(*pool._waiting)
        kill(browser)
        folders["died while it waited for a task"] = browser.folder
        monkeypatch.setattr(pool_module, "_RENEW_LIMIT_S", 0.5)
        async with pool.browser(policy(site)) as browser:
            await browser.open(f"{site.url}loop")
            let_go.set()
            assert await asyncio.to_thread(hanging.wait, 60)
        folders["a page hangs at the end of its task"] = browser.folder
        async with pool.browser(policy(site)) as browser:
            await browser.open(site.url)
            assert (await browser.observe()).title == "Home"
        folders["the last task"] = browser.folder
    remaining = [why for (why, one), (_, following) in itertools.pairwise(folders.items()) if one == following]
    assert remaining == ["the participant failed"]
    assert left_behind(browser_files) == []


async def test_a_broken_browser_is_not_replaced_before_a_task_needs_one(site: Site, browser_files: Path) -> None:
    async with browser_pool(browser_settings()) as pool:
        await folder_after(pool, site, SiteFault("silent"))
        await asyncio.gather(*pool._waiting)
        assert left_behind(browser_files) == []


async def done(browser: PlaywrightBrowser, *names: str) -> Snapshot:
    """The page after elements were clicked, and in a field what was copied was pasted."""
    for name in names:
        snapshot = (await browser.observe()).snapshot
        await browser.act("browser_click", {"target": ref_of(snapshot, f'"{name}"')})
        if name == "Field":
            await browser.act("browser_press_key", {"key": "Control+v"})
    return parse_snapshot((await browser.observe()).snapshot)


async def test_what_a_page_copies_can_be_pasted_in_the_same_attempt_only() -> None:
    def pasted(page: Snapshot) -> list[str]:
        return [page.value_of(field) for field in page.find("textbox")]

    def said_on(page: Snapshot) -> list[str]:
        return [page.text_of(node) for node in page.find("status")]

    with hostile_site({"/": COPIES}) as site:
        async with browser_pool(browser_settings(), is_guarded=False) as pool, pool.browser(None) as one:
            await one.open(site.url, "page-time")
            assert said_on(await done(one, "Copy")) == ["copied"]
            async with pool.browser(None) as other:
                await other.open(site.url, "page-time")
                assert pasted(await done(other, "Field")) == [""]
            page = await done(one, "Read", "Field")
            assert (said_on(page), pasted(page)) == (["NotAllowedError"], ["a secret"])
        used = set()
        async with browser_pool(browser_settings(), is_guarded=False) as pool:
            for names, text in ((("Copy", "Field"), "a secret"), (("Field",), "")):
                async with pool.browser(None) as browser:
                    await browser.open(site.url, "page-time")
                    assert pasted(await done(browser, *names)) == [text]
                    used.add(
                        tuple(each.pid for each in processes_of_browser(browser) if is_browser(each, browser.folder))
                    )
            # Both attempts had the same browser.
            assert len(used) == 1
