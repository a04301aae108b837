"""The live page in a real browser."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from pydantic import SecretStr
from starlette.applications import Starlette

from helpers.a2a.agents import our_agent
from helpers.browser.pages import WatchedPage, open_browser, watched_page
from helpers.live_page import RUN, ServedPage, live_page, serving
from helpers.ports import free_port
from judge.records.events import RunDone, RunStarted, TaskDone, TaskStarted
from judge.runner.live_page import live_page_of
from judge.server.live import LiveHub, live_routes
from judge.server.live_records import LiveRecords
from shared.a2a.page_links import PageLinks
from shared.a2a.tasks import AgentMessage

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<img src='http://127.0.0.1:1/x' onerror=\"document.title='owned'\"><b>bold</b>"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def served(tmp_path: Path) -> AsyncIterator[ServedPage]:
    async with live_page(tmp_path) as page:
        # What the synthetic run has on disk would count as kept from before.
        for task in page.store.tasks():
            (task.folder / "result.json").unlink()
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, served: ServedPage) -> AsyncIterator[WatchedPage]:
    async with watched_page(browser) as page:
        await page.page.goto(served.address)
        yield page
        assert [url for url in page.requests if not url.startswith((served.address, "data:"))] == []


async def test_tasks_appear_move_on_and_finish_as_events_come(served: ServedPage, watched: WatchedPage) -> None:
    page, card = watched.page, watched.page.locator("article.live")
    await card.get_by_text("step 1 of 15").wait_for()
    served.page("task_000", 1)
    await card.locator("img").wait_for(state="visible")
    served.step("task_000", 1, "<Search button> -> CLICK")
    await card.get_by_text("<Search button> -> CLICK").wait_for()
    served.done("task_000")
    await page.get_by_role("row", name="task_000").get_by_text("all met").wait_for()
    assert await card.count() == 0
    served.sink(RunDone(successes=1, scored=1, total=4))
    await page.get_by_text("Success rate 100.0 %, 1 of 1 scored task").wait_for()
    await page.get_by_text(f"{served.store.folder.resolve()}/report/index.html").wait_for()
    await page.get_by_role("link", name="task_000").click()
    await page.get_by_role("link", name="All tasks").wait_for()
    await page.go_back()
    await page.get_by_role("row", name="task_000").wait_for()
    served.hub.watch("r2")(RunStarted(run_id="r2", total=2, epochs=3))
    await page.get_by_role("heading", name="0 of 6 attempts done").wait_for()
    assert watched.troubles == []


async def test_a_running_task_is_opened_with_its_steps_and_its_screenshots(
    served: ServedPage, watched: WatchedPage
) -> None:
    page, steps = watched.page, watched.page.locator("#w-steps button")
    for number in (1, 2):
        served.page("task_000", number)
        served.step("task_000", number)
    await page.locator("article.live a").click()
    await page.get_by_role("heading", name="Find a lamp").wait_for()
    # Steps come from disk, where the synthetic attempt has three.
    await expect(steps).to_have_count(3)
    await expect(steps.nth(0)).to_contain_text("<Search searchbox> -> TYPE: reading lamp")
    await expect(steps.nth(0)).to_contain_text("I look for the reading lamp.")
    served.page("task_000", 3)
    await expect(page.locator("#w-image")).to_have_attribute("src", f"/live/{RUN}/shot/task_000?page=1-3-running")
    await steps.nth(0).click()
    await expect(page.locator("#w-image")).to_have_attribute("src", f"/live/{RUN}/images/task_000/step_000.png")
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("#w-image")).to_have_attribute("src", f"/live/{RUN}/images/task_000/step_001.png")
    await page.reload()
    await page.get_by_role("heading", name="Find a lamp").wait_for()
    served.done("task_000")
    await page.get_by_role("link", name="Open the task's page").wait_for()
    await page.keyboard.press("Escape")
    await page.get_by_role("row", name="task_000").wait_for()
    assert watched.troubles == []


async def test_hostile_texts_stay_text(served: ServedPage, watched: WatchedPage) -> None:
    page = watched.page
    served.step("task_000", 1, HOSTILE)
    served.done("task_001", HOSTILE)
    path = served.store.task("task_000").folder / "steps.jsonl"
    path.write_text(path.read_text().replace("I look for the reading lamp.", HOSTILE.replace('"', '\\"')))
    await expect(page.locator("article.live bdi")).to_have_text(HOSTILE)
    await expect(page.get_by_role("row", name="task_001").locator("bdi")).to_have_text(HOSTILE)
    await page.locator("article.live a").click()
    await expect(page.locator("#w-steps .thought").first).to_have_text(HOSTILE)
    assert (
        await page.locator("b", has_text="bold").evaluate_all("all => all.filter((b) => b.innerHTML === 'bold')") == []
    )
    assert await page.title() != "owned"
    assert watched.troubles == []


async def test_a_restarted_judge_continues_and_one_that_has_ended_leaves_the_results(
    browser: Browser, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        page = (await stack.enter_async_context(watched_page(browser))).page
        port = free_port()
        async with live_page(tmp_path, port) as first:
            await page.goto(first.address)
            await page.get_by_text("running", exact=True).wait_for()
        await page.get_by_text("reconnecting").wait_for()
        hub = LiveHub(LiveRecords(tmp_path))
        async with serving(Starlette(routes=live_routes(hub, tmp_path)), port):
            sink = hub.watch(RUN)
            sink(RunStarted(run_id=RUN, total=4, kept=2))
            sink(TaskStarted(task_id="task_002", attempt=2, max_steps=15))
            await page.get_by_text("live", exact=True).wait_for()
            await page.get_by_role("row", name="task_001").wait_for()
            await page.locator("article.live").get_by_text("attempt 2").wait_for()
            for task_id in ("task_002", "task_003"):
                sink(TaskDone(task_id=task_id, outcome="success", steps=1, reason="all met"))
            sink(RunDone(successes=3, scored=4, total=4))
            await hub.close()
        await page.get_by_text("the judge has ended").wait_for()
        await page.get_by_text("Success rate 75.0 %, 3 of 4 scored tasks").wait_for()
        await page.get_by_text(f"wabe report {RUN}").wait_for()
        assert await page.locator("a[href^='/live/']").count() == 0


async def test_a_page_behind_a_token_opens_in_a_browser_by_password_and_by_a_link(
    browser: Browser, tmp_path: Path
) -> None:
    token = SecretStr("token-planted-5d1c9e22")
    hub, links = LiveHub(), PageLinks()
    hub.watch("r1")(RunStarted(run_id="r1", total=2))
    app = our_agent(_unasked, auth_token=token, page_links=links, extra_routes=live_routes(hub, tmp_path, is_open=True))
    async with serving(app) as address:
        text = await live_page_of(f"{address}/", token, wants_link=True)
        assert text.url is not None
        assert text.url.startswith(f"{address}/open/")
        # By the password, as a person enters it after the browser has asked: it answers a challenge, and only then.
        request = await browser.new_context(http_credentials={"username": "me", "password": token.get_secret_value()})
        linked = await browser.new_context()
        for context, url in ((request, f"{address}/"), (linked, text.url)):
            page = await context.new_page()
            answer = await page.goto(url)
            assert answer is not None
            assert (answer.status, page.url) == (200, f"{address}/")
            # The events of the page need the credentials as well.
            await page.get_by_role("heading", name="0 of 2 tasks done").wait_for()
            await context.close()
        stranger = await (await browser.new_context()).new_page()
        answer = await stranger.goto(text.url)
        assert answer is not None
        assert answer.status == 410
        await hub.close()


async def _unasked(turn: AgentMessage) -> str:
    raise AssertionError(turn)
