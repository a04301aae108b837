"""Which documents a real browser had, and where its pages lead."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from helpers.browser.hops import pages_of
from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.browser.sessions import a_browser, browser_settings, processes_of_browser
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import browser_pool
from judge.browser.processes import is_browser
from judge.browser.session import Hop
from judge.browser.settle import SettleMode
from judge.network.policy import NetworkPolicy
from shared.errors import BrowserFault

pytestmark = pytest.mark.e2e
LEAVES = """<title>Links</title><base href='http://base.example/'><a href='link?a=ü#part'>a</a>
    <a href='//two.example'>b</a><a href='http:\\\\three.example\\x'>c</a><a href='http://0x7f.1/'>d</a>
    <svg><a href='/svg'><text y=9>e</text></a></svg>
    <map><area href='/area'></map> <form action='/form'><input name=action>
    <button formaction='/button'>f</button></form>
    <iframe sandbox srcdoc="<a href='/srcdoc'>g</a>"></iframe><div id=host></div><a href='mailto:x@four.example'>h</a>
    <script>host.attachShadow({mode: 'open'}).innerHTML = "<a href='/shadow'>i</a>"</script>"""
HOME = """<title>Home</title><a href='/go' target=_blank>tab</a><a href='/none'>none</a><a href='/two'>two</a>
    <iframe src='/frame'></iframe><button onclick="document.querySelector('iframe').remove()">remove</button>
    <button onclick="history.pushState(0, 0, '/renamed')">rename</button>"""


@pytest.fixture
def site() -> Iterator[Site]:
    def home(handler: Handler) -> None:
        handler.redirect("/two")

    with hostile_site(
        {"/": HOME, "/two": "<title>Two</title>", "/frame": "<p>in", "/links": LEAVES, "/go": home}
    ) as one:
        one.pages["/none"] = lambda handler: handler.send(b"", 204)
        yield one


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser() as running:
        yield running


async def clicked(browser: PlaywrightBrowser, name: str) -> None:
    assert (await browser.act("browser_click", {"target": f':text-is("{name}")'})).ok
    await browser.observe()


async def hops_until(browser: PlaywrightBrowser, event: str) -> list[Hop]:
    """What happened until the event, which may come a moment after an action."""
    results: list[Hop] = []
    async with asyncio.timeout(20):
        while not any(hop.event == event for hop in results):
            results += browser.take_hops()
            await asyncio.sleep(0.02)
    return results


@pytest.mark.parametrize("settle", ["page-time", "real-time"])
async def test_addresses_of_other_origins_are_reported_once_as_the_browser_resolves_them(
    browser: PlaywrightBrowser, site: Site, settle: SettleMode
) -> None:
    await browser.open(f"{site.url}links", settle)
    page = await browser.observe()
    origin = site.url.rstrip("/")
    assert {each for each, _ in page.links} == {origin}
    assert sorted(link for _, link in page.links) == [
        "http://127.0.0.1/",
        *(
            f"http://base.example/{path}"
            for path in ("area", "button", "form", "link?a=%C3%BC", "shadow", "srcdoc", "svg")
        ),
        "http://three.example/x",
        "http://two.example/",
    ]
    assert (await browser.observe()).links == ()


async def test_links_are_not_read_any_more_once_the_participant_writes(browser: PlaywrightBrowser, site: Site) -> None:
    await browser.open(f"{site.url}two", "page-time")
    await browser.act("browser_press_key", {"key": "a"})
    await browser.act("browser_navigate", {"url": f"{site.url}links"})
    assert (await browser.observe()).links == ()


async def test_the_server_distinguishes_its_commands_from_what_pages_do(browser: PlaywrightBrowser, site: Site) -> None:
    await browser.open(site.url, "page-time")
    await clicked(browser, "two")
    await browser.act("browser_navigate_back", {})
    await browser.observe()
    requested = [hop for hop in browser.take_hops() if hop.event == "request" and not hop.in_frame]
    assert [(hop.url.removeprefix(site.url), hop.cause, hop.referrer) for hop in requested] == [
        ("", "goto", ""),
        ("two", "page", site.url.rstrip("/")),
        ("", "back", ""),
    ]


async def test_the_redirects_of_a_new_tab_lead_to_its_document(browser: PlaywrightBrowser, site: Site) -> None:
    await browser.open(site.url, "page-time")
    browser.take_hops()
    await clicked(browser, "tab")
    hops = browser.take_hops()
    assert pages_of(hops) == [(f"{site.url}go", False), (f"{site.url}two", True)]
    (document,) = (hop for hop in hops if hop.event == "document")
    assert document.url == f"{site.url}two"
    await browser.act("browser_tabs", {"action": "close"})
    closed = await hops_until(browser, "closed")
    assert closed[-1].tab == document.tab


async def test_a_removed_frame_and_an_answer_without_a_page_are_reported(
    browser: PlaywrightBrowser, site: Site
) -> None:
    await browser.open(site.url, "page-time")
    await browser.observe()
    (frame,) = (hop for hop in browser.take_hops() if hop.event == "document" and hop.in_frame)
    await clicked(browser, "remove")
    assert (await hops_until(browser, "gone"))[-1].frame == frame.frame
    await clicked(browser, "none")
    hops = await hops_until(browser, "ended")
    (request,) = (hop for hop in hops if hop.event == "request")
    (ended,) = (hop for hop in hops if hop.event == "ended")
    assert (ended.request, ended.url) == (request.request, f"{site.url}none")
    await clicked(browser, "rename")
    assert [hop.url for hop in await hops_until(browser, "renamed")] == [f"{site.url}renamed"]


@pytest.mark.parametrize(("cause", "is_killed"), [(signal.SIGKILL, True), (signal.SIGSEGV, False)])
async def test_what_happened_is_reported_up_to_the_death_of_the_browser_and_whether_it_was_killed(
    browser: PlaywrightBrowser, site: Site, cause: signal.Signals, is_killed: bool
) -> None:
    def dies(_: Handler) -> None:
        mains = [one for one in processes_of_browser(browser) if is_browser(one, browser.folder)]
        # A script that has started the browser lives on, until it sees that its child has ended.
        parents = {one.parent for one in mains}
        for one in mains:
            if one.pid not in parents:
                os.kill(one.pid, cause)

    site.pages["/two"] = dies
    await browser.open(site.url, "page-time")
    with pytest.raises(BrowserFault):
        await clicked(browser, "two")
    hops = [hop for hop in browser.take_hops() if hop.event == "lost" or hop.url.endswith("/two")]
    assert [hop.event for hop in hops] == ["request", "lost"]
    # Where the system does not say whether memory ran out, nobody knows.
    counts = Path("/proc/vmstat")
    is_counted = counts.exists() and "\noom_kill " in counts.read_text()
    assert hops[-1].is_killed == (is_killed and is_counted)


async def test_the_end_of_an_attempt_is_not_reported_in_the_next_one(site: Site) -> None:
    async with browser_pool(browser_settings()) as pool:
        for wait_s in (0.0, 1.5):
            async with pool.browser(NetworkPolicy.for_websites([site.url])) as browser:
                await browser.open(f"{site.url}two", "page-time")
                # Longer than the server waits for the status of a browser that may have ended.
                await asyncio.sleep(wait_s)
                assert [hop.event for hop in browser.take_hops()] == ["goto", "request", "document"]
