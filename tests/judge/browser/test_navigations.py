"""The record of where a browser went. A real browser's is in `test_requests.py`."""

import subprocess
from pathlib import Path

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


MANY_REQUESTS = """
    const { default: record } = require(process.argv[1]);
    const request = url => ({
        url: () => url, isNavigationRequest: () => true, redirectedFrom: () => null,
        frame: () => ({ parentFrame: () => null })
    });
    (async () => {
        for (const count of [2100, 1]) {
            const context = new (require("events"))();
            await record({ page: { context: () => context } });
            for (let n = 0; n < count; n++) context.emit("request", request("http://a/"));
        }
    })();"""


def test_the_limit_of_lines_is_that_of_one_task(tmp_path: Path) -> None:
    node, _ = compute_driver_executable()
    subprocess.run([node, "-e", MANY_REQUESTS, str(RECORDER)], cwd=tmp_path, check=True)
    assert len((tmp_path / "navigations.jsonl").read_text().splitlines()) == 2000 + 1
