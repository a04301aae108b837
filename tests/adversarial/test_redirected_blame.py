"""A redirect that hides who led the browser to where it broke: every hop counts, also to a page that never arrived."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME as HOME_PAGE
from helpers.browser.hostile_site import Handler, Page, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, kill, ref, tool_call
from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from judge.sites import NetworkPolicy
from shared.errors import BrowserFault
from shared.models import Action

Told = Callable[[str, object], None]
ELSEWHERE = "https://other.example/trap"


@pytest.fixture
def both_sites_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets this machine's other sites pass, as it would a public one."""
    monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
    monkeypatch.setattr("judge.browser.guard.is_this_machine", lambda _: False)


# What the participant does, and who is to blame when the browser dies on the way to the other site.
WAYS = {
    "a typed address redirects": "participant",
    "a typed address redirects in a new tab": "participant",
    "a script of the typed page leads on": "participant",
    "a link redirects": "browser",
    "the website itself redirects": "browser",
}


@pytest.mark.e2e
@pytest.mark.usefixtures("both_sites_allowed")
@pytest.mark.parametrize("way", WAYS)
async def test_a_redirect_to_a_site_that_kills_the_browser(judge: LiveJudge, way: str) -> None:
    def trap(_: Handler) -> None:
        kill(judge.browser_files, "browser")

    def leads_on(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}trap")

    def script(turn: ParticipantTurn) -> str:
        if turn.n:
            return finish()
        return {
            "a typed address redirects": lambda: tool_call("browser_navigate", url=f"{site.url}go"),
            "a typed address redirects in a new tab": lambda: tool_call(
                "browser_tabs", action="new", url=f"{site.url}go"
            ),
            "a script of the typed page leads on": lambda: tool_call("browser_navigate", url=f"{site.url}script"),
            "a link redirects": lambda: tool_call("browser_click", ref=ref(turn, 'link "Partner"')),
        }[way]()

    with hostile_site({"/trap": trap}) as elsewhere:
        home: Page = HOME_PAGE + "<a href='/go'>Partner</a>"
        pages: dict[str, Page] = {
            "/": leads_on if way == "the website itself redirects" else home,
            "/go": leads_on,
            "/script": f"<title>Script</title><script>location.replace('{elsewhere.url}trap')</script>",
        }
        with hostile_site(pages) as site:
            assessed = await judge.play(script, site.url)
        assert elsewhere.asked("/trap")
    result = assessed.result()
    navigations = [one for step in result["steps"] for one in step["navigations"]] + result["navigations"]
    assert f"{elsewhere.url}trap" in [navigation["url"] for navigation in navigations]
    assert result["blame"] == WAYS[way]
    if WAYS[way] == "participant":
        assert assessed.verdict == ("failure", "participant_error"), assessed.entry
        assert assessed.entry["flags"] == ["off_site"]
    else:
        assert assessed.verdict == ("aborted", "environment_fault"), assessed.entry


def going(url: str) -> Action:
    return Action(tool="browser_navigate", params={"url": url})


def typing(text: str) -> Action:
    return Action(tool="browser_type", params={"text": text})


KEY = Action(tool="browser_press_key", params={"key": "Enter"})
WAIT = Action(tool="browser_wait_for", params={"time": 1})
Moves = list[tuple[Action, list[str]]]
# Actions, and where each takes the browser: the last one breaks it.
TRICKS: dict[str, Moves] = {
    "over several redirects of the site": [(going(f"{HOME}a"), [f"{HOME}a", f"{HOME}b", ELSEWHERE])],
    "over another site and back": [(going(f"{HOME}a"), [f"{HOME}a", ELSEWHERE, f"{HOME}back"])],
    "by a page that leads on while the participant waits": [(going(f"{HOME}a"), [f"{HOME}a"]), (WAIT, [ELSEWHERE])],
    "by the link of a page whose address names the target": [
        (going(f"{HOME}leave?to=https%3A%2F%2Fwww.other.example%2Ftrap"), [f"{HOME}leave"]),
        (KEY, [ELSEWHERE]),
    ],
    "by a form into which it typed the target": [(typing(f"see {ELSEWHERE}"), [f"{HOME}go?id=1", ELSEWHERE])],
    "by a link of the site it went to": [(going(ELSEWHERE), [ELSEWHERE]), (KEY, ["https://third.example/"])],
}
HONEST: dict[str, Moves] = {
    "a form into which it typed an e-mail address": [(typing("me@other.example"), [f"{HOME}go", ELSEWHERE])],
    "a link": [(KEY, [ELSEWHERE])],
    "a link that redirects": [(KEY, [f"{HOME}out", "https://tracker.example/", ELSEWHERE])],
    "a link on a page whose address it typed": [(going(f"{HOME}a"), [f"{HOME}a"]), (KEY, [ELSEWHERE])],
    "a wait on a page that the site led to": [(KEY, [f"{HOME}a"]), (WAIT, [ELSEWHERE])],
    "a link after a visit elsewhere": [
        (going(ELSEWHERE), [ELSEWHERE]),
        (going(HOME), [HOME]),
        (Action(tool="browser_click", params={}), ["https://partner.example/"]),
    ],
}


def broken_on_the_way(folder: Path, moves: Moves, told: Told) -> Any:
    steps = iter(moves)

    async def does(browser: ScriptedBrowser, *_: Any) -> None:
        action, urls = next(steps)
        browser.goes(*urls)
        if action is moves[-1][0]:
            raise BrowserFault("the browser was killed")

    end = play_episode(folder, ScriptedBrowser(does), *[action for action, _ in moves])
    assert end.stop_reason == "environment_fault"
    last = end.steps[-1].navigations[-1]
    told("outcome", f"{last.url} is the choice of the {last.by}, flags: {', '.join(end.steps[-1].flags) or 'none'}")
    return end


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trap_that_the_participant_reached(tmp_path: Path, trick: str, record_property: Told) -> None:
    end = broken_on_the_way(tmp_path, TRICKS[trick], record_property)
    assert end.is_astray
    assert end.steps[-1].flags == ("off_site",)


@pytest.mark.parametrize("way", HONEST)
def test_a_broken_page_that_the_site_led_to_is_not_blamed_on_the_participant(
    tmp_path: Path, way: str, record_property: Told
) -> None:
    end = broken_on_the_way(tmp_path, HONEST[way], record_property)
    assert not end.is_astray
    assert end.steps[-1].flags == ("off_site",)


def test_a_page_that_leads_on_while_the_participant_thinks_is_not_excused_by_its_next_action(
    tmp_path: Path, record_property: Told
) -> None:
    browser = ScriptedBrowser()

    async def does(*_: Any) -> None:
        browser.goes(f"{HOME}opaque")

    browser.does = does

    async def thinks() -> Action:
        browser.goes(ELSEWHERE)
        browser.does = breaks
        return KEY

    async def breaks(*_: Any) -> None:
        raise BrowserFault("the browser was killed")

    end = play_episode(tmp_path, browser, going(f"{HOME}opaque"), thinks)
    last = end.steps[-1].navigations[-1]
    record_property("outcome", f"{last.url} is the choice of the {last.by}")
    assert end.is_astray
