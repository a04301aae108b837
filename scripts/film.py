#!/usr/bin/env python3
"""Films ten seconds of a run: the live page, the steps of a task, the report.

python scripts/film.py RUN_ID [--task ID] [--output docs/images/run.webp]

The live page is shown as it was halfway through, from the run's records.
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

from judge.browser.installed import find_browser
from judge.records.events import RunStarted, Sink, StepBegun, StepDone, TaskDone, TaskStarted
from judge.report.build import make_report
from judge.server.live import LiveHub, live_routes
from judge.server.live_records import LiveRecords
from judge.store.layout import RunStore, resolve_run
from judge.trajectory.files import read_attempt
from shared.a2a.serving import listen, serve_app
from shared.settings import Settings

_SIZE = ViewportSize(width=1120, height=700)
_FILMED = 6  # steps, at most
_RUNNING = 4
_LOADED = """() => [...document.images].every((image) => {
    const box = image.getBoundingClientRect();
    return image.complete || !image.checkVisibility() || box.bottom < 0 || box.top > innerHeight;
})"""


async def _picture(browser: Browser, address: str, ready: str) -> Image.Image:
    async with await browser.new_context(viewport=_SIZE, color_scheme="light") as context:
        page = await context.new_page()
        await page.goto(address)
        await page.locator(ready).first.wait_for()
        await page.wait_for_function(_LOADED)
        return Image.open(io.BytesIO(await page.screenshot())).convert("RGB")


async def _film(browser: Browser, live: str, index: Path, task: str, steps: int, film: Path) -> None:
    page = (index.parent / "tasks" / f"{task}.html").as_uri()
    shown = [f"{page}#step-{number}" for number in range(1, steps + 1)][-_FILMED:]
    scenes = [(live, "article.live img:visible", 2.0), *((each, "main", 5 / len(shown)) for each in shown)]
    scenes.append((index.as_uri(), "main", 3.0))
    pictures = [await _picture(browser, address, ready) for address, ready, _ in scenes]
    _save_film(pictures, [int(1000 * seconds) for *_, seconds in scenes], film)


def _save_film(pictures: list[Image.Image], durations: list[int], film: Path) -> None:
    pictures[0].save(film, save_all=True, append_images=pictures[1:], duration=durations, loop=0, quality=60, method=6)
    print(f"{film}  {film.stat().st_size // 1000} kB")


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
            sink(
                StepDone(
                    task_id=task_id,
                    step=number,
                    max_steps=attempt.max_steps,
                    action=line or "no action",
                    executed=line is not None,
                )
            )
    if is_done:
        reason = attempt.verdict.reason if attempt.verdict else attempt.stop_reason
        sink(TaskDone(task_id=task_id, outcome=attempt.outcome, steps=attempt.steps_taken, reason=reason))
    else:
        (folder / "result.json").unlink()


async def _film_run(store: RunStore, task: str | None, film: Path) -> None:
    task_ids = json.loads((store.folder / "run.json").read_text())["task_ids"]
    failed = (each for each in task_ids if read_attempt(store.task(each).folder).outcome == "failure")
    shown = task or next(failed, task_ids[0])
    steps = len(read_attempt(store.task(shown).folder).steps)
    program = find_browser(None, Settings.from_environ())
    async with async_playwright() as playwright:
        arguments = [] if program.sandbox else ["--no-sandbox"]
        browser = await playwright.chromium.launch(executable_path=str(program.path), args=arguments)
        with tempfile.TemporaryDirectory(prefix="wabe-") as folder:
            index = make_report([store], Path(folder, "report"))
            async with _half_way(store, task_ids, Path(folder)) as address:
                await _film(browser, address, index, shown, steps, film)
        await browser.close()


def main() -> None:
    """Film the run that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a finished run, or its id")
    parser.add_argument("--task", help="whose steps to show (default: the first that failed)")
    parser.add_argument("--output", type=Path, default=Path("docs/images/run.webp"))
    options = parser.parse_args()
    asyncio.run(_film_run(resolve_run(options.run, Path(".output")), options.task, options.output))


if __name__ == "__main__":
    main()
