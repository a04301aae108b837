"""The record of what pages write to the console."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from judge.browser.console import ConsoleLog

PAGE = """<title>Shop</title><script>console.warn("slow", 3); setTimeout(() => undefined_function())</script>
    <button onclick="console.log('x'.repeat(5000))">long</button>
    <button onclick="for (let i = 0; i < 3000; i++) console.debug(i)">many</button>"""


@pytest.mark.e2e
async def test_messages_and_uncaught_errors_are_recorded_with_their_step_and_bounded() -> None:
    with hostile_site({"/": PAGE}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            for number, button in enumerate(("long", "many"), 1):
                page = await browser.observe()
                ref = page.snapshot.partition(f'"{button}" [ref=')[2].partition("]")[0]
                browser.begin_step(number)
                await browser.act("browser_click", {"target": ref})
            traffic = browser.traffic()
    assert traffic is not None
    first, error, long, *many = traffic.console
    assert (first["step"], first["level"], first["text"]) == (0, "warning", "slow 3")
    assert first["url"].startswith(site.url)
    assert (error["step"], error["level"]) == (0, "uncaught")
    assert "undefined_function is not defined" in error["text"]
    assert (long["step"], long["text"]) == (1, "x" * 1000)
    assert {each["step"] for each in many} == {2}
    assert [each["text"] for each in many if "text" in each] == [str(number) for number in range(997)]
    assert many[-1]["dropped"] > 1000


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    log, path = ConsoleLog(tmp_path), tmp_path / "console.jsonl"
    message: dict[str, Any] = {"level": "log", "text": "a"}
    path.write_text(json.dumps(message) + "\n")
    log.begin_step(1)
    with path.open("a") as stream:
        stream.write(json.dumps(message)[:5])
    assert log.read() == ({"step": 0, **message},)
    with path.open("a") as stream:
        stream.write(json.dumps(message)[5:] + "\n")
    assert [each["step"] for each in log.read()] == [0, 1]


def test_no_file_means_no_messages(tmp_path: Path) -> None:
    log = ConsoleLog(tmp_path)
    log.begin_step(1)
    assert log.read() == ()
