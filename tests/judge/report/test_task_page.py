"""The page of a task in a real browser, opened from disk."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page
from typer.testing import CliRunner

from helpers.browser.pages import WatchedPage, open_browser, watched_page
from helpers.plugins import skip_without_command
from helpers.results import a_finished_run, a_result, a_verdict, write_verdict_on
from helpers.runs import SNAPSHOT, a_png, write_synthetic_run
from judge.commands.app import command_app
from judge.report.build import make_report
from judge.store.layout import RunStore

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

HOSTILE_LINE = '- text: <img src=x onerror="document.title=1"> \u202e'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run in which every screenshot differs, and the second snapshot of `task_001` from its first."""
    store = write_synthetic_run(tmp_path_factory.mktemp("task_page") / "out", tasks=4, steps=4)
    for path in store.results.glob("*/trajectory/*.png"):
        path.write_bytes(a_png(1280, 720, tint=30 * int(path.stem[-1])))
    changed = SNAPSHOT.replace('link "Reading lamp" [ref=e6]', 'link "Desk lamp" [ref=e86]').replace("e3]", "e83]")
    (store.task("task_001").folder / "snapshots" / "step_001.yaml").write_text(f"{changed}  {HOSTILE_LINE}\n")
    return store


@pytest.fixture(scope="module")
def report(run: RunStore) -> Path:
    return make_report([run], run.output_dir.parent / "report").parent / "tasks"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser) -> AsyncIterator[WatchedPage]:
    async with watched_page(browser) as page:
        yield page
        assert page.troubles == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture
def page(watched: WatchedPage) -> Page:
    return watched.page


def shown_image(page: Page) -> Locator:
    return page.locator(".step.now .frame img")


async def test_screenshot_steps_verdict_and_labels_are_above_the_fold(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri())
    parts = (".strip a >> nth=0", ".list a >> nth=3", ".step.now .frame", ".verdict .t-failure >> nth=0")
    for selector in (*parts, ".points li >> nth=0", ".scored.now .score", ".labels", ".step.now .about"):
        box = await page.locator(selector).bounding_box()
        assert box is not None, selector
        assert box["y"] >= 0, selector
        assert box["y"] + box["height"] <= 800, selector
    image = await shown_image(page).bounding_box()
    assert image is not None
    assert image["width"] >= 640
    assert image["height"] >= 320


async def test_after_shows_the_next_steps_screenshot_without_an_outline(page: Page, report: Path) -> None:
    await page.goto((report / "task_000.html").as_uri())
    ring = page.locator(".step.now .ring")
    assert await ring.is_visible()
    await page.keyboard.press("b")
    assert await shown_image(page).get_attribute("src") == "../images/task_000/step_001.png"
    assert not await ring.is_visible()
    await page.get_by_role("button", name="Before").click()
    assert await shown_image(page).get_attribute("src") == "../images/task_000/step_000.png"
    await page.keyboard.press("b")
    await page.keyboard.press("ArrowRight")
    assert await page.locator("#step-1 img").get_attribute("src") == "../images/task_000/step_000.png"
    await page.keyboard.press("End")
    assert await page.get_by_role("button", name="After").is_disabled()


async def test_the_final_page_follows_the_last_step(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri() + "#step-4")
    await page.get_by_role("button", name="After").click()
    assert await shown_image(page).get_attribute("src") == "../images/task_001/screenshot.png"
    await page.keyboard.press("ArrowRight")
    assert await page.evaluate("location.hash") == "#final"
    assert await page.locator(".step:visible").get_attribute("id") == "final"


async def test_space_plays_the_steps_and_stops_at_the_last(page: Page, report: Path) -> None:
    await page.clock.install()
    await page.goto((report / "task_000.html").as_uri() + "#step-2")
    await page.keyboard.press("Space")
    await page.clock.run_for(1400)
    assert await page.evaluate("location.hash") == "#step-3"
    await page.keyboard.press("Space")
    await page.clock.run_for(5000)
    assert await page.evaluate("location.hash") == "#step-3"
    await page.keyboard.press("Space")
    await page.clock.run_for(9000)
    assert await page.evaluate("location.hash") == "#step-4"
    assert await page.get_by_role("button", name="Play").get_attribute("aria-pressed") == "false"


