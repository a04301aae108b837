"""A scripted browser plays five demo tasks on the page for people: `python benchmarks/human_page.py [--images DIR]`.

It shows that the page works. A scripted browser is not a person, so these are not results of people.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from helpers.browser.pages import open_browser, watched_page
from helpers.play_page import TASKS, Hand, play
from helpers.runner.commands import BIN

_ADDRESS = re.compile(r"open (http://\S+/play)")


async def main() -> int:
    """Print each task with its steps, verdict and time; 0 if all of them are successes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, help="where to write pictures of the page")
    images = parser.parse_args().images
    with TemporaryDirectory() as folder:
        tasks = [word for task_id in TASKS for word in ("--task", task_id)]
        command = ["run", "demo", "--agent", "human", "--display", "plain", "--output-dir", folder, *tasks]
        process = await asyncio.create_subprocess_exec(
            BIN / "wabe", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            address = await _address(process)
            times = await _measure(address, images)
            rest, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.communicate()
        print(rest.decode()[-400:])
        results = json.loads(next(Path(folder).glob("runs/*/results.json")).read_text())["results"][0]["detail"][
            "tasks"
        ]
    for task in results:
        print(
            f"{task['task_id']:<24} {task['verdict']:<8} {task['steps_taken']} replies, {times[task['task_id']]:.1f} s"
        )
    success_count = sum(task["verdict"] == "success" for task in results)
    print(f"{success_count} of {len(TASKS)} tasks are successes")
    return 0 if success_count == len(TASKS) else 1


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async for line in process.stdout:
        print(line.decode(), end="")
        if match := _ADDRESS.search(line.decode()):
            return match[1]
    raise RuntimeError("the command ended before it said where to play")


async def _measure(address: str, images: Path | None) -> dict[str, float]:
    times = {}
    async with open_browser() as browser, watched_page(browser) as watched:
        hand = Hand(watched.page)
        for _ in range(600):
            try:
                await watched.page.goto(address)
                break
            except Exception:  # noqa: BLE001
                # The participant is still starting.
                await asyncio.sleep(0.2)
        for number, task_id in enumerate(TASKS):
            await hand.turn()
            if images and number == 1:
                await _pictures(hand, images)
            begun = time.monotonic()
            await play(hand, task_id)
            times[task_id] = time.monotonic() - begun
        assert watched.troubles == [], watched.troubles
    return times


async def _pictures(hand: Hand, images: Path) -> None:
    page = hand.page
    images.mkdir(parents=True, exist_ok=True)
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await page.mouse.move(*await hand.point("link", "Desks"))
            await page.wait_for_timeout(500)
            await page.screenshot(path=images / f"play-{width}-{scheme}.png", full_page=True)
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
