"""A lost task whose site the participant shuts down, so that it is left out of the rates: it still counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.episode.one_page_shop import OnePageShop, assess_in_shop
from judge.browser.settle import SettleMode
from judge.records.events import Event, TaskStarted
from shared.errors import BrowserFault, SiteUnreachable
from shared.models import Action
from shared.protocol import render_reply

pytestmark = pytest.mark.slow

CLICK = Action(tool="browser_click", params={"target": "e1"})


class ClosingShop(OnePageShop):
    """It breaks in its first attempt, and cannot be opened in later ones."""

    opened = 0

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        type(self).opened += 1
        if self.opened > 1:
            raise SiteUnreachable(f"{url} cannot be reached: net::ERR_CONNECTION_REFUSED")

    async def act(self, tool: str, params: dict[str, Any]) -> Any:
        raise BrowserFault("the browser was killed")


class Participant:
    def __init__(self, action: Action) -> None:
        self._action = action

    async def send(self, text: str, **_: Any) -> str:
        return render_reply(self._action)


@pytest.fixture
def site() -> Iterator[Site]:
    with hostile_site({"/reset": "done", "/broken": lambda handler: handler.send(b"", 500)}) as running:
        yield running


async def play_shut_down(
    folder: Path, site: Site, *, reset: str | None = "reset", action: Action = CLICK, shop: Any = ClosingShop
) -> tuple[str, str | None, int]:
    """Outcome, blame and number of attempts of a task whose site is closed from the second attempt on."""

    class ThisShop(shop):  # type: ignore[misc]
        opened = 0

    events: list[Event] = []
    resets = {site.url: f"{site.url}{reset}"} if reset else {}
    limits: dict[str, Any] = {"max_steps": 2, "max_task_retries": 2, "site_resets": resets}
    (done,) = await assess_in_shop(
        folder, Participant(action), 1, shop=ThisShop, events=events, website=site.url, **limits
    )
    return done.outcome, done.entry["error"], sum(isinstance(event, TaskStarted) for event in events)


async def test_a_site_that_works_again_after_a_reset_was_shut_down_by_a_participant_that_acted(
    tmp_path: Path, site: Site
) -> None:
    outcome, error, attempts = await play_shut_down(tmp_path, site)
    assert (outcome, attempts) == ("failure", 2)
    assert str(error).startswith(
        "participant: acted on the site in every attempt, and only a reset makes it work again"
    )


async def test_a_site_that_not_even_a_reset_brings_back_is_the_sites_fault(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = lambda handler: handler.send(b"", 503)
    outcome, error, attempts = await play_shut_down(tmp_path, site)
    assert (outcome, attempts) == ("aborted", 3)
    assert str(error).startswith("site: ")


async def test_a_site_that_cannot_be_reset_is_the_sites_fault(tmp_path: Path, site: Site) -> None:
    outcome, error, _ = await play_shut_down(tmp_path, site, reset=None)
    assert outcome == "aborted"
    assert str(error).startswith("site: ")


async def test_a_participant_that_never_acted_did_not_shut_the_site_down(tmp_path: Path, site: Site) -> None:
    class Closed(ClosingShop):
        async def observe(self) -> Any:
            raise BrowserFault("the browser was killed")

    outcome, error, _ = await play_shut_down(tmp_path, site, shop=Closed)
    assert outcome == "aborted"
    assert str(error).startswith("site: ")


async def test_a_reset_that_fails_only_after_the_participant_acted_counts_as_its_doing(
    tmp_path: Path, site: Site
) -> None:
    class Breaks(OnePageShop):
        async def act(self, tool: str, params: dict[str, Any]) -> Any:
            site.pages["/reset"] = fails_once
            raise BrowserFault("the browser was killed")

    def fails_once(handler: Handler) -> None:
        site.pages["/reset"] = "done"
        handler.send(b"", 500)

    outcome, error, attempts = await play_shut_down(tmp_path, site, shop=Breaks)
    assert (outcome, attempts) == ("failure", 2)
    assert str(error).endswith("the site could not be reset: POST /reset answered 500 (a reset_url gets a POST)")


async def test_an_unreachable_site_before_the_first_action_is_the_sites_fault(tmp_path: Path, site: Site) -> None:
    outcome, error, _ = await play_shut_down(tmp_path, site, reset="broken")
    assert outcome == "aborted"
    assert str(error).startswith("site: ")
