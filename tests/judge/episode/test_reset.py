"""An attempt starts again in real time only where its site is in its first state."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from helpers.episode.one_page_shop import OnePageShop, assess_in_shop
from judge.browser.settle import ClockStalled, SettleMode
from judge.episode.reset import reset_site
from judge.events import Event, TaskRetried
from shared.models import Action, Page
from shared.protocol import render_reply

SHOP = "https://example.org/"


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


async def assess(folder: Path, events: list[Event], **config: Any) -> dict[str, Any]:
    settings = {"settle": "page-time", "max_task_retries": 0, **config}
    (done,) = await assess_in_shop(folder, Finisher(), 1, max_steps=3, shop=ClockShop, events=events, **settings)
    return dict(done.entry)


async def test_an_attempt_on_a_static_site_starts_again_in_real_time_and_costs_no_retry(tmp_path: Path) -> None:
    events: list[Event] = []
    entry = await assess(tmp_path, events, site_resets={SHOP: "static"})
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "real-time")
    assert [event.attempt for event in events if isinstance(event, TaskRetried)] == [1]


async def test_on_any_other_site_it_is_a_fault_of_the_site(tmp_path: Path) -> None:
    entry = await assess(tmp_path, [], site_resets={"https://example.com/": "static"})
    assert (entry["stop_reason"], entry["settle"]) == ("environment_fault", "page-time")
    assert entry["error"].startswith("site: a script of the page did not end")


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
    assert await reset_site(f"{site}/page", {site: f"{site}/reset"})
    assert posted == ["/reset"]


async def test_a_site_that_answers_with_an_error_is_not_reset(resets: tuple[str, list[str]]) -> None:
    site, _ = resets
    assert not await reset_site(f"{site}/page", {site: f"{site}/broken"})


async def test_a_site_that_cannot_be_reached_is_not_reset() -> None:
    assert not await reset_site("http://127.0.0.1:9/", {"http://127.0.0.1:9": "http://127.0.0.1:9/reset"})
