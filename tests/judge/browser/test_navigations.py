"""The record of where a browser went. A real browser's is in `test_documents.py`."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from judge.browser.requests import NAVIGATION_RECORDER as RECORDER
from judge.browser.requests import NavigationLog
from judge.browser.session import Hop


def test_a_line_that_is_still_being_written_is_left_for_the_next_call(tmp_path: Path) -> None:
    log, file = NavigationLog(tmp_path), tmp_path / "navigations.jsonl"
    assert log.take() == ()
    file.write_text('{"url": "http://a/", "is_redirect": false}\n{"url": "http://b')
    assert log.take() == (Hop(url="http://a/"),)
    with file.open("a") as stream:
        stream.write('/", "is_redirect": true}\n')
    assert log.take() == (Hop(url="http://b/", is_redirect=True),)
    assert log.take() == ()


# A browser context with one page, in which a test's code makes requests.
RECORDED = """
    const { default: record } = require(process.argv[1]);
    const Emitter = require("events");
    const opened = async () => {
        const browser = Object.assign(new Emitter(), { isConnected: () => true });
        const context = Object.assign(new Emitter(), { browser: () => browser });
        const page = Object.assign(new Emitter(), { context: () => context, url: () => "about:blank" });
        page.goBack = () => {};
        page.goto = url => { page.meanwhile?.(); request(url); };
        const frameIn = parent => ({ page: () => page, parentFrame: () => parent, url: () => "about:blank" });
        const main = frameIn(null);
        page.mainFrame = () => main;
        const request = (url, frame = main) => context.emit("request", {
            url: () => url, isNavigationRequest: () => true, redirectedFrom: () => null, headers: () => ({}),
            frame: () => frame
        });
        await record({ page });
        return { page, main, frameIn, request };
    };
    (async () => { %s })();"""


def recorded(folder: Path, code: str) -> list[dict[str, Any]]:
    node, _ = compute_driver_executable()
    subprocess.run([node, "-e", RECORDED % code, str(RECORDER)], cwd=folder, check=True)
    return [json.loads(line) for line in (folder / "navigations.jsonl").read_text().splitlines()]


def test_the_limit_of_lines_is_that_of_one_task(tmp_path: Path) -> None:
    lines = recorded(
        tmp_path,
        """for (const count of [2100, 1]) {
            const { request } = await opened();
            for (let n = 0; n < count; n++) request("http://a/");
        }""",
    )
    assert len(lines) == 2000 + 1


def test_a_flood_of_frames_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    lines = recorded(
        tmp_path,
        """const { main, frameIn, request } = await opened();
        for (let n = 0; n < 21000; n++) request("http://a/", frameIn(main));""",
    )
    assert len(lines) == 20_001
    assert lines[-1] == {"event": "overflow"}


def test_an_address_that_the_participant_names_is_recorded_after_any_flood(tmp_path: Path) -> None:
    lines = recorded(
        tmp_path,
        """const { page, request } = await opened();
        for (let n = 0; n < 2100; n++) request("http://a/");
        await page.goto("http://a/named");""",
    )
    assert [(line.get("cause"), line["url"]) for line in lines[-2:]] == [("goto", "http://a/named")] * 2


def test_while_the_server_opens_an_address_a_page_that_goes_elsewhere_is_not_taken_for_it(tmp_path: Path) -> None:
    lines = recorded(
        tmp_path,
        """const { page, request } = await opened();
        page.meanwhile = () => request("http://b/");
        await page.goto("http://a/named");""",
    )
    assert [line.get("cause") for line in lines] == ["goto", None, "goto"]


@pytest.mark.parametrize("length", [1990, 2100, 50_000])
def test_two_long_addresses_are_never_taken_for_the_same(tmp_path: Path, length: int) -> None:
    lines = recorded(
        tmp_path,
        f"""const {{ request }} = await opened();
        for (const end of ["1", "2", "2#fragment"]) request("http://a/" + "x".repeat({length}) + end);""",
    )
    first, second, third = (line["url"] for line in lines)
    assert first != second == third
    assert len(first) < 2100
