"""Makes a synthetic run of 300 tasks with 15 steps each and its report, opens it, and checks that this is fast enough.

`python benchmarks/report_300.py` prints one line per measurement. Exit code 1 if a limit is missed. The limits: the
report is made in under 10 s, its front page is under 2 MB, the first contentful paint comes in under 1 s.
"""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from playwright.sync_api import sync_playwright

from helpers.runs import SNAPSHOT, write_synthetic_run
from judge.browser.chromium import find_browser
from judge.report.build import make_report
from judge.store.layout import RunStore
from shared.settings import Settings

TASKS, STEPS = 300, 15
IMAGE_BYTES = 120_000
SNAPSHOT_CHARS = 40_000


def synthetic_run(folder: Path) -> RunStore:
    """A run with screenshots and snapshots as large as real ones."""
    # The size of a real screenshot; a JPEG's reader ignores what follows the end.
    picture = screenshot()
    store = write_synthetic_run(folder, tasks=TASKS, steps=STEPS, image=picture.ljust(IMAGE_BYTES, b"\0"))
    for path in store.results.glob("*/snapshots/*.yaml"):
        # Another page at every step, so that each snapshot counts.
        texts = (f"Entry {n} of {path.stem}" for n in range(640))
        filler = "\n".join(f'  - listitem "{text}" [ref=e{n}] [box=10,{n},300,20]' for n, text in enumerate(texts, 100))
        path.write_text(f"{SNAPSHOT}{filler}"[:SNAPSHOT_CHARS])
    return store


def screenshot() -> bytes:
    """A real JPEG of a page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_content("<h1>Lamps</h1>" + "<p style='background:#ddd'>A lamp with a warm light</p>" * 40)
        data = page.screenshot(type="jpeg")
        browser.close()
    return data


def first_paint_ms(index: Path) -> float:
    """First contentful paint of the page in milliseconds, in a new browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(index.as_uri())
        paint = page.evaluate(
            """() => new Promise((resolve) => new PerformanceObserver((list) => {
                 const found = list.getEntriesByName("first-contentful-paint")[0];
                 if (found) resolve(found.startTime);
               }).observe({ type: "paint", buffered: true }))"""
        )
        browser.close()
    return float(paint)


def browser_path() -> str:
    """The browser that an assessment would use."""
    return str(find_browser(None, Settings.from_environ()).path)


def main() -> int:
    """Measure and compare with the limits."""
    with tempfile.TemporaryDirectory() as folder:
        store = synthetic_run(Path(folder))
        began = time.perf_counter()
        index = make_report([store], Path(folder) / "report")
        made_s = time.perf_counter() - began
        paint = first_paint_ms(index)
        measures = (
            ("report made", made_s, 10.0, "s"),
            ("index.html", index.stat().st_size / 1e6, 2.0, "MB"),
            ("first contentful paint", paint / 1000, 1.0, "s"),
        )
    print(f"{TASKS} tasks, {STEPS} steps each")
    for name, value, limit, unit in measures:
        print(f"{name:<24}{value:8.2f} {unit:<3} limit {limit:g} {unit}: {'ok' if value < limit else 'MISSED'}")
    return int(any(value >= limit for _, value, limit, _ in measures))


if __name__ == "__main__":
    sys.exit(main())