async def test_a_click_enlarges_the_screenshot_and_steps_can_be_changed_there(page: Page, report: Path) -> None:
    await page.goto((report / "task_000.html").as_uri())
    await shown_image(page).click()
    large = page.get_by_role("dialog", name="Enlarged screenshot").locator("img")
    await page.keyboard.press("ArrowRight")
    assert await large.get_attribute("src") == "../images/task_000/step_001.png"
    await page.keyboard.press("Escape")
    await large.wait_for(state="detached")
    await page.keyboard.press("Enter")
    assert await large.is_visible()


async def test_the_snapshot_is_shown_as_text_with_the_target_marked(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri() + "#step-2")
    await page.get_by_role("button", name="Snapshot").click()
    text = page.get_by_role("region", name="Snapshot")
    await text.get_by_text("onerror").wait_for()
    lines = (await text.inner_text()).splitlines()
    assert lines[1] == '  - heading "Lamps" [level=1] [ref=e83]'
    assert lines[-1].strip() == HOSTILE_LINE.replace("\u202e", "\\u202e")
    assert await text.locator(".target").inner_text() == '  - button "Search" [ref=e5] [cursor=pointer]'


async def test_the_difference_leaves_out_what_only_has_another_reference(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri() + "#step-2")
    await page.get_by_role("button", name="Difference").click()
    await page.locator(".text .plus").first.wait_for()
    assert await page.locator(".text .minus").all_inner_texts() == [
        '-   - link "Reading lamp" [ref=e6] [cursor=pointer]'
    ]
    added = await page.locator(".text .plus").all_inner_texts()
    assert [line.strip()[:25] for line in added] == ['+   - link "Desk lamp" [r', "+   - text: <img src=x on"]
    await page.keyboard.press("ArrowLeft")
    await page.get_by_text("There is no snapshot before this one.").wait_for()


async def test_steps_are_found_by_words_and_by_what_happened(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri())
    names = page.locator(".list ol li:visible")
    every = await names.count()
    await page.get_by_role("searchbox", name="Search steps").fill("no such words")
    assert await names.count() == 0
    assert await page.get_by_text("No step matches.").is_visible()
    await page.get_by_role("searchbox", name="Search steps").fill("")
    await page.get_by_role("combobox", name="Which steps").select_option("failed")
    result = await names.count()
    assert result < every
    await page.get_by_role("combobox", name="Which steps").select_option("")
    line = await page.locator("#step-3 .line").inner_text()
    await page.get_by_role("searchbox", name="Search steps").fill("reading lamp desk lamp")
    assert await names.count() <= every
    await page.get_by_role("searchbox", name="Search steps").fill(line)
    # A step that is left out is not shown, and the keys go past it.
    assert await page.locator(".step.now .line").inner_text() == line
    assert await page.locator(".strip a:visible").count() == await names.count()


async def test_the_time_axis_leads_to_a_step(page: Page, report: Path) -> None:
    await page.goto((report / "task_000.html").as_uri())
    await page.locator(".axis g[data-of=step-3] .hit").click()
    assert await page.evaluate("location.hash") == "#step-3"
    assert await page.locator(".axis g.now").get_attribute("data-of") == "step-3"


async def test_the_link_to_a_step_is_copied(browser: Browser, report: Path) -> None:
    async with watched_page(browser, permissions=["clipboard-read", "clipboard-write"]) as watched:
        await watched.page.goto((report / "task_000.html").as_uri() + "#step-2")
        await watched.page.get_by_role("button", name="Copy link").click()
        await watched.page.get_by_role("button", name="Copied").wait_for()
        copied = await watched.page.evaluate("navigator.clipboard.readText()")
        assert copied == (report / "task_000.html").as_uri() + "#step-2"


async def test_playback_is_as_fast_as_chosen(page: Page, report: Path) -> None:
    await page.clock.install(time=0)
    await page.goto((report / "task_000.html").as_uri())
    await page.clock.pause_at(1_000_000)
    await page.get_by_role("combobox", name="Playback speed").select_option("4")
    await page.get_by_role("button", name="Play").click()
    await page.clock.run_for(700)
    assert await page.evaluate("location.hash") == "#step-3"


async def test_a_pane_that_continues_below_is_marked_until_its_end(page: Page, report: Path) -> None:
    await page.goto((report / "task_001.html").as_uri())
    await page.evaluate("document.querySelector('.scrolled').style.height = '80px'")
    pane = page.locator(".scrolled")
    await page.locator(".scrolled.goes-on").wait_for()
    await pane.evaluate("pane => { pane.scrollTop = pane.scrollHeight; }")
    await page.locator(".scrolled:not(.goes-on)").wait_for()


