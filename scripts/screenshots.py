#!/usr/bin/env python3
"""Takes the documentation's screenshots of a run: its report, a page of a task, the live page.

python scripts/screenshots.py .output/runs/RUN_ID [--task ID] [--live URL] [--output docs/images]

Each at three widths, light and dark. The live page is that of the judge at URL, while it plays; without one, the run
is shown as it was halfway through, from its records.
"""

import argparse
import asyncio
import io
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, ViewportSize, async_playwright
from starlette.applications import Starlette

from judge.browser.chromium import find_browser
from judge.records.events import RunStarted, Sink, StepBegun, StepDone, TaskDone, TaskStarted
from judge.report.build import make_report
from judge.server.live import LiveHub, live_routes
from judge.server.live_records import LiveRecords
from judge.store.layout import RunStore, resolve_run
from judge.trajectory.files import read_attempt
from shared.a2a.serving import listen, serve_app
from shared.settings import Settings

_WINDOWS = ((390, 844), (1280, 800), (1920, 1080))
_COLOURS = 256
_RUNNING = 4
_LOADED = """() => [...document.images].every((image) => {
    const box = image.getBoundingClientRect();
    return image.complete || !image.checkVisibility() || box.bottom < 0 || box.top > innerHeight;
})"""


async def _take(browser: Browser, address: str, name: str, ready: str, output: Path) -> None:
    for scheme in ("light", "dark"):
        for width, height in _WINDOWS:
            size = ViewportSize(width=width, height=height)
            async with await browser.new_context(viewport=size, color_scheme=scheme) as context:
                page = await context.new_page()
                await page.goto(address)
                await page.locator(ready).first.wait_for()
                await page.wait_for_function(_LOADED)
                image = Image.open(io.BytesIO(await page.screenshot()))
            # Maximum coverage keeps the colours that few pixels have, such as those of outcomes.
            # K-means then keeps the large areas free of bands.
            method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
            small = image.convert("RGB").quantize(_COLOURS, method=method, kmeans=1, dither=dither)
            path = output / f"{name}-{width}-{scheme}.png"
            small.save(path, optimize=True)
            print(f"{path}  {path.stat().st_size // 1000} kB")


@asynccontextmanager
async def _half_way(store: RunStore, task_ids: list[str], folder: Path) -> AsyncIterator[str]:
    """The address of a live page that shows the run when half of its tasks were done and some were running."""
    copy = RunStore(folder, store.run_id)
    half = len(task_ids) // 2
    for task_id in task_ids[: half + _RUNNING]:
        shutil.copytree(store.task(task_id).folder, copy.task(task_id).folder)
    shutil.copy(store.folder / "run.json", copy.folder)
    hub = LiveHub(LiveRecords(folder))
    sink = hub.watch(store.run_id)
    sink(RunStarted(run_id=store.run_id, total=len(task_ids)))
    for place, task_id in enumerate(task_ids[: half + _RUNNING]):
        _play(copy, task_id, sink, is_done=place < half)
    sock = listen("127.0.0.1", 0)
    app = Starlette(routes=live_routes(hub, folder))
    serving = asyncio.create_task(serve_app(app, sock, before_shutdown=hub.close))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def _play(store: RunStore, task_id: str, sink: Sink, *, is_done: bool) -> None:
    """Send the events of a recorded attempt: all of them, or those up to the last but one of its pages."""
    folder = store.task(task_id).folder
    attempt = read_attempt(folder)
    sink(TaskStarted(task_id=task_id, attempt=attempt.number, max_steps=attempt.max_steps))
    steps = attempt.steps if is_done else attempt.steps[:-1]
    for step in steps:
        number, line = step.index + 1, step.outcome.line if step.outcome else None
        sink(StepBegun(task_id=task_id, step=number, task=attempt.task.task, url=step.url))
        if is_done or step is not steps[-1]:
            sink(StepDone(task_id=task_id, step=number, max_steps=attempt.max_steps, action=line or "no action"))
    if is_done:
        reason = attempt.verdict.reason if attempt.verdict else attempt.stop_reason
        sink(TaskDone(task_id=task_id, outcome=attempt.outcome, steps=attempt.steps_taken, reason=reason))
    else:
        (folder / "result.json").unlink()


async def _take_all(store: RunStore, task: str | None, live: str | None, output: Path) -> None:
    task_ids = json.loads((store.folder / "run.json").read_text())["task_ids"]
    failed = (each for each in task_ids if read_attempt(store.task(each).folder).outcome == "failure")
    task_shown = task or next(failed, task_ids[0])
    program = find_browser(None, Settings.from_environ())
    async with async_playwright() as playwright:
        arguments = [] if program.sandbox else ["--no-sandbox"]
        browser = await playwright.chromium.launch(executable_path=str(program.path), args=arguments)
        with tempfile.TemporaryDirectory(prefix="wabe-") as folder:
            index = make_report([store], Path(folder, "report"))
            await _take(browser, index.as_uri(), "report", "main", output)
            await _take(browser, (index.parent / "tasks" / f"{task_shown}.html").as_uri(), "task", "main", output)
            if live:
                await _take(browser, live, "live", "article.live img:visible", output)
            else:
                async with _half_way(store, task_ids, Path(folder)) as address:
                    await _take(browser, address, "live", "article.live img:visible", output)
        await browser.close()


def main() -> None:
    """Take the screenshots that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a finished run, or its id")
    parser.add_argument("--task", help="whose page to show (default: the first that failed)")
    parser.add_argument("--live", help="address of a judge's live page")
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    store = resolve_run(options.run, Path(".output"))
    asyncio.run(_take_all(store, options.task, options.live, options.output))


if __name__ == "__main__":
    main()
