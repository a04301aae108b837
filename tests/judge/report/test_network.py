"""An attempt's requests in its report."""

import re
from pathlib import Path
from typing import Any

import pytest

from helpers.results import A_TRACE, a_finished_run, a_result, a_step
from helpers.trajectory.recordings import SHOP, RecordedRequest
from judge.records.tasks import Task
from judge.report.build import make_report
from judge.store.layout import RunStore
from judge.trajectory.console import write_console
from judge.trajectory.network import HELD_KEY, LeftOut, write_har
from judge.trajectory.redaction import Redaction

HOSTILE = "/x?<script>alert(1)</script>\u202e"


def report(folder: Path, *entries: tuple[int, RecordedRequest], dropped: int = 0) -> tuple[Path, str]:
    """The report's folder, and the page of its only task, whose trace holds requests of steps."""
    task = Task(task_id="t1", website=f"{SHOP}/", task="Find it.")
    store = a_finished_run(folder, a_result("t1", task=task, network=A_TRACE))
    har = [one.har_entry(step) for step, one in entries]
    left_out = [LeftOut(is_own=True, count=dropped)] if dropped else []
    write_har(store.task("t1").folder, har, Redaction(salt=b"").entry, left_out=left_out, versions={})
    return write_report(store, folder)


def write_report(store: RunStore, folder: Path) -> tuple[Path, str]:
    root = make_report([store], folder / "report").parent
    return root, (root / "tasks" / "t1.html").read_text()


def rows(page: str) -> list[list[str]]:
    """The lines of the requests: method, address, status, type and time."""
    matches = re.findall(r'<ul class="requests">.*?</ul>', page, re.DOTALL)
    lines = [line for part in matches for line in re.findall(r"<summary>(.*?)</summary>", part)]
    return [[text.replace("\xa0", " ") for text in re.findall(r">([^<>]+)<", line) if text.strip()] for line in lines]


