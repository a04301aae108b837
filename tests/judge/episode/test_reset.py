"""Sites are brought back to their first state before each attempt; where they cannot be, attempts share a state."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hops import typed
from helpers.browser.hostile_site import Handler, hostile_site
from helpers.episode.one_page_shop import CLICK, FINISH, OnePageShop, assess_in_shop
from helpers.network.served_sites import Authority, listening
from helpers.ports import free_ports
from judge.browser.session import Hop, ToolResult
from judge.browser.settle import SettleMode
from judge.config import RunConfig
from judge.episode.reset import SiteTurns, SiteUse, reset_site
from judge.network.policy import NetworkPolicy
from judge.records.events import Event, TaskRetried, TaskStarted
from judge.records.tasks import Task
from judge.trajectory.record import Attempt
from shared.errors import SiteFault
from shared.models import Action, Notice, Page, ToolSpec
from shared.protocol import Participant, render_reply

SHOP = "https://example.org/"
STATIC = {SHOP: "static"}
NAVIGATE = ToolSpec(name="browser_navigate", description="Go", parameters={"properties": {"url": {"type": "string"}}})


STOPPED = Notice(code="script_stopped", seconds=10)


class ClockShop(OnePageShop):
    """Its page waits in a loop for the clock."""

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        self._settle = settle

    async def observe(self) -> Page:
        page = await super().observe()
        return page.model_copy(update={"notice": STOPPED}) if self._settle == "page-time" else page


class Finisher:
    async def send(self, text: str, **_: Any) -> str:
        return render_reply(Action(tool="finish", params={"answer": "done"}))


class Trap(ClockShop):
    """It shows its page, but leads to one that waits in a loop for the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = (NAVIGATE, CLICK, FINISH)
        self.hops: list[Hop] = []
        self._acted = False
        self._at = SHOP

    async def observe(self) -> Page:
        page = await (ClockShop.observe(self) if self._acted else OnePageShop.observe(self))
        return page.model_copy(update={"url": self._at})

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        self.hops = typed(params["url"]) if "url" in params else []
        self._acted, self._at = True, params.get("url", f"{SHOP}linked")
        return ToolResult(ok=True, text="")

    def take_hops(self) -> tuple[Hop, ...]:
        hops, self.hops = tuple(self.hops), []
        return hops


class Leader:
    """Acts once, and finishes."""

    def __init__(self, tool: str, **params: str) -> None:
        self._action = Action(tool=tool, params=params)

    async def send(self, text: str, **_: Any) -> str:
        return render_reply(self._action if "Task:" in text else Action(tool="finish", params={"answer": "done"}))


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
    entry = await assess(tmp_path, events, site_resets=STATIC)
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


@pytest.mark.parametrize("url", ["https://elsewhere.example/", f"{SHOP}clock"])
async def test_a_participant_that_named_such_a_page_goes_on_with_what_it_shows(tmp_path: Path, url: str) -> None:
    events: list[Event] = []
    leader = Leader("browser_navigate", url=url)
    entry = await assess(tmp_path, events, shop=Trap, participant=leader, site_resets=STATIC)
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "page-time")
    assert [event.attempt for event in events if isinstance(event, TaskStarted)] == [1]


async def test_a_participant_that_followed_a_link_to_such_a_page_starts_again_in_real_time(tmp_path: Path) -> None:
    events: list[Event] = []
    leader = Leader("browser_click", target="e1")
    entry = await assess(tmp_path, events, shop=Trap, participant=leader, site_resets=STATIC)
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "real-time")
    assert [event.attempt for event in events if isinstance(event, TaskRetried)] == [1]


async def test_where_nothing_is_reset_such_a_page_is_observed_as_it_stands(tmp_path: Path) -> None:
    events: list[Event] = []
    entry = await assess(tmp_path, events, shop=Trap, participant=Leader("browser_click", target="e1"))
    assert (entry["stop_reason"], entry["settle"]) == ("finished", "page-time")
    assert [event.attempt for event in events if isinstance(event, TaskStarted)] == [1]


@pytest.fixture
def resets() -> Iterator[tuple[str, list[str]]]:
    def answer(handler: Handler) -> None:
        status = 500 if handler.path == "/broken" else 204
        handler.send(b"", status if handler.command == "POST" else 501)

    with hostile_site(dict.fromkeys(("/reset", "/other", "/broken"), answer)) as site:
        yield site.url.rstrip("/"), site.paths


async def test_a_site_is_reset_by_a_post(resets: tuple[str, list[str]]) -> None:
    site, posted = resets
    await reset_site(f"{site}/reset", NetworkPolicy.for_websites([site]))
    assert posted == ["/reset"]


async def test_a_site_with_a_certificate_of_the_users_own_authority_is_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, (port,), requests = Authority.made_in(tmp_path), free_ports(1), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    with listening(serve, port, authority):
        site = f"https://localhost:{port}"
        await reset_site(f"{site}/reset", NetworkPolicy.for_websites([site]))
    assert requests == [b"POST /reset HTTP/1.1"]


