"""A site that is lost during an attempt: whose fault the failure is, and that the participant cannot choose."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.episode.one_page_shop import OnePageShop, assess_in_shop
from judge.browser.requests import har_entry
from judge.browser.session import ToolResult, Traffic
from judge.browser.settle import SettleMode
from judge.results.submission import TaskSummary
from shared.errors import BrowserFault, SiteUnreachable
from shared.models import Action, Page
from shared.protocol import render_reply

CLICK = Action(tool="browser_click", params={"target": "e1"})
CHECKS = ({"kind": "answer", "contains": "42"},)


def finish(answer: str) -> Action:
    return Action(tool="finish", params={"answer": answer})


RIGHT, WRONG = finish("42"), finish("41")


class Participant:
    """Sends the actions of each attempt, then the last one again."""

    def __init__(self, *actions: Action | str) -> None:
        self._actions = actions
        self._conversations: dict[str, int] = {}

    async def send(self, text: str, *, context_id: str, **_: Any) -> str:
        turn = self._conversations.get(context_id, 0)
        self._conversations[context_id] = turn + 1
        action = self._actions[min(turn, len(self._actions) - 1)]
        return action if isinstance(action, str) else render_reply(action)


class LosingShop(OnePageShop):
    """The site of its first attempt fails after the first observation, and is as `later` afterwards."""

    opened = 0
    later: Any = SiteUnreachable("it cannot be reached: net::ERR_CONNECTION_REFUSED")
    # How many times it is opened before it works again.
    lasts = 99
    failure: Mapping[str, Any] | None = MappingProxyType({"failure": "net::ERR_CONNECTION_REFUSED"})

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        type(self).opened += 1
        self._is_lost = 1 < self.opened <= self.lasts
        if self._is_lost and isinstance(self.later, Exception):
            raise self.later
        self._url = url

    async def observe(self) -> Page:
        page = (await super().observe()).model_copy(update={"url": self._url, "http_status": 200})
        return page.model_copy(update=self.later) if self._is_lost else page

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        return ToolResult(ok=True, text="clicked")

    def traffic(self) -> Traffic | None:
        if self.failure is None or self.opened > 1:
            return Traffic()
        request = {"method": "GET", "url": f"{self._url}api", "type": "fetch", "step": 1, "began": 1, "fixed": {}}
        return Traffic(entries=(har_entry({**request, **self.failure}, None),))


@pytest.fixture
def site() -> Iterator[Site]:
    with hostile_site({"/reset": "done"}) as running:
        yield running


async def play_lost(
    folder: Path, site: Site, *actions: Action | str, reset: bool = False, **shop: Any
) -> tuple[TaskSummary, int]:
    """The task's end, and how often its site was opened."""

    class ThisShop(LosingShop):
        opened = 0

    for name, value in shop.items():
        setattr(ThisShop, name, value)
    resets = {site.url: f"{site.url}reset"} if reset else {}
    (done,) = await assess_in_shop(
        folder,
        Participant(*actions),
        1,
        shop=ThisShop,
        website=site.url,
        checks=CHECKS,
        max_steps=3,
        max_task_retries=1,
        site_resets=resets,
    )
    return done, ThisShop.opened


def end_of(done: TaskSummary) -> tuple[str, str, str]:
    return done.outcome, done.entry["stop_reason"], str(done.entry["error"]).partition(":")[0]


ABORTED, SCORED = ("aborted", "environment_fault", "site"), ("failure", "finished", "None")


@pytest.mark.parametrize(
    ("actions", "shop", "end", "opened"),
    [
        # The second attempt cannot open the site either.
        ((CLICK, WRONG), {}, ABORTED, 3),
        ((CLICK,), {}, ABORTED, 3),
        ((CLICK, WRONG), {"later": {"http_status": 502}, "failure": {"status": 502}}, ABORTED, 3),
        ((CLICK, RIGHT), {}, ("success", "finished", "None"), 1),
        # It may have shut the site down, and would get another attempt whenever it likes.
        ((CLICK, WRONG), {"reset": True}, ("failure", "participant_error", "participant"), 2),
        ((CLICK,), {"reset": True}, ("failure", "participant_error", "participant"), 2),
        # It only looked: its second attempt counts.
        ((WRONG,), {"reset": True, "lasts": 2}, SCORED, 3),
        (("no reply",), {}, ("failure", "unreadable_replies", "None"), 1),
        # The site works, or it is not known that it does not.
        ((CLICK, WRONG), {"failure": None}, SCORED, 1),
        ((CLICK, WRONG), {"failure": {"failure": "net::ERR_ABORTED"}}, SCORED, 1),
        ((CLICK, WRONG), {"later": {"http_status": 404}}, SCORED, 2),
        ((CLICK, WRONG), {"later": {"wall": "a CAPTCHA"}}, SCORED, 2),
        ((CLICK, WRONG), {"later": BrowserFault("it was killed")}, SCORED, 2),
    ],
)
async def test_a_failed_attempt_is_aborted_if_its_site_was_lost_and_the_participant_did_not_do_it(
    tmp_path: Path,
    site: Site,
    actions: tuple[Action | str, ...],
    shop: dict[str, Any],
    end: tuple[str, str, str],
    opened: int,
) -> None:
    done, times = await play_lost(tmp_path, site, *actions, **shop)
    assert (end_of(done), times) == (end, opened), done.entry
