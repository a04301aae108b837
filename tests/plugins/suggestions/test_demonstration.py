"""A scripted browser demonstrates a task on the page for people, with `wabe tasks record`."""

import re
import sys
from pathlib import Path

import pytest

from helpers.browser.pages import open_browser, watched_page
from helpers.paths import ROOT
from helpers.play_page import Hand, address_of_the_page
from helpers.ports import free_port
from helpers.runner.commands import BIN, command, run_command
from judge.scenario.toml import load_scenario
from participants.replay import parse_scripts

pytestmark = [pytest.mark.e2e, pytest.mark.own_browser]


@pytest.mark.nightly
async def test_a_demonstration_becomes_a_scenario_whose_script_passes_its_checks(tmp_path: Path) -> None:
    pytest.importorskip("judge.plugins.play_page")
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
