"""Redirects and tabs that hide who led the browser to where it broke: every hop counts, also if no page arrived."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME as HOME_PAGE
from helpers.browser.hostile_site import Handler, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, kill, ref, tool_call
from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from judge.sites import NetworkPolicy
from shared.errors import BrowserFault
from shared.models import Action

Told = Callable[[str, object], None]
ELSEWHERE = "https://other.example/trap"


# What the participant does, and who is to blame when the browser dies on the way to the other site.
KILLED = {
    "a typed address redirects": "participant",
    "a script of the typed page leads on": "participant",
    "a tab stays there": "participant",
    "the website itself redirects": "browser",
}
# What the participant does, and who chose the other site, from which no page comes.
LED_ON = {
    "a typed address redirects in a new tab": "participant",
    "a link redirects": "site",
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """An attempt for each way to another site, which kills the browser or sends no page."""

    def to_trap(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}trap")

    def to_nothing(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}nothing")

    def no_content(handler: Handler) -> None:
        handler.send(b"", 204)

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        def trap(_: Handler) -> None:
            kill(judge.browser_files, "browser")

        def leaves_a_tab(turn: ParticipantTurn) -> str:
            if turn.n == 2:
                kill(judge.browser_files, "browser")
            return (
                tool_call("browser_tabs", action="new", url=f"{elsewhere.url}harmless"),
                tool_call("browser_tabs", action="select", index=0),
                tool_call("browser_wait_for", time=0.1),
            )[turn.n]

        elsewhere.pages["/trap"] = trap
        go = f"{site.url}go"
        goes: dict[str, Script] = {
            "a typed address redirects in a new tab": lambda _: tool_call("browser_tabs", action="new", url=go),
            "a link redirects": lambda turn: tool_call("browser_click", ref=ref(turn, 'link "Partner"')),
        }
        plays = {
            "a typed address redirects": Play(lambda _: tool_call("browser_navigate", url=f"{site.url}die"), site.url),
            "a script of the typed page leads on": Play(
                lambda _: tool_call("browser_navigate", url=f"{site.url}script"), site.url
            ),
            "a tab stays there": Play(leaves_a_tab, site.url),
            "the website itself redirects": Play(lambda _: finish(), f"{site.url}die"),
        }
        plays |= {way: Play(once(script), site.url) for way, script in goes.items()}
        # One after the other: all browsers that there are get killed.
        return await play_tasks(judge, plays)

    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        hostile_site({"/harmless": HOME_PAGE, "/nothing": no_content}) as elsewhere,
        hostile_site({"/": HOME_PAGE + "<a href='/go'>Partner</a>", "/die": to_trap, "/go": to_nothing}) as site,
    ):
        # The guard lets this machine's other sites pass, as it would public ones.
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr("judge.browser.guard.is_this_machine", lambda _: False)
        site.pages["/script"] = f"<title>Script</title><script>location.replace('{elsewhere.url}trap')</script>"
        return with_judge(tmp_path_factory.mktemp("run"), play)


def once(script: Script) -> Script:
    return lambda turn: finish() if turn.n else script(turn)


def navigations_of(task: PlayedTask) -> list[dict[str, Any]]:
    result = task.result()
    found: list[dict[str, Any]] = [one for step in result["steps"] for one in step["navigations"]]
    return [*found, *result["navigations"]]


@pytest.mark.e2e
@pytest.mark.parametrize("way", KILLED)
def test_a_way_to_a_site_that_kills_the_browser(played: dict[str, PlayedTask], way: str, record_property: Told) -> None:
    task = played[way]
    record_property("outcome", task.summary())
    reached = "/harmless" if way == "a tab stays there" else "/trap"
    assert any(navigation["url"].endswith(reached) for navigation in navigations_of(task))
    assert task.result()["blame"] == KILLED[way]
    if KILLED[way] == "participant":
        assert task.verdict == ("failure", "participant_error"), task.entry
        assert task.entry["flags"] == ["off_site"]
        assert task.entry["error"].startswith("participant: led the browser off the task's website")
    else:
        assert task.verdict == ("aborted", "environment_fault"), task.entry


@pytest.mark.e2e
@pytest.mark.parametrize("way", LED_ON)
def test_a_way_to_a_site_from_which_no_page_comes(
    played: dict[str, PlayedTask], way: str, record_property: Told
) -> None:
    found = [each for each in navigations_of(played[way]) if each["url"].endswith("/nothing")]
    record_property("outcome", f"{found[0]['url']} is the choice of the {found[0]['by']}")
    assert [each["by"] for each in found] == [LED_ON[way]]
    assert played[way].entry["flags"] == ["off_site"]


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