async def test_a_site_that_answers_with_an_error_is_not_reset(resets: tuple[str, list[str]]) -> None:
    site, _ = resets
    with pytest.raises(SiteFault, match=r"could not be reset: POST /broken answered 500 \(a reset_url gets a POST\)$"):
        await reset_site(f"{site}/broken", NetworkPolicy.for_websites([site]))


async def test_a_reset_reaches_nothing_that_the_tasks_browser_does_not_reach(resets: tuple[str, list[str]]) -> None:
    site, posted = resets
    with pytest.raises(SiteFault):
        await reset_site(f"{site}/reset", NetworkPolicy.for_websites([site], closed=[site]))
    assert posted == []


async def test_a_site_that_cannot_be_reached_is_not_reset() -> None:
    site = "http://127.0.0.1:9"
    with pytest.raises(SiteFault, match="could not be reset"):
        await reset_site(f"{site}/reset", NetworkPolicy.for_websites([site]))


def turns(**config: Any) -> SiteTurns:
    return SiteTurns(RunConfig(**config), lambda task: NetworkPolicy.for_websites([task.website, *task.allowed_sites]))


def task_at(website: str, **keys: Any) -> Task:
    return Task(task_id="t", website=website, task="x", **keys)


def test_a_task_can_be_reset_if_every_site_where_it_begins_can() -> None:
    sites = turns(site_resets=STATIC, allowed_sites=("other.example",))
    assert sites.can_reset(task_at(f"{SHOP}page"))
    assert not sites.can_reset(task_at("https://example.com/"))
    assert not sites.can_reset(task_at(SHOP, start_urls=(SHOP, "https://other.example/")))


async def test_every_site_of_a_task_is_reset_and_no_other(resets: tuple[str, list[str]]) -> None:
    site, posted = resets
    sites = turns(site_resets={SHOP: "static", site: f"{site}/reset"})
    async with sites.turn(task_at(SHOP), is_first=True):
        assert posted == []
    async with sites.turn(task_at(SHOP, allowed_sites=(site,)), is_first=True):
        pass


async def test_attempts_on_a_site_that_is_reset_follow_each_other(resets: tuple[str, list[str]]) -> None:
    site, happened = resets
    sites = turns(site_resets={site: f"{site}/reset"})

    async def play(number: int) -> SiteUse:
        async with sites.turn(task_at(site), is_first=number == 1) as turn:
            happened.append(f"{number} begins")
            # Time enough for another one to reset the site, if it could.
            await reset_site(f"{site}/other", NetworkPolicy.for_websites([site]))
            happened.append(f"{number} ends")
        return turn

    attempts = await asyncio.gather(play(1), play(2))
    one, two = (["/reset", f"{number} begins", "/other", f"{number} ends"] for number in (1, 2))
    assert happened in ([*one, *two], [*two, *one])
    assert not any(turn.shares_state for turn in attempts)


async def test_attempts_at_the_same_time_share_a_site_that_is_not_reset() -> None:
    sites = turns()
    async with sites.turn(task_at(SHOP), is_first=True) as alone:
        pass
    async with (
        sites.turn(task_at(SHOP), is_first=True) as one,
        sites.turn(task_at(f"{SHOP}page"), is_first=True) as two,
        sites.turn(task_at("https://other.example/"), is_first=True) as elsewhere,
    ):
        pass
    assert [turn.shares_state for turn in (alone, one, two, elsewhere)] == [False, True, True, False]


@pytest.mark.parametrize(("resets", "is_shared"), [({}, True), (STATIC, False)], ids=["no reset", "static"])
async def test_a_later_attempt_shares_its_site_with_the_earlier_one_unless_that_is_static(
    resets: dict[str, str], is_shared: bool
) -> None:
    async with turns(site_resets=resets).turn(task_at(SHOP), is_first=False) as turn:
        assert turn.shares_state is is_shared


async def test_a_retried_attempt_on_a_shared_site_says_so_in_its_record(tmp_path: Path) -> None:
    entry = await assess(tmp_path, [], max_task_retries=1)
    result = json.loads((tmp_path / "runs" / "r" / "results" / "t0" / "result.json").read_text())
    assert (entry["verdict"], entry["flags"], result["shared_state"]) == ("unscored", ["shared_state"], True)
    assert json.loads(json.dumps(Attempt.from_json(result, source="x").to_json())) == result


async def test_an_attempt_whose_site_could_not_be_reset_is_a_fault_of_the_site_and_is_retried(tmp_path: Path) -> None:
    events: list[Event] = []
    # Nothing listens there.
    site = "http://127.0.0.1:9/"
    entry = await assess(tmp_path, events, max_task_retries=1, site_resets={site: f"{site}reset"}, website=site)
    assert (entry["verdict"], entry["stop_reason"]) == ("aborted", "environment_fault")
    assert entry["error"].startswith(f"site: {site}reset: the site could not be reset")
    assert [event.attempt for event in events if isinstance(event, TaskStarted)] == [1, 2]
