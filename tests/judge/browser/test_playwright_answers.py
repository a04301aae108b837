"""What the browser makes of the server's answers that no test can bring about at will."""

import asyncio
import base64
import errno
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult, TextContent

from judge.browser import processes
from judge.browser.chromium import BrowserSettings
from judge.browser.installed import FoundBrowser
from judge.browser.mcp_server import McpServer
from judge.browser.playwright import PlaywrightBrowser
from judge.config import RunConfig
from judge.network.guard import Guard
from shared.errors import BrowserFault, EnvironmentFault, InternalFault, SiteUnreachable
from shared.models import Notice

SITE = "http://a.example/"


def answer(text: str = "", *, ok: bool = True) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], isError=not ok)


def own(result: object) -> CallToolResult:
    """The answer to the judge's own code: it ends with an error, which is answered at once."""
    return answer(f"### Error\nError: wabe: {json.dumps(result)}", ok=False)


def settled(*downloads: str, **changes: Any) -> CallToolResult:
    """The report of a page that came to rest."""
    document = {"type": "text/html", "has_body": True, "is_loading": False}
    report = {
        "real_ms": 1,
        "page_ms": 0,
        "waited_for": [],
        "vanished": [],
        "downloads": downloads,
        "closed_tabs": 0,
        "lost": None,
    }
    flags = dict.fromkeys(("stopped", "silent", "lost_document", "restless", "has_chooser"), False)
    return own({**report, **flags, "document": document, **changes})


def beside(*, image: str | None = "/9j/4AAQ", origins: int = 1) -> CallToolResult:
    """What belongs to the snapshot of a page with one line."""
    origin = SITE.rstrip("/")
    document = {"is_main": True, "address": SITE, "address_origin": origin, "origin": origin, "refs": "", "count": 1}
    return own({"documents": [document], "image": image, "origins": origins})


def page(url: str = SITE, *, tabs: Sequence[str] = (), after: str = "") -> CallToolResult:
    listed = "".join(f"{line}\n" for line in ("### Open tabs", *tabs)) if tabs else ""
    return answer(f"{listed}### Page\n- Page URL: {url}\n### Snapshot\n```yaml\n- text: x\n```{after}")


CODE = "browser_run_code_unsafe"


class Client:
    """An MCP client that answers each tool from a list of its own, each answer after `delay_s`."""

    def __init__(self, answers: dict[str, list[CallToolResult]], delay_s: float) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        # What belongs to each snapshot, if it is not a screenshot as usual.
        self.beside: list[CallToolResult] = []
        self._answers = answers
        self._delay_s = delay_s

    async def call_tool(self, tool: str, params: dict[str, Any]) -> CallToolResult:
        self.calls.append((tool, params))
        await asyncio.sleep(self._delay_s)
        if tool == CODE and ".beside(page" in params["code"]:
            return self.beside.pop(0) if self.beside else beside()
        # The judge's own code, such as settling, reports nothing unless a test says so.
        return answer() if tool == CODE and tool not in self._answers else self._answers[tool].pop(0)


class Connected(PlaywrightBrowser):
    """A browser whose server is such a client."""

    def __init__(self, folder: Path, *, delay_s: float = 0.0, call_timeout_s: float = 60.0, **answers: Any) -> None:
        browser = FoundBrowser(path=folder, source="test", sandbox=True, sandbox_reason="test")
        settings = BrowserSettings(found=browser, config=RunConfig())
        config = settings.config.model_copy(update={"call_timeout_s": call_timeout_s})
        server = McpServer(settings.model_copy(update={"config": config}), folder)
        self.client = Client(answers, delay_s)
        server._ready.set_result(self.client)  # type: ignore[arg-type]
        self.server = server
        super().__init__(server, tools=())


def watchable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """This process passes for the browser's own."""
    me = processes.Process(os.getpid(), os.getppid(), os.getpgrp(), f"chromium --user-data-dir={folder}/profile")
    monkeypatch.setattr(processes, "list_processes", lambda: [me])
    monkeypatch.setattr(processes, "family", lambda *_: [me])


