"""A scripted browser on the page for people, in a run of the command: every kind of gesture reaches the judge."""

import json
import re
import sys
from pathlib import Path

import pytest

from helpers.browser.pages import open_browser, serious_violations, watched_page
from helpers.paths import ROOT
from helpers.play_page import Hand, play
from helpers.ports import free_port
from helpers.runner.commands import BIN, RunningCommand, command, run_command
from judge.scenario.toml import load_scenario
from judge.store import load_trajectory
from participants.play_page.desk import BY_PROGRAM
from participants.replay import parse_scripts

pytestmark = [pytest.mark.e2e, pytest.mark.own_browser]
TASKS = ("lisbon_hours", "change_of_mind")


def address_of_the_page(running: RunningCommand) -> str:
    """Where the command says that a person plays, once the participant is there."""
    assert running.process.stdout is not None
    page, text = "", ""
    for line in running.process.stdout:
        text += line
        page = match[1] if (match := re.search(r"open (http://\S+/play)", line)) else page
        if page and "Assessment" in line:
            return page
    raise AssertionError(text)


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
                assert await serious_violations(watched.page) == []
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


async def test_a_demonstration_becomes_a_scenario_whose_script_passes_its_checks(tmp_path: Path) -> None:
    port, folder, runs = free_port(), tmp_path / "rug", tmp_path / "out"
    site = [sys.executable, str(ROOT / "scenarios" / "demo" / "site.py"), "--port", str(port)]
    address, text = f"http://127.0.0.1:{port}/", "Add one 'Tide Wool Rug' to the cart, and open the cart."
    record = ("tasks", "record", address, "--task", text, "--id", "rug", "-o", str(folder), "--output-dir", str(runs))
    with command(tmp_path / "site", *site), command(tmp_path / "tmp", BIN / "wabe", *record) as running:
        async with open_browser() as browser, watched_page(browser) as watched:
            hand = Hand(watched.page)
            await hand.open(address_of_the_page(running))
            # To and fro, which has an effect; a key that has none.
            await hand.press_act("link", "Tide Wool Rug")
            await hand.acts(watched.page.get_by_role("button", name="ArrowLeft").click())
            await hand.click("button", "Add to cart")
            await hand.click("link", "Go to cart")
            await hand.finish("The rug is in the cart.")
        finished = running.end()
        assert finished.code == 0, finished.stdout + finished.stderr
        assert not re.search(r"unscored|incomplete|0\.0 %|retry", finished.stdout + finished.stderr)
        (store,) = (runs / "runs").iterdir()
        again = ("tasks", "script", str(store), "--task", "rug", "--scenario", str(folder / "scenario.toml"))
        output = tmp_path / "again.toml"
        completed = run_command(tmp_path / "tmp", BIN / "wabe", *again, "-o", output)
    assert completed.code == 0, completed.stdout + completed.stderr
    scenario = load_scenario(folder / "scenario.toml")
    (task,) = scenario.tasks
    assert (task.task_id, task.website, task.task, task.reference) == ("rug", address, text, "replay.toml")
    assert "Cart (1)" in (folder / "scenario.toml").read_text()
    (script,) = parse_scripts((folder / "replay.toml").read_text(), "replay.toml")
    assert [str(step.element) for step in script.steps[:-1]] == [
        'link "Tide Wool Rug"',
        'button "Add to cart"',
        'link "Go to cart"',
    ]
    assert parse_scripts(output.read_text(), "again.toml") == (script,)
