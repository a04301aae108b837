"""A lost task made to look like somebody else's fault, so that it is left out of the rates: it still counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hops import pages_of, typed
from helpers.browser.hostile_site import HOME, Handler, hostile_site, never_answers
from helpers.browser.sessions import a_browser
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, tool_call
from helpers.episode.one_page_shop import OnePageShop, assess_in_shop
from helpers.episode.scripted import ScriptedBrowser, play_episode
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from judge.browser.session import Hop
from judge.network.policy import NetworkPolicy
from judge.records.events import Event, TaskStarted
from judge.records.tools import MAX_OPEN_TABS
from shared.errors import BrowserFault
from shared.models import Action, Page, Tab, ToolSpec
from shared.protocol import render_reply

HANGING = "<title>Hang</title><h1>Hang</h1><script>setTimeout(() => { for (;;); }, 50)</script>"
# Hangs as well, without the core that a loop takes.
AT_ONCE = """<title>Hang</title><script>const asked = new XMLHttpRequest(); asked.open('GET', '/never', false);
asked.send()</script>"""
ON_A_CLICK = """<title>Hang</title><h1>Hang</h1><script>const asked = new XMLHttpRequest();
asked.open('GET', '/never', false)</script><button onclick='asked.send()'>Go</button>"""
DETOURS = ("a page that hangs", "the way back")
HONEST = ("a link of the site", "the website's own address")


def doing(*calls: str) -> Script:
    """Does one thing after the other, then finishes."""
    return lambda turn: calls[turn.n] if turn.n < len(calls) else finish()


@pytest.fixture(scope="module")
async def led_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """Attempts that come to a page of another site which lets nothing through."""

    def at_the_second_visit(handler: Handler) -> None:
        body = HOME if elsewhere.paths.count("/late") % 2 else AT_ONCE
        handler.send(body.encode(), Cache_Control="no-store")

    def to_partner(handler: Handler) -> None:
        handler.redirect(partner)

    def follows_the_link(turn: ParticipantTurn) -> str:
        is_first = turn.n == 0
        return tool_call("browser_click", ref=ref(turn, 'link "Partner"')) if is_first else clicks(turn, 1)

    def clicks(turn: ParticipantTurn, n: int) -> str:
        return tool_call("browser_click", ref=ref(turn, 'button "Go"')) if turn.n == n else finish()

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        goes = {
            "a page that hangs": [tool_call("browser_navigate", url=f"{elsewhere.url}hanging")],
            "the way back": [
                tool_call("browser_navigate", url=f"{elsewhere.url}late"),
                tool_call("browser_navigate", url=site.url),
                tool_call("browser_navigate_back"),
            ],
        }
        plays = {name: Play(doing(*goes[name]), site.url) for name in DETOURS}
        plays["a link of the site"] = Play(follows_the_link, site.url)
        plays["the website's own address"] = Play(lambda turn: clicks(turn, 0), f"{site.url}moved")
        limits = {"call_timeout_s": 5, "navigation_timeout_s": 4, "max_parallel": 2}
        return await play_tasks(judge, plays, **limits)

    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        hostile_site({"/hanging": HANGING, "/never": never_answers}) as elsewhere,
        hostile_site({"/partner": ON_A_CLICK, "/never": never_answers}) as partners,
        hostile_site({"/moved": to_partner}) as site,
    ):
        # The guard lets this machine's other sites pass, as it would public ones.
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr("judge.network.guard.is_this_machine", lambda _: False)
        elsewhere.pages["/late"] = at_the_second_visit
        partner = f"{partners.url}partner"
        site.pages["/"] = f"{HOME}<a href='{partner}'>Partner</a>"
        return await with_judge(tmp_path_factory.mktemp("run"), play)


@pytest.mark.e2e
@pytest.mark.parametrize("way", [*DETOURS, *HONEST])
def test_a_page_elsewhere_that_hangs_ends_no_attempt_regardless_of_who_led_there(
    led_elsewhere: dict[str, PlayedTask], way: str
) -> None:
    attempt = led_elsewhere[way]
    assert attempt.entry["stop_reason"] == "finished", attempt.entry
    assert attempt.verdict[0] in ("success", "failure")
    assert ("off_site" in attempt.entry["flags"]) == (way != "the website's own address")


class BreaksAlways(OnePageShop):
    """A browser that breaks with whatever it is to do."""

    def __init__(self) -> None:
        super().__init__()
        properties = {"url": {"type": "string"}}
        self.tools += (ToolSpec(name="browser_navigate", description="", parameters={"properties": properties}),)
        self.hops: list[Hop] = []

    async def act(self, tool: str, params: dict[str, Any]) -> Any:
        self.hops = typed(params["url"]) if "url" in params else []
        raise BrowserFault("the browser was killed")

    def take_hops(self) -> tuple[Hop, ...]:
        hops, self.hops = tuple(self.hops), []
        return hops


class OneActionAnAttempt:
    def __init__(self, *actions: Action) -> None:
        self._actions = iter(actions)

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return render_reply(next(self._actions))


LEAVE = Action(tool="browser_navigate", params={"url": "https://other.example/trap"})
STAY = Action(tool="browser_click", params={"target": "e1"})


@pytest.mark.parametrize(
    ("attempts", "verdict", "attempt_count"),
    [
        ((LEAVE,), ("failure", "participant_error"), 1),
        ((STAY, LEAVE), ("failure", "participant_error"), 2),
        ((STAY, STAY), ("aborted", "environment_fault"), 2),
    ],
    ids=["elsewhere", "elsewhere in the second attempt", "on the task's site"],
)
async def test_a_browser_that_breaks_elsewhere_ends_the_task_at_once(
    tmp_path: Path, attempts: tuple[Action, ...], verdict: tuple[str, str], attempt_count: int
) -> None:
    agent = OneActionAnAttempt(*attempts)
    events: list[Event] = []
    (done,) = await assess_in_shop(
        tmp_path, agent, 1, max_steps=5, shop=BreaksAlways, max_task_retries=1, events=events
    )
    assert (done.outcome, done.entry["stop_reason"]) == verdict
    assert sum(isinstance(event, TaskStarted) for event in events) == attempt_count


@pytest.mark.usefixtures("text_browser")
async def test_a_way_through_another_site_is_off_site_play_also_when_it_leads_back_at_once(judge: LiveJudge) -> None:
    def back(handler: Handler) -> None:
        handler.redirect(f"{site.url}goal")

    with hostile_site() as site, hostile_site({"/back": back}) as elsewhere:
        script = doing(tool_call("browser_navigate", url=f"{elsewhere.url}back"))
        assessed = await judge.play(script, site.url, off_site="fail")
    assert assessed.verdict == ("failure", "finished")
    assert assessed.entry["flags"] == ["off_site"]
    assert all(step["url"].startswith(site.url) for step in assessed.result()["steps"])


LONG: tuple[Callable[[str], str], ...] = (
    # Key by key.
    lambda field: tool_call("browser_type", ref=field, text="x" * 10_000, slowly=True),
    lambda field: tool_call(
        "browser_fill_form", fields=[{"target": field, "name": "f", "type": "textbox", "value": "x" * 2_000}] * 50
    ),
    # For what never comes. Together, the two waits take longer than a call may.
    lambda _: tool_call("browser_wait_for", time=3, text="never", textGone="Welcome"),
)


@pytest.mark.nightly
@pytest.mark.e2e
async def test_the_longest_possible_actions_are_not_a_browser_fault(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        return LONG[turn.n](ref(turn, 'textbox "Field"')) if turn.n < len(LONG) else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("failure", "finished"), assessed.entry
    assert assessed.entry["steps_taken"] == len(LONG) + 1


KEYS = ["Control+u", "Control+o", "Control+s", "Control+p", "Control+t", "Control+n", "Control+w", "Control+Shift+i"]
KEYS += ["F12", "F1", "F6", "Alt+F4", "Control+l", "Control+j", "Control+h", "Control+Shift+Delete", "Shift+Escape"]


@pytest.mark.nightly
@pytest.mark.e2e
async def test_neither_keys_of_the_browser_itself_nor_all_tabs_that_may_be_opened_are_a_fault() -> None:
    with hostile_site() as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            for key in KEYS:
                assert (await browser.act("browser_press_key", {"key": key})).ok, key
            page = await browser.observe()
            # The keys have reached the page alone.
            assert pages_of(browser.take_hops()) == [(site.url, False)]
            assert [tab.url for tab in page.tabs] == [site.url]
            await browser.open_tabs([site.url] * (MAX_OPEN_TABS - 1))
            assert (await browser.act("browser_tabs", {"action": "select", "index": MAX_OPEN_TABS - 1})).ok
            assert len((await browser.observe()).tabs) == MAX_OPEN_TABS


class ManyTabs(ScriptedBrowser):
    """A browser in which every action opens a tab."""

    tools = (
        *ScriptedBrowser.tools,
        ToolSpec(name="browser_tabs", description="", parameters={"properties": {"action": {"type": "string"}}}),
    )

    def __init__(self) -> None:
        super().__init__(self.opens)
        self.count = 1

    async def opens(self, *_: Any) -> None:
        self.count += 1

    async def observe(self) -> Page:
        tabs = tuple(Tab(index=index, title="", url=self.url, current=not index) for index in range(self.count))
        return (await super().observe()).model_copy(update={"tabs": tabs})


def test_tabs_without_end_are_refused_before_they_are_a_fault(tmp_path: Path) -> None:
    browser = ManyTabs()
    end = play_episode(tmp_path, browser, *[Action(tool="browser_tabs", params={"action": "new"})] * 25, max_steps=30)
    assert (end.stop_reason, end.error, browser.count) == ("finished", None, MAX_OPEN_TABS)
    outcome = end.steps[24].outcome
    assert outcome is not None
    assert "close one before" in outcome.message
    assert outcome.line is None