async def test_without_a_process_to_watch_a_page_that_went_blank_is_a_fault(tmp_path: Path) -> None:
    browser = Connected(tmp_path, browser_snapshot=[page(), page("about:blank")])
    await browser.open(SITE)
    await browser.observe()
    with pytest.raises(BrowserFault, match="relaunched"):
        await browser.observe()


async def test_with_a_process_to_watch_a_page_may_go_blank_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchable(monkeypatch, tmp_path)
    browser = Connected(tmp_path, browser_snapshot=[page(), page("about:blank")])
    browser.server.watch()
    await browser.open(SITE)
    await browser.observe()
    assert (await browser.observe()).url == "about:blank"


class NoConnection(Guard):
    """A guard that could not connect to the site."""

    def __init__(self, failure: OSError | None) -> None:
        super().__init__(None, 0)
        self._failure = failure

    def failure_at(self, url: str) -> OSError | None:
        return self._failure if url == SITE else None


@pytest.mark.parametrize(
    ("text", "failure", "fault", "words"),
    [
        ("goto: net::ERR_CERT_INVALID at x", None, SiteUnreachable, "cannot be reached: net::ERR_CERT_INVALID$"),
        (
            "waitForLoadState: Timeout 4888.45ms exceeded.",
            None,
            SiteUnreachable,
            "cannot be reached: Timeout 4888.45ms",
        ),
        (
            "goto: net::ERR_EMPTY_RESPONSE",
            OSError(1, "no such name"),
            SiteUnreachable,
            "cannot be reached: no such name$",
        ),
        ("goto: net::ERR_EMPTY_RESPONSE", OSError(errno.EMFILE, "too many files"), InternalFault, "too many files$"),
    ],
    ids=["refused by the browser", "not loaded in time", "not connected to", "no descriptor left"],
)
async def test_a_first_page_that_does_not_open_names_the_cause(
    tmp_path: Path, text: str, failure: OSError | None, fault: type[EnvironmentFault], words: str
) -> None:
    answers = [answer(), answer(f"### Error\nError: page.{text}", ok=False)]
    browser = Connected(tmp_path, browser_run_code_unsafe=answers)
    browser._guard = NoConnection(failure)
    with pytest.raises(EnvironmentFault) as caught:
        await browser.open(SITE)
    assert type(caught.value) is fault
    assert re.search(words, caught.value.message)


async def test_an_unreadable_answer_is_a_fault(tmp_path: Path) -> None:
    browser = Connected(tmp_path, browser_snapshot=[answer("nothing of the kind")])
    with pytest.raises(BrowserFault, match="unreadable answer"):
        await browser.observe()


async def test_a_page_whose_status_is_crashed_is_an_empty_tab_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchable(monkeypatch, tmp_path)
    crashed = answer(f"### Page\n- Page URL: {SITE}\n- Page status: crashed\n### Snapshot\n```yaml\n\n```")
    browser = Connected(
        tmp_path,
        browser_run_code_unsafe=[answer(), answer(), answer(), settled(), settled(lost="crashed")],
        browser_snapshot=[crashed, page("about:blank")],
    )
    browser.server.watch()
    await browser.open(SITE)
    observation = await browser.observe()
    assert (observation.url, observation.notice) == ("about:blank", Notice(code="tab_crashed"))


async def test_a_screenshot_that_is_not_base64_is_a_fault(tmp_path: Path) -> None:
    browser = Connected(tmp_path, browser_snapshot=[page()])
    browser.client.beside = [beside(image="*")]
    with pytest.raises(BrowserFault, match="decoded"):
        await browser.observe()


async def test_a_page_that_moves_on_during_a_snapshot_is_observed_again(tmp_path: Path) -> None:
    moved = answer("### Error\nError: Execution context was destroyed", ok=False)
    browser = Connected(tmp_path, browser_snapshot=[moved, page()])
    assert (await browser.observe()).url == SITE


async def test_a_page_that_goes_to_another_site_while_it_is_recorded_is_observed_again(tmp_path: Path) -> None:
    items = [page(SITE), page("http://b.example/")]
    browser = Connected(tmp_path, browser_snapshot=items)
    browser.client.beside = [beside(origins=2), beside(origins=1)]
    assert (await browser.observe()).url == "http://b.example/"