def test_a_held_request_is_shown_as_such(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1", network=A_TRACE))
    entry = RecordedRequest(path="https://pay.test/pay").har_entry(1) | {HELD_KEY: True}
    write_har(store.task("t1").folder, [entry], Redaction(salt=b"").entry, versions={})
    ((_, _, status, *_),) = rows(write_report(store, tmp_path)[1])
    assert status == "200 (held)"


def test_requests_are_listed_with_the_step_that_caused_them(tmp_path: Path) -> None:
    _, page = report(
        tmp_path,
        (0, RecordedRequest(method="GET", path="/")),
        (1, RecordedRequest(path="/api/cart?a=1", status=422)),
        (2, RecordedRequest(path="https://pay.test/pay", status=0)),
    )
    one, two = page.index('id="step-1"'), page.index('id="step-2"')
    network = page.index('id="network"')
    assert rows(page[one:two]) == [["POST", "/api/cart?a=1", "422", "fetch", "5 ms"]]
    assert rows(page[two:network]) == [["POST", "https://pay.test/pay", "no answer", "fetch", "5 ms"]]
    assert rows(page[network:]) == [["GET", "/", "200", "fetch", "5 ms"]]


def test_the_file_is_linked_and_lies_in_the_report(tmp_path: Path) -> None:
    root, page = report(tmp_path, (1, RecordedRequest()))
    (target,) = re.findall(r'href="([^"]*network\.har)"', page)
    original = tmp_path / "runs" / "run-1" / "results" / "t1" / "network.har"
    assert (root / "tasks" / target).read_bytes() == original.read_bytes()


def test_what_pages_request_is_escaped(tmp_path: Path) -> None:
    _, page = report(tmp_path, (1, RecordedRequest(path=HOSTILE, method="<b>")))
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_many_requests_of_a_step_are_counted(tmp_path: Path) -> None:
    _, page = report(tmp_path, *[(1, RecordedRequest())] * 250, dropped=9)
    assert len(rows(page)) == 200
    assert "network.har has 50 more." in page
    assert "250 requests after this action" in page
    assert "at least 9 more requests went unrecorded" in page


@pytest.mark.parametrize("damage", ["missing", "not HAR", "link"])
def test_an_unreadable_trace_is_reported(tmp_path: Path, damage: str) -> None:
    store = a_finished_run(tmp_path, a_result("t1", network=A_TRACE))
    path = store.task("t1").folder / "network.har"
    path.unlink()
    if damage == "not HAR":
        path.write_text("{}")
    elif damage == "link":
        path.symlink_to(tmp_path / "elsewhere.har")
    _, page = write_report(store, tmp_path)
    assert "No requests were recorded." in page
    assert "network.har: " in page
    assert 'href="../images' not in page


def test_a_lost_trace_is_reported_with_the_reason(tmp_path: Path) -> None:
    why = "the browser was killed or crashed: its network trace is lost"
    result = a_result("t1", "environment_fault", steps=(a_step(0),), error=why, blame="browser", network_missing=why)
    _, page = write_report(a_finished_run(tmp_path, result), tmp_path)
    assert "No requests were recorded." in page
    assert page.count(why) >= 2


def test_a_run_of_an_older_version_has_no_such_section(tmp_path: Path) -> None:
    _, page = write_report(a_finished_run(tmp_path, a_result("t1")), tmp_path)
    assert 'id="network"' not in page


def test_headers_and_bodies_are_shown_with_their_request(tmp_path: Path) -> None:
    request = RecordedRequest(
        path="/api/cart", post='{"sku": "D-1"}', headers={"X-Shop": "<b>"}, response='{"total": 3}', status=200
    )
    _, page = report(tmp_path, (1, request), (1, RecordedRequest(is_cut=True)))
    for text in ("X-Shop: &lt;b&gt;", "&#34;sku&#34;: &#34;D-1&#34;", "&#34;total&#34;: 3", "too large to be recorded"):
        assert text in page


def test_a_report_without_contents_shows_neither_headers_and_bodies_nor_the_console(tmp_path: Path) -> None:
    request = RecordedRequest(path="/api/cart", post='{"sku": "D-1"}', headers={"X-Shop": "one"})
    report(tmp_path, (1, request))
    store = RunStore(tmp_path, "run-1")
    write_console(store.task("t1").folder, [{"step": 1, "level": "log", "text": "said"}], str)
    page = (make_report([store], tmp_path / "ci", contents=False).parent / "tasks" / "t1.html").read_text()
    assert rows(page) == [["POST", "/api/cart", "200", "fetch", "5 ms"]]
    assert not [text for text in ("X-Shop", "D-1", "said<") if text in page]
    assert "left out of reports that are made in CI" in page


def test_long_bodies_are_cut(tmp_path: Path) -> None:
    long = RecordedRequest(post="x" * 10_000, mime_type="text/plain")
    _, page = report(tmp_path, *[(1, long)] * 3)
    assert page.count("network.har has 6000 more characters") == 3


def test_console_messages_are_listed_with_their_step_and_escaped(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1"))
    messages: list[dict[str, Any]] = [
        {"step": 0, "level": "log", "text": "ready"},
        {"step": 1, "level": "uncaught", "text": "<script>alert(1)</script>", "url": "http://a.test/a.js", "line": 4},
        {"step": 2, "level": "warning", "text": "slow"},
        {"step": 2, "dropped": 7},
    ]
    write_console(store.task("t1").folder, messages, str)
    _, page = write_report(store, tmp_path)
    one, two = page.index('id="step-1"'), page.index('id="step-2"')
    assert "&lt;script&gt;alert(1)" in page[one:two]
    assert "http://a.test/a.js:4" in page[one:two]
    assert "slow" in page[two:]
    assert "<script>alert" not in page
    assert "At least 7 more console messages went unrecorded." in page
    assert "Console messages of the first page" in page
