"""An attempt starts again in real time only where its site is in its first state."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from helpers.episode.one_page_shop import FINISH, OnePageShop, assess_in_shop
from judge.browser.session import ToolResult
from judge.browser.settle import ClockStalled, SettleMode
from judge.episode.episode import Participant
from judge.episode.reset import reset_site
from judge.events import Event, TaskRetried, TaskStarted
from judge.sites import NetworkPolicy
from shared.models import Action, Page, Task, ToolSpec
from shared.protocol import render_reply

SHOP = "https://example.org/"
NAVIGATE = ToolSpec(name="browser_navigate", description="Go", parameters={"properties": {"url": {"type": "string"}}})


class ClockShop(OnePageShop):
    """Its page waits in a loop for the clock."""

    async def open(self, url: str, settle: SettleMode = "real-time") -> None:
        self._settle = settle

    async def observe(self) -> Page:
        if self._settle == "page-time":
            raise ClockStalled
        return await super().observe()


class Finisher:
    async def send(self, text: str, **_: Any) -> str:
        return render_reply(Action(tool="finish", params={"answer": "done"}))


class Trap(ClockShop):
    """It shows its page, but leads to one that waits in a loop for the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = (NAVIGATE, FINISH)

    async def observe(self) -> Page:
        return await OnePageShop.observe(self)

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        raise ClockStalled


class Leader:
    async def send(self, text: str, **_: Any) -> str:
        return render_reply(Action(tool="browser_navigate", params={"url": "https://elsewhere.example/"}))


async def reset_as_configured(task: Task) -> bool:
    return task.website == SHOP


async def assess(
    folder: Path,
    events: list[Event],
    *,
    shop: type[OnePageShop] = ClockShop,
    participant: Participant | None = None,
    **config: Any,
) -> dict[str, Any]:
    settings = {"settle": "page-time", "max_task_retries": 0, **config}
    playing = participant or Finisher()
    (done,) = await assess_in_shop(folder, playing, 1, max_steps=3, shop=shop, events=events, **settings)
    return dict(done.entry)


async def test_an_attempt_on_a_static_site_starts_again_in_real_time_and_costs_no_retry(tmp_path: Path) -> None:
    events: list[Event] = []
    entry = await assess(tmp_path, events, reset=reset_as_configured)
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "real-time")
    assert [event.attempt for event in events if isinstance(event, TaskRetried)] == [1]


async def test_on_any_other_site_it_is_a_fault_of_the_site(tmp_path: Path) -> None:
    entry = await assess(tmp_path, [])
    assert (entry["stop_reason"], entry["settle"]) == ("environment_fault", "page-time")
    assert entry["error"].startswith("site: a script of the page did not end")


async def test_a_retry_for_that_reason_is_in_real_time(tmp_path: Path) -> None:
    events: list[Event] = []
    entry = await assess(tmp_path, events, max_task_retries=1)
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "real-time")
    assert [event.attempt for event in events if isinstance(event, TaskStarted)] == [1, 2]


async def test_a_participant_that_led_the_browser_to_such_a_page_gets_no_other_attempt(tmp_path: Path) -> None:
    events: list[Event] = []
    entry = await assess(tmp_path, events, shop=Trap, participant=Leader(), reset=reset_as_configured)
    assert entry["stop_reason"] == "participant_error"
    assert [event.attempt for event in events if isinstance(event, TaskStarted)] == [1]


@pytest.fixture
def resets() -> Iterator[tuple[str, list[str]]]:
    posted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.path)
            self.send_response(204 if self.path == "/reset" else 500)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    server.server_close()


async def test_a_site_is_reset_by_a_post(resets: tuple[str, list[str]]) -> None:
    site, posted = resets
    assert await reset_site(f"{site}/page", {site: f"{site}/reset"}, NetworkPolicy.for_websites([site]))
    assert posted == ["/reset"]


async def test_a_site_that_answers_with_an_error_is_not_reset(resets: tuple[str, list[str]]) -> None:
    site, _ = resets
    assert not await reset_site(f"{site}/page", {site: f"{site}/broken"}, NetworkPolicy.for_websites([site]))


async def test_a_reset_reaches_nothing_that_the_tasks_browser_does_not_reach(resets: tuple[str, list[str]]) -> None:
    site, posted = resets
    assert not await reset_site(
        f"{site}/page", {site: f"{site}/reset"}, NetworkPolicy.for_websites([site], closed=[site])
    )
    assert posted == []


async def test_a_static_site_needs_no_reset_and_any_other_needs_one() -> None:
    policy = NetworkPolicy.for_websites([SHOP])
    assert await reset_site(f"{SHOP}page", {SHOP: "static"}, policy)
    assert not await reset_site(f"{SHOP}page", {"https://example.com/": "static"}, policy)


async def test_a_site_that_cannot_be_reached_is_not_reset() -> None:
    site = "http://127.0.0.1:9"
    assert not await reset_site(f"{site}/", {site: f"{site}/reset"}, NetworkPolicy.for_websites([site]))
