"""The page of all runs in a real browser: searching, tags and notes, comparing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from starlette.applications import Starlette

from helpers.browser.pages import open_page, violations
from helpers.live_page import serving
from helpers.runs import a_png, write_synthetic_run
from judge.plugins.all_runs.index import RunIndex
from judge.plugins.all_runs.notes import NotesFolder, RunNotes
from judge.plugins.all_runs.page import runs_routes
from judge.server.live_records import LiveRecords
from judge.store.matrices import Cell, Matrix
from shared.files import write_json

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio]

HOSTILE = '"></textarea><img src=x onerror=alert(1)> <b>&amp;'


@pytest_asyncio.fixture
async def runs(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a page with three runs, of which the last is being played."""
    for number in range(3):
        store = write_synthetic_run(tmp_path, f"run-{number}", tasks=2, steps=1, seed=number, image=a_png(64, 36))
        record = store.read_run() or {}
        known = {"identity": {"card_name": "mine", "card_version": f"1.{number}"}, "scenario": {"name": "demo"}}
        entries = [{"task_id": "t", "epoch": 1, "verdict": "success" if number else "failure"}]
        store.write_run({**record, **known, "started_at": record["started_at"] + number})
        judge = {"method": "checks", "model": "offline"}
        detail = {"success_rate": 100.0 if number else 0.0, "judge": judge, "tasks": entries}
        store.write_submission({"results": [{"detail": detail}]})
    store.write_run({**(store.read_run() or {}), "state": "running"})
    LiveRecords(tmp_path, address="http://127.0.0.1:9123/").remember(store.run_id)
    with store.held("judge"):
        async with serving(Starlette(routes=runs_routes(RunIndex(tmp_path)))) as address:
            yield address


async def test_runs_are_searched_annotated_and_compared(runs: str, tmp_path: Path) -> None:
    async with open_page() as watched:
        page = watched.page
        await page.goto(runs)
        await expect(page.get_by_role("link", name="Live page")).to_have_attribute("href", "http://127.0.0.1:9123/")
        await expect(page.get_by_role("img", name="mine on demo")).to_be_visible()
        # Only the matching run is left, and the address says why.
        await page.get_by_role("searchbox").fill("run-1")
        await expect(page.locator("#matches")).to_have_text("1 of 3 runs")
        assert page.url == f"{runs}/?search=run-1"
        await page.get_by_role("button", name="Tags, note of run-1").click()
        await page.get_by_label("Tags, with commas").fill("best, to show")
        await page.get_by_label("Note", exact=True).fill(HOSTILE)
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("#found .category")).to_have_text(["best", "to show"])
        await expect(page.locator("#found .own")).to_have_text(HOSTILE)
        assert NotesFolder(tmp_path).read("run-1") == RunNotes(tags=("best", "to show"), note=HOSTILE)
        # A selection outlasts the search in which it was made.
        await page.get_by_role("checkbox", name="Select run-1").check()
        await page.get_by_role("searchbox").fill("run-0")
        await page.get_by_role("checkbox", name="Select run-0").check()
        await page.get_by_role("button", name="Compare selected").click()
        await expect(page.get_by_role("heading", name="Comparison of 2 runs")).to_be_visible()
        assert watched.troubles == []
        assert {url for url in watched.requests if not url.startswith((runs, "data:"))} == set()


async def test_the_page_can_be_used_by_everyone(runs: str, tmp_path: Path) -> None:
    cells = tuple(Cell(scenario="s", agent="a", asked_sha256="", run_id=f"run-{number}") for number in (0, 1))
    write_json(tmp_path / "matrices/m.json", Matrix(matrix_id="m-1", started_at=1.0, cells=cells).model_dump())
    # Axe is brought into the page, which the page's own policy forbids.
    async with open_page(bypass_csp=True) as watched:
        await watched.page.goto(runs)
        assert await violations(watched.page) == []
        await watched.page.get_by_role("link", name="Matrix of 2 runs").click()
        await watched.page.get_by_role("button", name="Tags, note of run-1").click()
        assert await violations(watched.page) == []
