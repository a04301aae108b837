"""The report in a real browser, opened from disk."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from helpers.browser.pages import WatchedPage, open_browser, watched_page
from helpers.runs import a_png, write_synthetic_run
from judge.report.build import make_report
from judge.report.data import RunView, TaskRow
from judge.report.pages import Renderer
from judge.report.totals import totals_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "</script><img src='http://127.0.0.1:1/x' onerror=\"document.title='owned'\"><b id='evil'>bold</b> \u202e"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    store = write_synthetic_run(folder / "out", tasks=9, steps=4, image=a_png(1280, 720), says=HOSTILE)
    return make_report([store], folder / "report").parent


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front page of a run of 1,001 tasks."""
    names = [f"t{number}" for number in range(1001)]
    rows = [
        TaskRow.without_attempt(task_id=name, task=f"Find {name}.", level="easy", verdict="success", epoch=1)
        for name in names
    ]
    page = tmp_path_factory.mktemp("long") / "index.html"
    page.write_text(Renderer().index(RunView("r", {}, "p", tuple(names)), totals_of(rows), rows))
    return page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_page(browser: Browser) -> AsyncIterator[WatchedPage]:
    async with watched_page(browser) as page:
        yield page


@pytest.fixture
def watched(one_page: WatchedPage) -> Iterator[WatchedPage]:
    """The same page for every test: each opens what it needs."""
    one_page.troubles.clear()
    one_page.requests.clear()
    yield one_page
    assert one_page.troubles == []
    assert [url for url in one_page.requests if not url.startswith(("file:", "data:"))] == []


@pytest_asyncio.fixture(loop_scope="module")
async def unvisited(browser: Browser) -> AsyncIterator[WatchedPage]:
    """A page without a history."""
    async with watched_page(browser) as page:
        yield page
        assert page.troubles == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []


async def visible_ids(watched: WatchedPage) -> list[str]:
    return await watched.page.locator("#task-table tbody tr:visible .id").all_inner_texts()


async def outcomes(watched: WatchedPage) -> list[str]:
    rows = watched.page.locator("#task-table tbody tr:visible")
    return list(await rows.evaluate_all("rows => rows.map((row) => row.dataset.outcome)"))


async def test_the_front_page_filters_searches_and_sorts(
    subtests: pytest.Subtests, watched: WatchedPage, report: Path
) -> None:
    page = watched.page
    await page.goto((report / "index.html").as_uri())
    clear = page.get_by_role("button", name="Clear")
    with subtests.test("failures come first"):
        order = ("failure", "unscored", "aborted", "success")
        result = await outcomes(watched)
        assert result == sorted(result, key=order.index)
    with subtests.test("filtering by outcome leaves the tasks of that outcome"):
        await page.select_option("#f-outcome", "aborted")
        assert set(await outcomes(watched)) == {"aborted"}
        await clear.click()
    with subtests.test("searching leaves the tasks with all words"):
        await page.keyboard.press("/")
        await page.keyboard.type("LAMP 7")
        assert await visible_ids(watched) == ["task_007"]
        assert await page.inner_text("#count") == "1 of 9 tasks"
    with subtests.test("a search without a match says so and clear brings all back"):
        await page.fill("#q", "no such thing")
        await page.get_by_text("No task matches.").wait_for()
        await clear.click()
        await page.locator("#none").wait_for(state="hidden")
        assert len(await visible_ids(watched)) == 9
    with subtests.test("a count on top shows its tasks"):
        await page.locator(".counts a", has_text="unscored").click()
        await page.get_by_text("1 of 9 tasks").wait_for()
        assert await page.input_value("#f-outcome") == "unscored"
        assert await visible_ids(watched) == ["task_002"]
        await clear.click()
    with subtests.test("a column sorts up and then down"):
        head = page.locator("#task-table").get_by_role("columnheader", name="Time")
        times = "cells => cells.map((cell) => Number(cell.dataset.v))"
        for state in ("ascending", "descending"):
            await head.get_by_role("button").press("Enter")
            values = await page.locator("#task-table td:nth-child(7)").evaluate_all(times)
            assert await head.get_attribute("aria-sort") == state
            assert values == sorted(values, reverse=state == "descending")
    with subtests.test("the theme button changes the colours"):
        colour = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(colour)
        await page.get_by_role("button", name="Dark").click()
        assert await page.evaluate(colour) != light
        await page.evaluate("localStorage.clear()")


