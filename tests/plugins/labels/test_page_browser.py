"""The page for labelling in a real browser: by keyboard alone, over a kill of its server, on a phone."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette

from helpers.browser.pages import open_page, violations
from helpers.live_page import serving
from judge.plugins.labels.corrections import LabelledRun
from judge.plugins.labels.label_files import label_file
from judge.plugins.labels.labelling import begin
from judge.plugins.labels.page import label_routes
from judge.results.corrected import CORRECTED
from judge.store.layout import RunStore
from plugins.labels.labelled import a_hostile_run, a_run_to_label, truth

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio]

HOSTILE = "</pre></textarea><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def served(run: RunStore) -> tuple[subprocess.Popen[str], str]:
    """The command, and the address of its page."""
    command = [sys.executable, "-m", "wabe", "label", str(run.folder), "--labels", "40", "--port", "0", "--seed", "2"]
    process = subprocess.Popen([*command, "--as", "anna"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.search(r"http://\S+", line)
    assert match is not None, line
    return process, match[0]


async def label_by_keyboard(page: Page, run: RunStore, count: int) -> None:
    """Label so many attempts as they truly are, with keys only."""
    for _ in range(count):
        # The script that reads keys comes after the heading.
        await page.wait_for_load_state()
        number = int(re.sub(r"\D", "", await page.locator("h1").inner_text()))
        before = page.url
        await page.keyboard.press("1" if truth(number) else "0")
        await expect(page).not_to_have_url(before)


@pytest.mark.own_browser
async def test_forty_attempts_are_labelled_by_keyboard_over_a_kill_of_the_server(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    process, address = served(run)
    try:
        async with open_page() as watched:
            page = watched.page
            await page.goto(address)
            await label_by_keyboard(page, run, 16)
            # A key that is pressed too early labels nothing twice.
            await page.evaluate(
                """() => ["1", "0"].forEach((key) => document.dispatchEvent(new KeyboardEvent("keydown", { key })))"""
            )
            await expect(page.locator("#progress")).to_have_text("17 of 40 labelled")
            await page.keyboard.press("u")
            await expect(page.locator("#progress")).to_have_text("16 of 40 labelled")
            await label_by_keyboard(page, run, 1)
            await page.keyboard.press("n")
            await page.keyboard.type("half of it")
            await page.keyboard.press("Escape")
            await page.keyboard.press("2")
            await expect(page.locator("#progress")).to_have_text("18 of 40 labelled")
            await page.keyboard.press("u")
            await expect(page.locator("#progress")).to_have_text("17 of 40 labelled")
            await expect(page.get_by_label("Note")).to_have_value("half of it")
            # An image that the kill breaks off would be a trouble of the page.
            await page.wait_for_load_state("networkidle")
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            process, address = served(run)
            await page.goto(address)
            await expect(page.locator("#progress")).to_have_text("17 of 40 labelled")
            await label_by_keyboard(page, run, 23)
            await expect(page.get_by_role("heading", name="All attempts are labelled")).to_be_visible()
            assert watched.troubles == []
    finally:
        process.send_signal(signal.SIGINT)
        completed, _ = process.communicate(timeout=60)
    assert "results.json has the corrected success rate" in completed
    correction = LabelledRun(run).correction
    assert correction is not None
    assert (correction.labels, correction.undecided) == (40, 0)
    assert f'"{CORRECTED}"' in (run.folder / "results.json").read_text()


async def test_nothing_of_a_hostile_run_executes_and_the_page_can_be_used_by_everyone(tmp_path: Path) -> None:
    run = a_hostile_run(tmp_path, HOSTILE)
    session = begin([run], "anna", is_blind=False)
    async with serving(Starlette(routes=label_routes(session))) as address:
        async with open_page() as watched:
            page = watched.page
            await page.goto(address)
            await expect(page.locator("h1")).to_contain_text("document.title")
            await page.keyboard.press("ArrowLeft")
            await page.keyboard.press("Shift+ArrowRight")
            await expect(page).to_have_url(re.compile("/attempt/2$"))
            assert await page.title() == "Label attempts"
            assert {url for url in watched.requests if not url.startswith((address, "data:"))} == set()
        # Axe is brought into the page, which the page's own policy forbids.
        async with open_page(bypass_csp=True) as watched:
            for path in ("/attempt/1", "/done"):
                for width in (1280, 390):
                    await watched.page.set_viewport_size({"width": width, "height": 800})
                    await watched.page.goto(f"{address}{path}")
                    assert await violations(watched.page) == []
                    wide = await watched.page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width
    assert not label_file(run, "anna").exists()
