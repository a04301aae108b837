"""A scripted browser on the page for people, in a run of the command: every kind of gesture reaches the judge."""

import json
import re
from pathlib import Path

import pytest

from helpers.browser.pages import open_browser, violations, watched_page
from helpers.play_page import Hand, address_of_the_page, play
from helpers.runner.commands import BIN, command
from judge.plugins.play_page.desk import BY_PROGRAM
from judge.store import load_trajectory

pytestmark = [pytest.mark.e2e, pytest.mark.own_browser]
TASKS = ("lisbon_hours", "change_of_mind")


async def test_what_is_done_on_the_page_is_played_recorded_and_judged(tmp_path: Path) -> None:
    chosen = [word for task in TASKS for word in ("--task", task)]
    run = ("run", "demo", "--agent", "human", "--display", "plain", "--output-dir", str(tmp_path / "out"), *chosen)
    with command(tmp_path / "tmp", BIN / "wabe", *run) as running:
        # Axe is brought into the page, which the page's own policy forbids.
        async with open_browser() as browser, watched_page(browser, bypass_csp=True) as watched:
            hand = Hand(watched.page)
            await hand.open(address_of_the_page(running))
            await watched.page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
            for width in (1280, 390):
                await watched.page.set_viewport_size({"width": width, "height": 800})
                assert await violations(watched.page) == []
                wide = await watched.page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width
            # The first task on a phone's width, the other one on a desk's.
            await play(hand, TASKS[0])
            await watched.page.set_viewport_size({"width": 1280, "height": 800})
            await play(hand, TASKS[1])
            text = await watched.page.locator("body").inner_text()
            assert not re.search(r"success|failure|passed|verdict", text, re.IGNORECASE)
            assert watched.troubles == []
        completed = running.end()
    assert completed.code == 0, completed.stdout + completed.stderr
    (results,) = (tmp_path / "out").glob("runs/*/results.json")
    entries = json.loads(results.read_text())["results"][0]["detail"]["tasks"]
    assert {each["task_id"]: each["verdict"] for each in entries} == dict.fromkeys(TASKS, "success")
    steps = load_trajectory(results.parent / "results" / "lisbon_hours").steps
    lines = [step.outcome.line for step in steps if step.outcome]
    assert lines == ["<Stores link> -> CLICK", "<City combobox> -> SELECT: Lisbon", "<page> -> FINISH"]
    # A scripted browser is not a person.
    assert {step.action.thought for step in steps if step.action} == {BY_PROGRAM}