async def test_of_a_long_list_the_first_tasks_are_shown_and_all_are_searched(
    watched: WatchedPage, long_page: Path
) -> None:
    page = watched.page
    await page.goto(long_page.as_uri())
    assert len(await visible_ids(watched)) == 500
    assert await page.inner_text("#count") == "1001 tasks"
    await page.get_by_role("button", name="Show 500 more of 501").click()
    await page.get_by_role("button", name="Show 1 more of 1").click()
    assert (await visible_ids(watched))[499:1001:501] == ["t499", "t1000"]
    assert not await page.locator("#more").is_visible()
    await page.fill("#q", "t1000")
    assert await visible_ids(watched) == ["t1000"]
    await page.fill("#q", "")
    await page.get_by_role("button", name="Show 500 more of 501").wait_for()


async def test_filters_are_in_the_address_and_come_back_with_it(unvisited: WatchedPage, report: Path) -> None:
    page = unvisited.page
    await page.goto((report / "index.html").as_uri())
    await page.select_option("[name=verdict]", "failure")
    await page.select_option("[name=level]", "medium")
    await page.fill("#q", "lamp")
    # Playwright hears of a new address a little later.
    await page.wait_for_url("**/index.html#q=lamp&verdict=failure&level=medium", timeout=5000)
    ids = await visible_ids(unvisited)
    async with watched_page(page.context.browser) as other:  # type: ignore[arg-type]
        await other.page.goto(page.url)
        assert await visible_ids(other) == ids
    await page.locator("#task-table a:visible").first.click()
    await page.go_back()
    assert await visible_ids(unvisited) == ids
    await page.go_back()
    await page.wait_for_function("document.getElementById('q').value === ''")
    assert await page.input_value("[name=verdict]") == "failure"
    assert await page.input_value("[name=level]") == ""


async def test_a_category_and_an_unknown_value_in_the_address(watched: WatchedPage, report: Path) -> None:
    page = watched.page
    await page.goto((report / "index.html").as_uri() + "#category=over_budget")
    rows = await page.locator("#task-table tbody tr:visible").evaluate_all(
        "all => all.map((one) => one.dataset.category)"
    )
    assert rows
    assert all("over_budget" in row.split() for row in rows)
    await page.goto((report / "index.html").as_uri() + "#verdict=nonsense")
    await page.reload()
    assert len(await visible_ids(watched)) == 9


async def test_one_file_holds_every_page_with_its_images(browser: Browser, tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path / "out", tasks=5, steps=2, image=a_png(1280, 720), says=HOSTILE)
    other = write_synthetic_run(tmp_path / "out", "20260102-000000-b", tasks=5, steps=2, seed=4)
    path = make_report([store, other], tmp_path / "both.html", single_file=True)
    async with watched_page(browser) as watched:
        page = watched.page
        await page.goto(path.as_uri())
        await page.locator("#task-table a", has_text="lamp number 3").click()
        await page.get_by_role("heading", name="lamp number 3").wait_for()
        await page.locator("td img").first.evaluate("image => image.decode()")
        await page.locator("a.frame").nth(2).click()
        await page.wait_for_url("**/both.html?a/tasks/task_003.html#step-2")
        assert await page.locator(".step:visible").get_attribute("id") == "step-2"
        await page.locator(".step:visible img").evaluate("image => image.decode()")
        await page.get_by_role("link", name="All tasks").click()
        link = page.get_by_role("link", name="CSV")
        async with page.expect_download() as download:
            await link.click()
        saved = await (await download.value).path()
        assert "task_003" in saved.read_text()
        # An address that was cut inside an escape.
        await page.goto(f"{path.as_uri()}?a/tasks/task_003.html%")
        await page.get_by_role("heading", name="Comparison of 2 runs").wait_for()
        assert watched.troubles == []
        assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []


