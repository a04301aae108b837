"""What the browser edge makes of a server's answers that no test can bring about at will."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.browser.pages import Answer, McpBrowser
from shared.errors import BrowserFault, SiteFault

SHOT = Answer(ok=True, text="### Result", image="/9j/4AAQ")
SITE = "http://a.example/"


def page(url: str = SITE, *, tabs: Sequence[str] = (), after: str = "") -> Answer:
    listed = "".join(f"{line}\n" for line in ("### Open tabs", *tabs)) if tabs else ""
    text = f"{listed}### Page\n- Page URL: {url}\n### Snapshot\n```yaml\n- text: x\n```{after}"
    return Answer(ok=True, text=text)


class Server:
    """Answers each tool from a list of its own."""

    def __init__(self, folder: Path, **answers: list[Answer]) -> None:
        self.folder = folder
        self.is_watched = False
        self.calls: list[tuple[str, dict[str, Any], float]] = []
        self._answers = answers

    async def call(self, tool: str, params: dict[str, Any], *, extra_s: float = 0.0) -> Answer:
        self.calls.append((tool, params, extra_s))
        return self._answers[tool].pop(0)

    def watch(self) -> None:
        self.is_watched = True

    def fail(self, message: str) -> BrowserFault:
        return BrowserFault(message)


def browser_over(server: Server) -> McpBrowser:
    return McpBrowser(server, tools=(), versions={}, viewport=(1280, 720), hidden=())


async def test_without_a_process_to_watch_a_page_that_went_blank_is_a_fault(tmp_path: Path) -> None:
    server = Server(tmp_path, browser_snapshot=[page(), page("about:blank")], browser_take_screenshot=[SHOT, SHOT])
    browser = browser_over(server)
    await browser.observe()
    with pytest.raises(BrowserFault, match="relaunched"):
        await browser.observe()


async def test_with_a_process_to_watch_a_page_may_go_blank_by_itself(tmp_path: Path) -> None:
    server = Server(tmp_path, browser_snapshot=[page(), page("about:blank")], browser_take_screenshot=[SHOT, SHOT])
    server.watch()
    browser = browser_over(server)
    await browser.observe()
    assert (await browser.observe()).url == "about:blank"


async def test_a_page_that_opens_tabs_without_end_is_a_fault_of_the_site(tmp_path: Path) -> None:
    tabs = [f"- {index}:{' (current)' if not index else ''} [t]({SITE})" for index in range(200)]
    server = Server(tmp_path, browser_snapshot=[page(tabs=tabs)])
    with pytest.raises(SiteFault, match="tabs"):
        await browser_over(server).observe()


async def test_an_answer_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    server = Server(tmp_path, browser_snapshot=[Answer(ok=True, text="nothing of the kind")])
    with pytest.raises(BrowserFault, match="cannot be read"):
        await browser_over(server).observe()


async def test_a_screenshot_that_is_no_base64_is_a_fault(tmp_path: Path) -> None:
    server = Server(tmp_path, browser_snapshot=[page()], browser_take_screenshot=[Answer(True, "", "*")])
    with pytest.raises(BrowserFault, match="decoded"):
        await browser_over(server).observe()


async def test_a_page_that_moves_on_during_a_snapshot_is_looked_at_again(tmp_path: Path) -> None:
    moved = Answer(ok=False, text="### Error\nError: Execution context was destroyed")
    server = Server(tmp_path, browser_snapshot=[moved, page()], browser_take_screenshot=[SHOT])
    assert (await browser_over(server).observe()).url == SITE


async def test_a_screenshot_that_times_out_twice_means_the_page_hangs(tmp_path: Path) -> None:
    late = Answer(ok=False, text="### Error\nTimeoutError: browserBackend.callTool: Timeout 5000ms exceeded.")
    server = Server(tmp_path, browser_snapshot=[page(), page()], browser_take_screenshot=[late, late])
    with pytest.raises(BrowserFault, match="page hangs"):
        await browser_over(server).observe()


async def test_a_wait_that_was_asked_for_is_given_its_time(tmp_path: Path) -> None:
    server = Server(tmp_path, browser_wait_for=[Answer(ok=True, text="")])
    await browser_over(server).act("browser_wait_for", {"time": 30})
    assert server.calls == [("browser_wait_for", {"time": 30}, 30.0)]


async def test_a_participant_cannot_feign_a_crash(tmp_path: Path) -> None:
    feigned = Answer(ok=False, text="### Error\nError: Ref Target crashed not found in the current page snapshot.")
    server = Server(tmp_path, browser_click=[feigned])
    assert not (await browser_over(server).act("browser_click", {"target": "Target crashed"})).ok


@pytest.mark.parametrize(
    ("direction", "delta"), [("down", (0, 7)), ("up", (0, -7)), ("left", (-7, 0)), ("right", (7, 0))]
)
async def test_a_scroll_turns_the_wheel_over_the_middle_of_the_page(
    tmp_path: Path, direction: str, delta: tuple[int, int]
) -> None:
    done = Answer(ok=True, text="")
    server = Server(tmp_path, browser_mouse_move_xy=[done], browser_mouse_wheel=[done, done])
    await browser_over(server).act("browser_scroll", {"direction": direction, "amount": 7})
    assert [(tool, params) for tool, params, _ in server.calls[:2]] == [
        ("browser_mouse_move_xy", {"x": 640, "y": 360}),
        ("browser_mouse_wheel", {"deltaX": delta[0], "deltaY": delta[1]}),
    ]
