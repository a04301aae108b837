"""The comparison of a task on a narrow screen, in a real browser."""

from pathlib import Path

import pytest

from helpers.browser.pages import open_page
from helpers.runs import a_png, write_synthetic_run
from judge.report.build import make_report

pytestmark = pytest.mark.e2e


async def test_on_a_phone_one_run_is_shown_at_a_time_and_nothing_is_cut(tmp_path: Path) -> None:
    names = ("20260101-000000-a", "20260102-000000-b")
    runs = [
        write_synthetic_run(tmp_path / "out", name, tasks=3, steps=3, image=a_png(), seed=len(name)) for name in names
    ]
    folder = make_report(runs, tmp_path / "both").parent
    async with open_page() as watched:
        page = watched.page
        await page.goto((folder / "tasks" / "task_000.html").as_uri())
        choice = page.get_by_role("group", name="Shown run")
        assert not await choice.is_visible()
        assert await page.locator('#step-1 [data-side="1"]').is_visible()
        for name in ("index.html", "a/index.html", "a/tasks/task_000.html", "tasks/task_000.html"):
            await page.goto((folder / name).as_uri())
            await page.set_viewport_size({"width": 390, "height": 844})
            assert await page.evaluate("document.documentElement.scrollWidth") == 390, name
            # Parts that scroll sideways would hide what they hold; screenshots of steps stand in a strip.
            wide = """parts => parts.filter(part => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1)
                .map(part => part.getAttribute("aria-label"))"""
            assert await page.locator(".scroll").evaluate_all(wide) == [], name
        one, other = (page.locator(f'#step-1 [data-side="{side}"]') for side in (0, 1))
        assert (await one.is_visible(), await other.is_visible()) == (True, False)
        await choice.get_by_role("button").nth(1).click()
        assert (await one.is_visible(), await other.is_visible()) == (False, True)
        assert watched.troubles == []