async def test_the_page_of_a_task_moves_between_steps_and_tasks(
    subtests: pytest.Subtests, watched: WatchedPage, report: Path
) -> None:
    page = watched.page
    await page.goto((report / "tasks" / "task_000.html").as_uri() + "#step-3")

    async def visible_steps() -> list[str]:
        return list(await page.locator(".step:visible").evaluate_all("all => all.map((one) => one.id)"))

    with subtests.test("an address of a step opens at that step"):
        assert await visible_steps() == ["step-3"]
    with subtests.test("keys move between steps and the address follows"):
        keys = (
            ("Home", 1),
            ("ArrowRight", 2),
            ("ArrowRight", 3),
            ("ArrowLeft", 2),
            ("End", 4),
            ("ArrowRight", 4),
            ("Home", 1),
        )
        for key, step in keys:
            await page.keyboard.press(key)
            assert await visible_steps() == [f"step-{step}"]
            assert await page.evaluate("location.hash") == f"#step-{step}"
    with subtests.test("the outline lies on the element that was acted on"):
        image = await page.locator("#step-1 img").bounding_box()
        ring = await page.locator("#step-1 .ring").bounding_box()
        assert image is not None
        assert ring is not None
        # The picture is as large as fits, in the middle of its box.
        scale = min(image["width"] / 1280, image["height"] / 720)
        left, top = image["x"] + (image["width"] - 1280 * scale) / 2, image["y"] + (image["height"] - 720 * scale) / 2
        # The search box stands at 48,150 on the screenshot and is 420 by 36; the ring keeps 3 pixels and its line off
        # it.
        assert ring["x"] - left == pytest.approx(45 * scale, abs=3)
        assert ring["y"] - top == pytest.approx(147 * scale, abs=3)
        assert ring["width"] == pytest.approx(426 * scale, abs=6)
    with subtests.test("all steps can stand below each other, and every screenshot loads"):
        await page.keyboard.press("a")
        assert len(await visible_steps()) == 4
        for image_of_step in await page.locator(".step img").all():
            await image_of_step.scroll_into_view_if_needed()
            await image_of_step.evaluate("image => image.decode()")
    with subtests.test("shift and an arrow move between tasks"):
        await page.keyboard.press("Shift+ArrowRight")
        await page.wait_for_url("**/task_001.html")
        await page.keyboard.press("Shift+ArrowLeft")
        await page.wait_for_url("**/task_000.html")


async def test_without_scripts_every_task_and_step_is_there(browser: Browser, report: Path, long_page: Path) -> None:
    async with watched_page(browser, java_script_enabled=False) as watched:
        await watched.page.goto((report / "index.html").as_uri())
        assert await watched.page.locator("#task-table tbody tr").count() == 9
        await watched.page.goto((report / "tasks" / "task_000.html").as_uri())
        assert await watched.page.locator(".step:visible").count() == 4
        await watched.page.goto(long_page.as_uri())
        assert await watched.page.locator("#task-table tbody tr:visible").count() == 1001


async def test_no_page_is_wider_than_the_window(watched: WatchedPage, report: Path) -> None:
    for name in ("index.html", "tasks/task_000.html"):
        await watched.page.goto((report / name).as_uri())
        for width in (390, 1280, 1920):
            await watched.page.set_viewport_size({"width": width, "height": 800})
            assert await watched.page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


async def test_the_summary_stays_inside_its_card(watched: WatchedPage, report: Path) -> None:
    below_parent = """() => [...document.querySelectorAll(".hero *")].filter((element) =>
        element.getBoundingClientRect().bottom > element.parentElement.getBoundingClientRect().bottom + 3
    ).map((element) => element.outerHTML.slice(0, 80))"""
    await watched.page.goto((report / "index.html").as_uri())
    for width in (390, 1280):
        await watched.page.set_viewport_size({"width": width, "height": 800})
        assert await watched.page.evaluate(below_parent) == []
