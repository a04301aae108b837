"""Tabs and frames of one renderer have one clock, which is moved once for all of them."""

import re
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site, slowly
from helpers.browser.sessions import a_browser, found_browser, ref_of, with_flags

# Its timers make the judge let time pass on its clock.
OPENER = """<title>Opener</title><script>setInterval(() => {}, 50)</script>
    <button onclick="window.open('/opened')">Open</button>"""
OPENED = """<title>Opened</title><p role="status" id="said">asked</p><script>
    const [limit, began] = [new AbortController(), Date.now()];
    setTimeout(() => limit.abort(), 2500);
    fetch('/answer', {signal: limit.signal}).then(() => 'answered', () => 'gave up').then(text => {
        said.textContent = `${text} after ${Date.now() - began} ms` })
    </script>"""
FRAME = """<p role="status" id="said">before</p><script>
    onmessage = () => {
        const began = Date.now();
        setInterval(() => { said.textContent = `after ${Date.now() - began} ms` }, 100) }
    </script>"""


@pytest.mark.e2e
async def test_a_new_tab_does_not_give_up_while_its_server_answers_in_time() -> None:
    with hostile_site({"/": OPENER, "/opened": OPENED, "/answer": slowly(1.5)}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "Open"')})
            after = await browser.observe()
    assert after.title == "Opened"
    assert "answered after" in after.snapshot


@pytest.mark.e2e
async def test_as_much_time_passes_for_two_frames_of_one_process_as_for_their_page(tmp_path: Path) -> None:
    isolating = found_browser().model_copy(update={"path": with_flags(tmp_path, "--site-per-process")})
    with hostile_site({"/frame": FRAME}) as site:
        # The same server by another name is another site for a browser.
        frame = f'<iframe src="http://localhost:{site.server_port}/frame"></iframe>'
        told = "for (let at = 0; at < 2; at++) window.frames[at].postMessage('', '*')"
        site.pages["/"] = f"""<title>Outer</title>{frame}{frame}<button onclick="{told}">Act</button>"""
        async with a_browser(isolating) as browser:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "Act"')})
            after = await browser.observe()
    settled = after.settled
    assert settled is not None
    passed = [int(ms) / 1000 for ms in re.findall(r"after (\d+) ms", after.snapshot)]
    assert len(passed) == 2
    assert all(settled.page_s - 0.2 <= seconds <= settled.page_s + 2 for seconds in passed), settled


@pytest.mark.e2e
async def test_a_document_that_its_page_opens_behind_another_tab_is_there_when_its_tab_is_chosen() -> None:
    opens = "<title>Opener</title><button onclick=\"window.open('/opened'); location.href = '/landed'\">Open</button>"
    pages = {"/": opens, "/opened": "<title>Opened</title>", "/landed": slowly(0.3, "<title>Landed</title>there")}
    with hostile_site(pages) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "Open"')})
            await browser.observe()
            await browser.act("browser_tabs", {"action": "select", "index": 0})
            after = await browser.observe()
    assert after.title == "Landed"
    assert "there" in after.snapshot