LATE = answer("### Error\nTimeoutError: browserBackend.callTool: Timeout 5000ms exceeded.", ok=False)


async def test_a_page_whose_screenshot_times_out_twice_is_observed_without_one(tmp_path: Path) -> None:
    browser = Connected(tmp_path, browser_snapshot=[page(), page()])
    browser.client.beside = [beside(image=None), beside(image=None)]
    observation = await browser.observe()
    assert (observation.url, observation.snapshot, observation.screenshot) == (SITE, "- text: x", None)
    assert observation.notice == Notice(code="no_screenshot")


NOTHING = {"url": SITE, "title": "Odd", "image": None}


async def test_a_page_whose_snapshot_times_out_is_observed_without_one(tmp_path: Path) -> None:
    browser = Connected(
        tmp_path,
        browser_run_code_unsafe=[settled(), own(NOTHING)],
        browser_snapshot=[LATE],
        browser_tabs=[answer(f"### Result\n- 0: (current) [Odd]({SITE})")],
    )
    observation = await browser.observe()
    assert (observation.url, observation.title, observation.snapshot) == (SITE, "Odd", "")
    assert observation.notice == Notice(code="no_snapshot")


async def test_a_document_without_a_body_is_not_asked_for_a_snapshot(tmp_path: Path) -> None:
    picture = base64.b64encode(b"\xff\xd8").decode()
    drawing = settled(document={"type": "image/svg+xml", "has_body": False, "is_loading": False})
    browser = Connected(
        tmp_path,
        browser_run_code_unsafe=[drawing, own({**NOTHING, "image": picture})],
        browser_tabs=[answer(f"### Result\n- 0: (current) [Odd]({SITE})")],
    )
    observation = await browser.observe()
    assert (observation.snapshot, observation.screenshot) == ("", b"\xff\xd8")
    assert observation.notice == Notice(code="cannot_be_shown", kind="svg")


async def test_a_page_that_never_answers_is_replaced_by_an_empty_tab(tmp_path: Path) -> None:
    browser = Connected(
        tmp_path,
        browser_run_code_unsafe=[settled(silent=True), own(1)],
        browser_tabs=[answer()],
        browser_snapshot=[page("about:blank")],
    )
    observation = await browser.observe()
    assert (observation.url, observation.notice) == ("about:blank", Notice(code="tab_busy"))
    assert ("browser_tabs", {"action": "select", "index": 1}) in browser.client.calls


async def test_a_tab_that_cannot_be_replaced_is_a_fault(tmp_path: Path) -> None:
    browser = Connected(
        tmp_path,
        browser_run_code_unsafe=[settled(silent=True), *[answer(ok=False)] * 4],
        browser_tabs=[answer(ok=False)] * 2,
        browser_snapshot=[answer("### Error\nno", ok=False)] * 2,
    )
    with pytest.raises(BrowserFault, match="cannot be replaced"):
        await browser.observe()


async def test_a_requested_wait_does_not_count_against_the_timeout(tmp_path: Path) -> None:
    slow = {"delay_s": 0.2, "call_timeout_s": 0.05}
    browser = Connected(tmp_path, browser_wait_for=[answer()], **slow)
    assert (await browser.act("browser_wait_for", {"time": 30})).ok
    unanswered = await Connected(tmp_path, browser_wait_for=[answer()], **slow).act("browser_wait_for", {"text": "x"})
    assert not unanswered.ok
    assert "does not answer" in unanswered.text


async def test_an_action_on_a_crashed_tab_fails(tmp_path: Path) -> None:
    crashed = answer("### Error\nError: browserBackend.callTool: Target crashed ", ok=False)
    result = await Connected(tmp_path, browser_click=[crashed]).act("browser_click", {"target": "e1"})
    assert (result.ok, result.text) == (False, "the tab crashed")


