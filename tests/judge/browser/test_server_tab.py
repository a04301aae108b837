"""What the judge changes about the server's own actions, seen by pages that notice."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from helpers.browser.hostile_site import Handler, hostile_site
from helpers.browser.sessions import a_browser, ref_of
from judge.browser.playwright import PlaywrightBrowser
from shared.models import Notice
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e

DOUBLE = """<title>Double</title><button onclick="times.push(Date.now())" ondblclick="said.textContent =
    times[1] > times[0] ? 'took time' : 'took no time'">Node</button><p id=said></p><script>const times = []</script>"""
COVERED = """<title>Covered</title><style>input { position: absolute; opacity: 0; width: 16px; height: 16px }
    i { position: relative; z-index: 1; display: inline-block; width: 16px; height: 16px; background: #ccc }</style>
    <label><input type=checkbox aria-label=Agree><i></i> I agree to <a href=/terms>the terms</a></label>"""
SLIDER = """<title>Slider</title><input type=range min=0 max=10 step=1 value=3 aria-label=Amount
    onkeyup="said.textContent = `committed ${value}`"><p id=said></p>"""
HIDDEN_SLIDER = (
    SLIDER
    + """<style>input { position: absolute; opacity: 0 }
    i { position: absolute; left: 0; top: 0; width: 300px; height: 40px; background: #ccc }</style><i></i>"""
)
ASKING = """<title>Asking</title><script>const ask = () => prompt('New name', 'report.pdf') ?? 'nothing'</script>
    <button onclick="said.textContent = ask()">Rename</button><p id=said role=status></p>
    <input type=file aria-label=Upload oncancel="said.textContent = 'cancelled'">"""
BROKEN = "<title>Broken</title><a href=/broken>Off</a>"


def shorter_than_told(handler: Handler) -> None:
    """A document that breaks off."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "90000")
    handler.end_headers()
    handler.wfile.write(b"<title>Broken</title><h1>Broken</h1>")
    handler.close_connection = True


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser() as browser:
        yield browser


async def test_a_double_click_takes_time_on_the_clock_of_the_page(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": DOUBLE}) as site:
        await browser.open(site.url, "page-time")
        page = await browser.observe()
        await browser.act("browser_click", {"target": ref_of(page.snapshot, '"Node"'), "doubleClick": True})
        assert "took time" in (await browser.observe()).snapshot
        await browser.act("browser_navigate", {"url": site.url})
        await browser.act("browser_mouse_click_xy", {"x": 30, "y": 20, "clickCount": 2})
        assert "took time" in (await browser.observe()).snapshot


async def test_a_checkbox_under_its_own_label_is_clicked_where_it_is(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": COVERED}) as site:
        await browser.open(site.url, "page-time")
        box = ref_of((await browser.observe()).snapshot, '"Agree"')
        assert (await browser.act("browser_click", {"target": box})).ok
        page = await browser.observe()
        assert (page.url, "[checked]" in page.snapshot) == (site.url, True)
        field = {"target": box, "name": "Agree", "type": "checkbox", "value": "false"}
        assert (await browser.act("browser_fill_form", {"fields": [field]})).ok
        assert "[checked]" not in (await browser.observe()).snapshot


async def test_a_slider_is_set_with_the_keys_that_commit_its_value(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": SLIDER}) as site:
        await browser.open(site.url, "page-time")
        slider = ref_of((await browser.observe()).snapshot, "slider")
        for value in ("0", "7", "10"):
            field = {"target": slider, "name": "Amount", "type": "slider", "value": value}
            assert (await browser.act("browser_fill_form", {"fields": [field]})).ok
            assert f"committed {value}" in (await browser.observe()).snapshot


async def test_a_slider_that_is_hidden_under_its_track_gets_the_focus(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": HIDDEN_SLIDER}) as site:
        await browser.open(site.url, "page-time")
        slider = ref_of((await browser.observe()).snapshot, "slider")
        assert (await browser.act("browser_click", {"target": slider})).ok
        await browser.act("browser_press_key", {"key": "ArrowLeft"})
        assert "committed 2" in (await browser.observe()).snapshot


async def test_a_prompt_keeps_its_default_unless_another_text_is_given(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": ASKING}) as site:
        await browser.open(site.url, "page-time")
        for answer, named in (
            ({"accept": True}, "report.pdf"),
            ({"accept": True, "promptText": ""}, ""),
            ({"accept": True, "promptText": "b.txt"}, "b.txt"),
            ({"accept": False}, "nothing"),
        ):
            page = await browser.observe()
            await browser.act("browser_click", {"target": ref_of(page.snapshot, '"Rename"')})
            assert (await browser.observe()).dialog == 'prompt: New name (default: "report.pdf")'
            await browser.act("browser_handle_dialog", answer)
            after = parse_snapshot((await browser.observe()).snapshot)
            assert [after.text_of(node) for node in after.find("status")] == [named]


async def test_a_file_chooser_that_is_cancelled_is_noticed(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": ASKING}) as site:
        await browser.open(site.url, "page-time")
        upload = ref_of((await browser.observe()).snapshot, '"Upload"')
        await browser.act("browser_click", {"target": upload})
        page = await browser.observe()
        assert page.notice == Notice(code="file_chooser_cancelled")
        assert "cancelled" in page.snapshot
        assert (await browser.observe()).notice is None


async def test_a_click_is_carried_out_although_the_document_that_it_opens_is_late(browser: PlaywrightBrowser) -> None:
    def late(handler: Handler) -> None:
        time.sleep(4)
        handler.send(b"<title>Late</title><h1>Late</h1>")

    with hostile_site({"/": "<title>First</title><a href=/late>Go</a>", "/late": late}) as site:
        await browser.open(site.url, "real-time")
        link = ref_of((await browser.observe()).snapshot, '"Go"')
        assert (await browser.act("browser_click", {"target": link})).ok
        assert (await browser.observe()).title == "Late"


async def test_an_action_is_answered_before_the_document_that_it_opens_is_complete(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": BROKEN, "/broken": shorter_than_told}) as site:
        await browser.open(site.url, "page-time")
        link = ref_of((await browser.observe()).snapshot, '"Off"')
        # The server's own wait for the document's load event takes 10 s.
        async with asyncio.timeout(8):
            assert (await browser.act("browser_click", {"target": link})).ok
        assert (await browser.observe()).url == f"{site.url}broken"
