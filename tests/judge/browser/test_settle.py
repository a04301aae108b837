"""The judge looks at a page only when the effect of the last action can be seen."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread, Timer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.kept import browser_pool
from helpers.browser.sessions import a_browser, browser_settings
from judge.browser import settle
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import AWAKE_S, Report, SettleMode, read_report, settle_mode
from shared.models import Page, SettleTime, Vanished

REPORT: dict[str, Any] = {
    "real_ms": 250,
    "page_ms": 1000,
    "waited_for": ["timer"],
    "vanished": [{"text": "Saved", "at": 1.5, "stood_ms": 2000, "stood": None}],
    "downloads": ["a.pdf"],
    "document": {"type": "text/html", "has_body": True, "is_loading": False},
    "stopped": False,
    "silent": False,
    "lost_document": False,
    "restless": False,
    "lost": None,
    "closed_tabs": 0,
    "has_chooser": False,
}
BUTTON = "<title>A page</title><p id='out' role='status'>before</p><button onclick='act()'>Act</button>"
SCRIPTS = {
    # Each time for longer than the judge waits for the time that it granted.
    "held": """const hold = left => { for (let i = 0; i < 2; i++) {
        const request = new XMLHttpRequest(); request.open('GET', '/slow', false); request.send() }
        if (left) setTimeout(() => hold(left - 1), 10); else out.textContent = 'after' }
        function act() { setTimeout(() => hold(4), 50) }""",
    "timer": "function act() { setTimeout(() => out.textContent = 'after', 2000) }",
    "fetch": "function act() { fetch('/slow').then(r => r.text()).then(t => out.textContent = t) }",
    "pieces": "function act() { fetch('/in_pieces').then(r => r.text()).then(() => out.textContent = 'after') }",
    "polling": """async function act() {
        while (await (await fetch('/soon')).text() !== 'after') await new Promise(done => setTimeout(done, 100));
        out.textContent = 'after' }""",
    "crypto": """async function act() {
        const key = await crypto.subtle.importKey('raw', new Uint8Array(16), 'PBKDF2', false, ['deriveBits']);
        const how = {name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(16), iterations: 2_000_000};
        await crypto.subtle.deriveBits(how, key, 256); out.textContent = 'after' }""",
    "worker": """function act() {
        const source = new Blob(['onmessage = () => setTimeout(() => postMessage("after"), 500)']);
        const worker = new Worker(window.URL.createObjectURL(source));
        worker.onmessage = event => { out.textContent = event.data };
        worker.postMessage('go') }""",
    "busy": """function act() { out.setAttribute('aria-busy', 'true');
        let turns = 0; const turn = () => { if (++turns < 8) return requestAnimationFrame(() => setTimeout(turn, 100));
        out.removeAttribute('aria-busy'); out.textContent = 'after' }; turn() }""",
    "toast": """function act() { const toast = document.createElement('div'); toast.textContent = 'Saved as draft 7';
        document.body.append(toast); setTimeout(() => { toast.remove(); out.textContent = 'after' }, 2000) }""",
    "redrawn": """const block = name => `<p>${name} ${'and so on '.repeat(20)}</p>`;
        function act() { const main = document.createElement('main'); document.body.append(main);
        main.innerHTML = '<section>' + block('One') + block('Two') + '<p>Three is late</p></section>';
        setTimeout(() => { main.innerHTML = '<section>' + block('One') + block('Two') + '</section>';
        out.textContent = 'after' }, 2000) }""",
    "card": """function act() { const main = document.createElement('main'); document.body.append(main);
        main.innerHTML = '<h3>Desk</h3><p>Checking our <b>stock</b></p><p>59 euros</p>';
        setTimeout(() => { main.children[1].textContent = 'In stock'; out.textContent = 'after' }, 2000) }""",
    "named": """document.body.insertAdjacentHTML('beforeend', '<h2>Loading…</h2>');
        function act() { out.textContent = 'after' }""",
    "idle": """document.body.insertAdjacentHTML('beforeend',
        '<div role=progressbar aria-hidden=true style="height: 0"></div>' +
        '<p style="height: 0; overflow: hidden">Loading…</p>');
        function act() { out.textContent = 'after' }""",
    "image": """function act() { const image = new Image(); image.src = '/slow'; document.body.append(image);
        image.onload = image.onerror = () => { out.textContent = 'after' } }""",
    "shadowing": """document.body.insertAdjacentHTML('beforeend', '<img name=evaluate><img name=getAnimations>');
        function act() { setTimeout(() => { out.textContent = 'after' }, 1500) }""",
    "carousel": """let turns = 0; setInterval(() => { document.title = `Slide ${++turns}` }, 2500);
        function act() { out.textContent = 'after' }""",
    "loop": "function act() { setTimeout(() => { const end = Date.now() + 500; while (Date.now() < end); }, 0) }",
    "dialog": "function act() { setTimeout(() => alert('Sure?'), 300) }",
    "vue2": """document.addEventListener('click', event => {
        if (event.timeStamp >= performance.now() - 60000) out.textContent = 'after' }); function act() {}""",
    "computing": "setInterval(() => { for (let at = 0; at < 1e9; at++); }, 1)",
    "clock": """var ticks = 0; setInterval(() => { ticks += 1 }, 100);
        function act() { out.textContent = `${ticks} ticks` }""",
    "frame": """function act() { const frame = document.createElement('iframe');
        frame.srcdoc = "before<script>setTimeout(() => document.body.textContent = 'after', 1500)<\\/script>";
        document.body.append(frame) }""",
}
LEAVES = "<title>A page</title><p>before</p><script>{}</script>"
# Scripts that navigate before their page is complete, to an answer that opens no page.
LEADING_NOWHERE = {
    "redirected to no content": LEAVES.format("location.replace('/302')"),
    "no content": LEAVES.format("location.href = '/204'"),
    "an answered form": f"<form method=post action=/204></form>{LEAVES.format('document.forms[0].submit()')}",
    "stopped": LEAVES.format("location.href = '/204'; stop()"),
    "a download": LEAVES.format("location.href = '/file.csv'"),
    "on a click": BUTTON
    + "<script>function act() { setTimeout(() => { location.href = '/no_content' }, 300) }</script>",
    "in a frame": "<title>A page</title><p>before</p><iframe src='/no_content'></iframe>",
    "in a tab": "<title>A page</title><p>not here</p><script>open('/no_content')</script>",
}
LEADING_NOWHERE_IN: dict[SettleMode, tuple[str, ...]] = {
    "page-time": tuple(LEADING_NOWHERE),
    "real-time": ("redirected to no content", "on a click"),
}
STREAM = """const stream = new EventSource('/stream'); let clicks = 0;
    stream.onmessage = event => { out.textContent = event.data };
    function act() { fetch(clicks++ ? '/publish' : '/nothing') }"""
IN_PAGE_TIME = [
    name for name in SCRIPTS if name not in ("loop", "dialog", "clock", "computing", "held", "named", "idle")
]


class Site(BaseHTTPRequestHandler):
    asked_at = 0.0

    def do_GET(self) -> None:
        name = self.path.strip("/").replace("_", " ")
        if name == "slow":
            time.sleep(0.7)
        if name == "soon":
            Site.asked_at = Site.asked_at or time.monotonic()
        is_ready = name == "slow" or time.monotonic() - Site.asked_at > 0.7
        body = f"{BUTTON}<script>{SCRIPTS[name]}</script>" if name in SCRIPTS else "after" if is_ready else "not yet"
        body = LEADING_NOWHERE.get(name, body)
        self.send_response(int(name) if name in ("204", "302") else 200)
        self.send_header("Location", "/204")
        self.send_header("Content-Type", "text/csv" if name == "file.csv" else "text/html")
        self.end_headers()
        for _ in range(10 if name == "in pieces" else 0):
            self.wfile.write(b"a piece")
            time.sleep(0.1)
        if name not in ("204", "302"):
            self.wfile.write(body.encode())

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


class StreamingSite(Site):
    published = Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if self.path == "/stream" else "text/html")
        self.end_headers()
        if self.path == "/stream":
            self.wfile.flush()
            StreamingSite.published.wait(30)
            self.wfile.write(b"data: after\n\n")
        elif self.path == "/publish":
            Timer(0.5, StreamingSite.published.set).start()
        elif self.path == "/":
            self.wfile.write(f"{BUTTON}<script>{STREAM}</script>".encode())


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served(Site) as address:
        yield address


@contextmanager
def served(handler: type[Site]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def after_the_click(browser: PlaywrightBrowser, address: str, mode: SettleMode = "page-time") -> Page:
    Site.asked_at = 0.0
    await browser.open(address, mode)
    if address.endswith(("/carousel", "/toast", "/redrawn", "/card", "/loop")):
        # Only of a page that has been observed is known what was there before, and how long its scripts may take.
        await browser.observe()
    await browser.act("browser_click", {"target": "button"})
    return await browser.observe()


async def ticks_of(browser: PlaywrightBrowser, page: Page) -> int:
    """How often the page's timer has fired, without looking at the page, which would move its clock."""
    return await number_in(browser, page, "window.ticks")