async def test_the_first_fault_is_final(tmp_path: Path) -> None:
    browser = Connected(tmp_path, browser_snapshot=[answer("nothing of the kind")])
    for _ in range(2):
        with pytest.raises(BrowserFault, match="unreadable answer"):
            await browser.observe()
    calls = len(browser.client.calls)
    with pytest.raises(BrowserFault, match="unreadable answer"):
        await browser.act("browser_click", {"target": "e1"})
    assert len(browser.client.calls) == calls


async def test_a_participant_cannot_feign_a_crash(tmp_path: Path) -> None:
    feigned = answer("### Error\nError: Ref Target crashed not found in the current page snapshot.", ok=False)
    browser = Connected(tmp_path, browser_click=[feigned])
    assert not (await browser.act("browser_click", {"target": "Target crashed"})).ok


async def test_a_download_is_reported_by_name_with_the_action_or_with_the_next_observation(tmp_path: Path) -> None:
    browser = Connected(
        tmp_path,
        browser_click=[answer(), answer("### Error\nError: no", ok=False), answer()],
        browser_run_code_unsafe=[settled("report.pdf"), settled("late file.csv"), settled()],
        browser_snapshot=[page(), page(), page()],
    )
    click = ("browser_click", {"target": "e1"})
    assert (await browser.act(*click)).downloads == ("report.pdf",)
    assert (await browser.observe()).downloads == ()
    assert (await browser.act(*click)).downloads == ()
    assert (await browser.observe()).downloads == ("late file.csv",)
    assert (await browser.act(*click)).downloads == ()
    assert (await browser.observe()).downloads == ()


@pytest.mark.parametrize(
    ("direction", "delta"), [("down", (0, 7)), ("up", (0, -7)), ("left", (-7, 0)), ("right", (7, 0))]
)
async def test_a_scroll_turns_the_wheel_over_the_middle_of_the_page(
    tmp_path: Path, direction: str, delta: tuple[int, int]
) -> None:
    browser = Connected(tmp_path, browser_mouse_move_xy=[answer()], browser_mouse_wheel=[answer(), answer()])
    await browser.act("browser_scroll", {"direction": direction, "amount": 7})
    assert browser.client.calls[:2] == [
        ("browser_mouse_move_xy", {"x": 640, "y": 360}),
        ("browser_mouse_wheel", {"deltaX": delta[0], "deltaY": delta[1]}),
    ]


UNANSWERED = """### Error
TimeoutError: locator.click: Timeout 5000ms exceeded.
Call log:
\x1b[2m  - waiting for locator('aria-ref=e5')\x1b[22m
\x1b[2m    - locator resolved to <button>Pay</button>\x1b[22m
\x1b[2m  - attempting click action\x1b[22m
\x1b[2m    - waiting for element to be visible, enabled and stable\x1b[22m
"""
PREVENTED = "### Error\nError: The element cannot be used: <dialog> covers it"


@pytest.mark.parametrize(
    ("params", "after", "share", "has_acted", "calls"),
    [
        ({"target": "e5"}, "", 1, False, 2),
        ({"target": "e5"}, "    - element is not stable\n", 1, False, 1),
        ({"target": "e5"}, "    - element is not stable\n", 0.05, False, 2),
        ({"target": "e5"}, PREVENTED, 1, False, 1),
        ({"target": "e5"}, PREVENTED, 0.05, False, 2),
        ({"target": "e5"}, "    - performing click action\n", 0.05, True, 1),
        ({"startTarget": "e5", "endTarget": "e6"}, "", 0.05, False, 1),
    ],
)
async def test_an_action_is_retried_if_the_page_did_not_answer_or_the_machine_starved_before_it_began(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    params: dict[str, str],
    after: str,
    share: float,
    has_acted: bool,
    calls: int,
) -> None:
    text = after if after == PREVENTED else UNANSWERED + after
    monkeypatch.setattr("judge.browser.playwright.cpu_share", lambda: share)
    monkeypatch.setattr("judge.browser.downloads.DownloadLog.has_acted", lambda *_, **__: has_acted)
    browser = Connected(tmp_path, browser_click=[answer(text, ok=False), answer("### Result\nDone")])
    result = await browser.act("browser_click", params)
    assert [tool for tool, _ in browser.client.calls].count("browser_click") == calls
    assert result.ok is (calls == 2)
