"""The judge looks at a page only when the effect of the last action can be seen."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.sessions import a_browser, ref_of
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import AWAKE_S, ClockStalled, SettleMode, read_report, settle_mode
from shared.models import Page, Settled

REPORT = {"real_ms": 250, "page_ms": 1000, "waited_for": ["timer"], "vanished": ["Saved"], "hung": False}
BUTTON = "<title>A page</title><p id='out' role='status'>before</p><button onclick='act()'>Act</button>"
SCRIPTS = {
    "timer": "function act() { setTimeout(() => out.textContent = 'after', 2000) }",
    "fetch": "function act() { fetch('/slow').then(r => r.text()).then(t => out.textContent = t) }",
    "polling": """async function act() {
        while (await (await fetch('/soon')).text() !== 'after') await new Promise(done => setTimeout(done, 100));
        out.textContent = 'after' }""",
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
    "clock": """let ticks = 0; setInterval(() => { ticks += 1 }, 100);
        function act() { out.textContent = `${ticks} ticks` }""",
    "frame": """function act() { const frame = document.createElement('iframe');
        frame.srcdoc = "before<script>setTimeout(() => document.body.textContent = 'after', 1500)<\\/script>";
        document.body.append(frame) }""",
}
IN_PAGE_TIME = [name for name in SCRIPTS if name not in ("loop", "dialog", "clock")]


class Site(BaseHTTPRequestHandler):
    asked_at = 0.0

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if name == "slow":
            time.sleep(0.7)
        if name == "soon":
            Site.asked_at = Site.asked_at or time.monotonic()
        is_ready = name == "slow" or time.monotonic() - Site.asked_at > 0.7
        body = f"{BUTTON}<script>{SCRIPTS[name]}</script>" if name in SCRIPTS else "after" if is_ready else "not yet"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser() as opened:
        yield opened


async def after_the_click(browser: PlaywrightBrowser, address: str, settle: SettleMode) -> Page:
    Site.asked_at = 0.0
    await browser.open(address, settle)
    target = ref_of((await browser.observe()).snapshot, 'button "Act"')
    await browser.act("browser_click", {"target": target})
    return await browser.observe()


@pytest.mark.e2e
async def test_in_page_time_every_effect_of_an_action_is_seen(browser: PlaywrightBrowser, site: str) -> None:
    seen = {name: await after_the_click(browser, f"{site}/{name}", "page-time") for name in IN_PAGE_TIME}
    assert [name for name, page in seen.items() if "after" not in page.snapshot] == []
    assert seen["toast"].vanished == ("Saved as draft 7",)
    # What is drawn again as it was has not vanished.
    assert seen["redrawn"].vanished == ("Three is late",)
    assert "timer" in seen["timer"].settled.waited_for
    # A timer that was there before the action is no effect of it.
    assert seen["carousel"].settled.page_s < seen["timer"].settled.page_s


@pytest.mark.e2e
async def test_while_a_participant_thinks_for_long_the_page_goes_on(browser: PlaywrightBrowser, site: str) -> None:
    await browser.open(f"{site}/clock", "page-time")
    target = ref_of((await browser.observe()).snapshot, 'button "Act"')
    ticks = []
    # The second action comes when the clock has long been moving in larger steps.
    for thinking_s in (0.0, AWAKE_S + 1.5):
        await asyncio.sleep(thinking_s)
        await browser.act("browser_click", {"target": target})
        said = re.search(r"(\d+) ticks", (await browser.observe()).snapshot)
        assert said is not None
        ticks.append(int(said[1]))
    assert ticks[1] - ticks[0] >= 10 * thinking_s


@pytest.mark.e2e
async def test_in_real_time_what_the_network_brings_is_seen(browser: PlaywrightBrowser, site: str) -> None:
    for name in ("fetch", "polling", "busy", "image"):
        assert "after" in (await after_the_click(browser, f"{site}/{name}", "real-time")).snapshot, name


@pytest.mark.e2e
async def test_the_pages_clock_runs_while_the_participant_thinks(browser: PlaywrightBrowser, site: str) -> None:
    await after_the_click(browser, f"{site}/carousel", "page-time")
    before = (await browser.observe()).title
    await asyncio.sleep(3)
    assert (await browser.observe()).title != before


@pytest.mark.e2e
async def test_a_loop_that_waits_for_the_clock_ends_the_attempt(browser: PlaywrightBrowser, site: str) -> None:
    with pytest.raises(ClockStalled):
        await after_the_click(browser, f"{site}/loop", "page-time")


@pytest.mark.e2e
async def test_a_dialog_that_opens_meanwhile_is_observed(browser: PlaywrightBrowser, site: str) -> None:
    assert (await after_the_click(browser, f"{site}/dialog", "page-time")).dialog == "alert: Sure?"


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
    settled, vanished = read_report(f"### Result\n{json.dumps(REPORT)}\n### Page\n- Page URL: http://x/")
    assert settled == Settled(real_s=0.25, page_s=1.0, waited_for=("timer",))
    assert vanished == ("Saved",)


def test_vanished_texts_are_bounded() -> None:
    _, vanished = read_report("### Result\n" + json.dumps(REPORT | {"vanished": ["x" * 10_000] * 1000}))
    assert len(vanished) == 20
    assert max(map(len, vanished)) <= 300


def test_a_report_of_a_stalled_clock_is_a_fault_of_the_site() -> None:
    with pytest.raises(ClockStalled):
        read_report("### Result\n" + json.dumps(REPORT | {"hung": True}))


@given(
    st.text() | st.text().map("### Result\n".__add__) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps)
)
def test_any_other_answer_reports_nothing(text: str) -> None:
    assert read_report(text) == (Settled(), ())