async def test_a_failed_check_is_marked_and_the_page_opens_there(page: Page, run: RunStore, tmp_path: Path) -> None:
    check = {"description": "Oak", "passed": False, "expected": "oak", "found": "pine", "near_step": 1}
    point_met = {"description": "Desks", "passed": True, "found": "desks", "step": 1}
    verdict = a_verdict("failure", key_points=("Oak", "Desks"), evidence={"checks": [check, point_met]})
    store = a_finished_run(tmp_path, a_result("t1", verdict=verdict))
    write_verdict_on(store.task("t1"), "checks-1", verdict)
    address = (make_report([store], tmp_path / "report").parent / "tasks" / "t1.html").as_uri()
    await page.goto(address)
    assert await page.locator(".step.now").get_attribute("id") == "step-2"
    assert await page.evaluate("location.hash") == ""
    marks = page.locator(".list a .marks")
    labels = "spans => spans.map(span => span.getAttribute('aria-label'))"
    assert await marks.nth(0).locator("span").evaluate_all(labels) == ["executed", "helped: a check was met"]
    assert await marks.nth(1).locator("span").evaluate_all(labels) == ["executed", "went wrong here"]
    assert await page.locator(".strip .marks").nth(1).inner_text() == await marks.nth(1).inner_text()
    await page.get_by_role("link", name="step 1", exact=True).click()
    await page.locator("#step-1.now").wait_for()


async def test_a_note_is_saved_with_its_label_and_is_not_a_group(
    page: Page, run: RunStore, report: Path, tmp_path: Path
) -> None:
    await page.goto((report / "task_000.html").as_uri())
    await page.get_by_role("button", name="Correct").click()
    await page.get_by_role("textbox", name="A note for your label").fill('=the "desk", really')
    await page.goto((report / "task_001.html").as_uri())
    await page.get_by_role("button", name="Wrong").click()
    await page.goto((report / "task_000.html").as_uri())
    assert await page.get_by_role("textbox", name="A note for your label").input_value() == '=the "desk", really'
    async with page.expect_download() as download_info:
        await page.get_by_role("button", name="Save labels (2)").click()
    path = tmp_path / "labels.csv"
    await (await download_info.value).save_as(path)
    assert path.read_text().splitlines() == [
        "task_id,human,note",
        'task_000,1,"\'=the ""desk"", really"',
        'task_001,0,""',
    ]
    arguments = ["--verdicts", str(run.folder), "--labels", str(path), "--json"]
    skip_without_command("agreement")
    completed = CliRunner().invoke(command_app("agreement"), arguments, catch_exceptions=False)
    assert "note" not in json.loads(completed.stdout)["groups"]


async def test_labels_of_older_reports_are_kept(page: Page, report: Path) -> None:
    await page.goto((report / "task_000.html").as_uri())
    remaining = json.dumps({"task_000": "0"})
    await page.evaluate(f"localStorage.setItem('wabe-labels:20260101-000000-demo', {remaining!r})")
    await page.reload()
    assert await page.get_by_role("button", name="Wrong").get_attribute("aria-pressed") == "true"


async def test_labels_are_kept_and_saved_as_the_file_that_agreement_reads(
    page: Page, run: RunStore, report: Path, tmp_path: Path
) -> None:
    for task, button in (("task_000", "Correct"), ("task_001", "Correct"), ("task_002", "Cannot tell")):
        await page.goto((report / f"{task}.html").as_uri())
        await page.get_by_role("button", name="Wrong").click()
        await page.get_by_role("button", name=button).click()
    await page.goto((report / "task_003.html").as_uri())
    for _ in range(2):
        await page.get_by_role("button", name="Wrong").click()
    await page.goto((report / "task_001.html").as_uri())
    assert await page.get_by_role("button", name="Correct").get_attribute("aria-pressed") == "true"
    async with page.expect_download() as download_info:
        await page.get_by_role("button", name="Save labels (3)").click()
    download = await download_info.value
    path = tmp_path / download.suggested_filename
    await download.save_as(path)
    assert path.name == "labels-20260101-000000-demo.csv"
    assert path.read_text() == "task_id,human\ntask_000,1\ntask_001,1\ntask_002,\n"

    arguments = ["--verdicts", str(run.folder), "--labels", str(path), "--json"]
    skip_without_command("agreement")
    completed = CliRunner().invoke(command_app("agreement"), arguments, catch_exceptions=False)
    overall = json.loads(completed.stdout)["overall"]
    # The judge is right about the first task and wrong about the second one.
    assert (overall["true_positives"], overall["false_negatives"], overall["n"]) == (1, 1, 2)
    assert overall["excluded"] == {"unlabelled": 1}