async def clock_of(browser: PlaywrightBrowser, page: Page) -> int:
    """The page's clock, in milliseconds."""
    return await number_in(browser, page, "Date.now()")


async def rate_of_clock(browser: PlaywrightBrowser, page: Page) -> float:
    """How fast the page's clock goes: 1 is real time."""
    began, before = time.monotonic(), await clock_of(browser, page)
    await asyncio.sleep(1.0)
    passed_ms = await clock_of(browser, page) - before
    return passed_ms / 1000 / (time.monotonic() - began)


async def number_in(browser: PlaywrightBrowser, page: Page, expression: str) -> int:
    (value,) = await browser.probe(page, [expression])
    assert isinstance(value.value, int)
    return value.value


@pytest.mark.e2e
async def test_in_page_time_every_effect_of_an_action_is_seen(
    subtests: pytest.Subtests, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_browser() as browser:
        seen = {name: await after_the_click(browser, f"{site}/{name}") for name in IN_PAGE_TIME}
        assert [name for name, page in seen.items() if "after" not in page.snapshot] == []
        assert seen["toast"].vanished == ("Saved as draft 7",)
        # What is drawn again as it was has not vanished.
        assert seen["redrawn"].vanished == ("Three is late",)
        assert seen["card"].vanished == ("Checking our stock",)
        assert "timer" in seen["timer"].settled.waited_for
        # A timer that was there before the action is not an effect of it.
        assert "timer" not in seen["carousel"].settled.waited_for
        with subtests.test("while a participant thinks for long the page goes on"):
            await browser.open(f"{site}/clock")
            page = await browser.observe()
            # At the end the clock has been moving in larger steps for a second.
            before, thinking_s = await ticks_of(browser, page), AWAKE_S + 1.0
            await asyncio.sleep(thinking_s)
            after = await ticks_of(browser, page)
            assert after - before >= 8 * thinking_s
            await browser.act("browser_click", {"target": "button"})
            text = re.search(r"(\d+) ticks", (await browser.observe()).snapshot)
            assert text is not None
            assert int(text[1]) >= after
        with subtests.test("after a script that held the page up, its clock goes as fast as before"):
            page = await after_the_click(browser, f"{site}/held")
            # A machine that is busy with other tests may hold it up for some of these seconds.
            rates = [await rate_of_clock(browser, page)]
            while rates[-1] < 0.8 and len(rates) < 8:
                rates.append(await rate_of_clock(browser, page))
            assert rates[-1] > 0.8, rates
        with subtests.test("the clock goes on in a tab that left a page in the middle of a script"):
            # Each of these ends a command of the judge that waits for the script, in about half of all cases.
            for _ in range(4):
                await browser.open(f"{site}/computing")
                await asyncio.sleep(1.3)
                await browser.open(f"{site}/clock")
                before = await clock_of(browser, page)
                async with asyncio.timeout(10):
                    while await clock_of(browser, page) == before:
                        await asyncio.sleep(0.1)
        with subtests.test("a dialog that opens meanwhile is observed"):
            assert (await after_the_click(browser, f"{site}/dialog")).dialog == "alert: Sure?"
            await browser.act("browser_handle_dialog", {"accept": True})
    # A script that does not end is noticed after so much of its own time.
    monkeypatch.setattr(settle, "MAX_CPU_S", 1.0)
    async with a_browser() as browser:
        with subtests.test("a loop that waits for the clock is stopped"):
            page = await after_the_click(browser, f"{site}/loop")
            assert page.notice is not None
            assert page.notice.code == "script_stopped"
            assert "before" in page.snapshot


@pytest.mark.e2e
async def test_what_an_event_stream_brings_is_seen_after_one_request_without_an_effect() -> None:
    with served(StreamingSite) as address:
        async with a_browser() as browser:
            await browser.open(f"{address}/", "page-time")
            await browser.observe()
            for expected in ("before", "after"):
                await browser.act("browser_click", {"target": "button"})
                assert expected in (await browser.observe()).snapshot


@pytest.mark.e2e
async def test_in_real_time_what_the_network_brings_is_seen(site: str) -> None:
    async with a_browser() as browser:
        for name in ("fetch", "polling", "busy"):
            assert "after" in (await after_the_click(browser, f"{site}/{name}", "real-time")).snapshot, name


@pytest.mark.e2e
async def test_what_only_looks_like_loading_is_waited_for_once_and_what_nobody_sees_never(site: str) -> None:
    async with a_browser() as browser:
        for name, waits in (("named", ["busy"]), ("idle", [])):
            await browser.open(f"{site}/{name}", "real-time")
            first = await browser.observe()
            await browser.act("browser_click", {"target": "button"})
            page = await browser.observe()
            assert "after" in page.snapshot
            assert [reason for reason in first.settled.waited_for if reason == "busy"] == waits
            assert "busy" not in page.settled.waited_for


@pytest.mark.e2e
async def test_a_script_that_leaves_its_page_for_none_leaves_the_page_as_it_is(
    subtests: pytest.Subtests, site: str
) -> None:
    # Less than the browser's server would wait for the load event of such a document.
    settings = browser_settings(call_timeout_s=9)
    async with browser_pool(settings, is_guarded=False) as pool:
        for mode, names in LEADING_NOWHERE_IN.items():
            async with pool.browser(None) as browser:
                for name in names:
                    with subtests.test(name, mode=mode):
                        await browser.open(f"{site}/{name.replace(' ', '_')}", mode)
                        if name == "on a click":
                            await browser.act("browser_click", {"target": "button"})
                        page = await browser.observe()
                        assert "before" in page.snapshot
                        assert page.downloads == (("file.csv",) if name == "a download" else ())
                with subtests.test("by an action", mode=mode):
                    url = f"{site}/no_content"
                    await browser.act("browser_navigate", {"url": f"{site}/carousel"})
                    assert (await browser.act("browser_navigate", {"url": url})).ok
                    assert (await browser.observe()).url == url
                    assert (await browser.act("browser_tabs", {"action": "new", "url": url})).ok


@pytest.mark.parametrize(
    ("website", "mode"),
    [
        ("http://127.0.0.1:9180/", "page-time"),
        ("http://localhost:9180/", "page-time"),
        ("http://192.168.1.7/shop", "page-time"),
        ("http://[::1]:80/", "page-time"),
        ("https://93.184.215.14/", "real-time"),
        ("https://no-such-name.invalid/", "real-time"),
        ("about:blank", "real-time"),
    ],
)
async def test_automatically_only_private_websites_are_observed_in_page_time(website: str, mode: SettleMode) -> None:
    assert await settle_mode("auto", website) == mode


async def test_a_mode_that_is_set_holds_for_every_website() -> None:
    assert await settle_mode("real-time", "http://127.0.0.1:9180/") == "real-time"


def test_a_report_is_read_in_seconds() -> None:
    report = read_report(json.dumps(REPORT))
    assert report.settled == SettleTime(real_s=0.25, page_s=1.0, waited_for=("timer",))
    assert report.vanished == (Vanished(text="Saved", at_ms=2, stood_s=2.0),)
    assert report.downloads == ("a.pdf",)


def test_vanished_texts_and_names_of_downloads_are_bounded() -> None:
    vanished = [{**REPORT["vanished"][0], "text": "x" * 10_000}] * 1000
    report = read_report(json.dumps(REPORT | {"vanished": vanished, "downloads": ["x" * 10_000] * 1000}))
    for texts, limit in (([each.text for each in report.vanished], 300), (list(report.downloads), 200)):
        assert len(texts) == 20
        assert max(map(len, texts)) <= limit


@given(st.text() | st.recursive(st.none() | st.text(), st.lists, max_leaves=8).map(json.dumps))
def test_any_other_answer_reports_nothing(text: str) -> None:
    assert read_report(text) == Report()
