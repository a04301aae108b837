"""No page has anything that axe-core calls serious or critical, in light and dark."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from helpers.browser.pages import open_browser, violations, watched_page
from helpers.live_page import ServedPage, live_page
from helpers.plugins import make_board
from helpers.results import JUDGE, a_result, a_submission, a_verdict, write_verdict_on
from helpers.runs import a_png, write_synthetic_run
from judge.records.events import RunDone
from judge.report.build import make_report

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    # Axe is brought into the page, which the page's own policy forbids.
    async with watched_page(browser, bypass_csp=True) as watched:
        yield watched.page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run, and a comparison of two."""
    folder = tmp_path_factory.mktemp("pages")
    runs = [
        write_synthetic_run(folder / name, tasks=6, steps=3, image=a_png(1280, 720), seed=seed)
        for name, seed in (("a", 0), ("b", 2))
    ]
    # Two judges of one name, of which one was asked again, that differ from the checks.
    model = JUDGE.model_copy(update={"model": "openai:gpt-4.1-mini"})
    checks = a_verdict("failure", judge=JUDGE.model_copy(update={"method": "checks"}))
    write_verdict_on(runs[0].task("task_001"), "checks-0123456789ab", checks)
    for judge_id in ("webjudge-0123456789ab", "webjudge-0123456789ab.r2", "webjudge-fedcba987654"):
        write_verdict_on(runs[0].task("task_001"), judge_id, a_verdict(judge=model))
    make_report([runs[0]], folder / "report")
    make_report(runs, folder / "comparison")
    submission = a_submission(a_result("a"), a_result("b", stop_reason="environment_fault"))
    submission["results"][0]["detail"] |= {"participant_cost_usd": 0.5, "provenance": {"identity": {"name": "<b>"}}}
    (folder / "s.json").write_text(json.dumps(submission | {"report_url": "https://a.test/"}))
    make_board([folder / "s.json"], folder / "board")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedPage]:
    async with live_page(tmp_path_factory.mktemp("live")) as served:
        served.page("task_002", 1)
        served.step("task_002", 1)
        yield served


# The first of these tasks is judged and has a final look, the other was aborted.
@pytest.mark.parametrize(
    "name",
    [
        "report/index.html",
        "report/tasks/task_001.html",
        "report/tasks/task_003.html",
        "comparison/index.html",
        "comparison/tasks/task_001.html",
        "board/index.html",
    ],
)
async def test_a_page_of_the_report_can_be_used_by_everyone(page: Page, folder: Path, name: str) -> None:
    await page.goto((folder / name).as_uri())
    await page.locator("details").evaluate_all("folds => folds.forEach((fold) => { fold.open = true; })")
    assert await violations(page) == []


async def test_the_live_page_can_be_used_by_everyone(page: Page, live: ServedPage) -> None:
    await page.goto(live.address)
    await page.get_by_role("row", name="task_001").wait_for()
    assert await violations(page) == []
    await page.locator("article.live a").last.click()
    await page.locator("#w-steps button").first.click()
    assert await violations(page) == []


async def test_the_live_page_of_a_finished_run_can_be_used_by_everyone(page: Page, live: ServedPage) -> None:
    live.sink(RunDone(successes=1, scored=2, total=4))
    await page.goto(live.address)
    await page.get_by_text("Success rate").wait_for()
    assert await violations(page) == []
