"""A browser that is lost on the way to another site: redirects, tabs, scripts and links that hide who led it there."""

from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hops import typed, went
from helpers.browser.hostile_site import HOME as HOME_PAGE
from helpers.browser.hostile_site import Handler, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, crash, finish, ref, tool_call
from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from judge.browser.session import Hop
from judge.network.policy import NetworkPolicy
from shared.errors import BrowserFault
from shared.models import Action

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
async def attempts_by_way(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """An attempt for each way to another site, which kills the browser or sends no page."""

    def to_trap(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}trap")

    def to_nothing(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}nothing")

    def no_content(handler: Handler) -> None:
        handler.send(b"", 204)

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        def trap(_: Handler) -> None:
            crash(judge.browser_files)

        def leaves_a_tab(turn: ParticipantTurn) -> str:
            if turn.n == 2:
                crash(judge.browser_files)
            calls = [
                tool_call("browser_tabs", action="new", url=f"{elsewhere.url}harmless"),
                tool_call("browser_tabs", action="select", index=0),
                tool_call("browser_wait_for", time=0.1),
            ]
            return calls[turn.n]

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
        monkeypatch.setattr("judge.network.guard.is_this_machine", lambda _: False)
        site.pages["/script"] = f"<title>Script</title><script>location.replace('{elsewhere.url}trap')</script>"
        return await with_judge(tmp_path_factory.mktemp("run"), play)


def once(script: Script) -> Script:
    return lambda turn: finish() if turn.n else script(turn)


def navigations_of(task: PlayedTask) -> list[dict[str, Any]]:
    result = task.result()
    results: list[dict[str, Any]] = [one for step in result["steps"] for one in step["navigations"]]
    return [*results, *result["navigations"]]


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("way", KILLED)
def test_a_way_to_a_site_that_kills_the_browser(attempts_by_way: dict[str, PlayedTask], way: str) -> None:
    task = attempts_by_way[way]
    reached = "/harmless" if way == "a tab stays there" else "/trap"
    assert any(navigation["url"].endswith(reached) for navigation in navigations_of(task))
    assert task.result()["blame"] == KILLED[way]
    if KILLED[way] == "participant":
        assert task.verdict == ("failure", "participant_error"), task.entry
        assert task.entry["flags"] == ["off_site"]
        assert task.entry["error"].startswith("participant: led the browser to http")
        assert task.result()["blame_facts"]["address"].endswith(reached)
    else:
        assert task.verdict == ("aborted", "environment_fault"), task.entry


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("way", LED_ON)
def test_a_way_to_a_site_from_which_no_page_comes(attempts_by_way: dict[str, PlayedTask], way: str) -> None:
    results = [each for each in navigations_of(attempts_by_way[way]) if each["url"].endswith("/nothing")]
    assert [each["by"] for each in results] == [LED_ON[way]]
    assert attempts_by_way[way].entry["flags"] == ["off_site"]


def going(url: str) -> Action:
    return Action(tool="browser_navigate", params={"url": url})


def typing(text: str) -> Action:
    return Action(tool="browser_type", params={"text": text})


CLICK = Action(tool="browser_click", params={})
BACK = Action(tool="browser_navigate_back", params={})
WAIT = Action(tool="browser_wait_for", params={"time": 1})
Moves = list[tuple[Action, list[Hop]]]
# Actions, and where each takes the browser: the last one breaks it.
TRICKS: dict[str, Moves] = {
    "over several redirects of the site": [(going(f"{HOME}a"), typed(f"{HOME}a", f"{HOME}b", ELSEWHERE))],
    "over another site and back": [(going(f"{HOME}a"), typed(f"{HOME}a", ELSEWHERE, f"{HOME}back"))],
    "by a page that leads on while the participant waits": [
        (going(f"{HOME}a"), typed(f"{HOME}a")),
        (WAIT, went(ELSEWHERE)),
    ],
    "by the link of a page whose address names the target": [
        (going(f"{HOME}leave?to=https%3A%2F%2Fwww.other.example%2Ftrap"), typed(f"{HOME}leave")),
        (CLICK, went(ELSEWHERE)),
    ],
    "by a form into which it typed the target": [(typing(f"see {ELSEWHERE}"), went(f"{HOME}go?id=1", ELSEWHERE))],
    "by a link of the site it went to": [(going(ELSEWHERE), typed(ELSEWHERE)), (CLICK, went("https://third.example/"))],
    "by a page elsewhere that leads to an address of the site": [
        (going(ELSEWHERE), typed(ELSEWHERE)),
        (WAIT, went(f"{HOME}trap")),
    ],
    "by a page elsewhere that navigates when the browser goes back": [
        (going(ELSEWHERE), typed(ELSEWHERE)),
        (BACK, [Hop(url=f"{HOME}trap", cause="back")]),
    ],
    "by a service worker that outlives its page": [
        (going(ELSEWHERE), [*typed(ELSEWHERE), Hop(event="worker", frame=9, url=f"{ELSEWHERE}.js")]),
        (going(HOME), typed(HOME)),
        (CLICK, went(f"{HOME}a")),
    ],
    "by a page that was renamed after the participant named its address": [
        (going(f"{HOME}show?text=x"), [*typed(f"{HOME}show?text=x"), Hop(event="renamed", url=f"{HOME}cart")]),
        (WAIT, []),
    ],
    "by one frame of a thousand": [
        (typing("<iframe src=…>"), went(f"{HOME}comments")),
        (CLICK, [*went(f"{HOME}a"), *went(ELSEWHERE, frame=1, in_frame=True)]),
    ],
    "behind a flood of documents": [(typing("x"), went(f"{HOME}a")), (CLICK, [Hop(event="overflow")])],
}
HONEST: dict[str, Moves] = {
    "a link": [(CLICK, went(ELSEWHERE))],
    "a link that redirects": [(CLICK, went(f"{HOME}out", "https://tracker.example/", ELSEWHERE))],
    "a wait on a page that the site led to": [(CLICK, went(f"{HOME}a")), (WAIT, went(ELSEWHERE))],
    "a frame of the site": [(CLICK, [*went(f"{HOME}a"), *went(ELSEWHERE, frame=1, in_frame=True)])],
    "a page of the site after a visit elsewhere": [
        (going(ELSEWHERE), typed(ELSEWHERE)),
        (BACK, went(HOME, cause="back")),
        (CLICK, went(f"{HOME}a")),
    ],
    "a page of the site to which a search led": [
        (typing("desk"), went(f"{HOME}search?q=desk")),
        (CLICK, went(f"{HOME}a")),
    ],
    "a link of a page whose address it typed": [(going(f"{HOME}a"), typed(f"{HOME}a")), (CLICK, went(f"{HOME}b"))],
    "a link that it followed before it searched": [
        (CLICK, went(ELSEWHERE)),
        (BACK, went(HOME, cause="back")),
        (typing("desk"), went(f"{HOME}search?q=desk")),
        (CLICK, went(ELSEWHERE)),
    ],
}


def broken_on_the_way(folder: Path, moves: Moves) -> Any:
    steps = iter(moves)

    async def does(browser: ScriptedBrowser, *_: Any) -> None:
        hops = next(steps)[1]
        browser.hops += hops
        text = [hop.url for hop in hops if hop.event == "document" and not hop.in_frame]
        browser.url = text[-1] if text else browser.url
        if hops is moves[-1][1]:
            raise BrowserFault("the browser was killed")

    end = play_episode(folder, ScriptedBrowser(does), *[move[0] for move in moves])
    facts = end.blame_facts
    assert facts is not None
    return end


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trap_that_the_participant_reached(tmp_path: Path, trick: str) -> None:
    end = broken_on_the_way(tmp_path, TRICKS[trick])
    assert (end.stop_reason, end.blame) == ("participant_error", "participant")


@pytest.mark.parametrize("way", HONEST)
def test_a_broken_page_that_the_site_led_to_is_not_blamed_on_the_participant(tmp_path: Path, way: str) -> None:
    end = broken_on_the_way(tmp_path, HONEST[way])
    assert (end.stop_reason, end.blame) == ("environment_fault", "browser")


def test_a_page_that_leads_on_while_the_participant_thinks_is_not_excused_by_its_next_action(tmp_path: Path) -> None:
    browser = ScriptedBrowser()

    async def does(*_: Any) -> None:
        browser.goes_to(f"{HOME}opaque")

    browser.does = does

    async def thinks() -> Action:
        browser.goes(f"{HOME}trap")
        browser.does = breaks
        return CLICK

    async def breaks(*_: Any) -> None:
        raise BrowserFault("the browser was killed")

    end = play_episode(tmp_path, browser, going(f"{HOME}opaque"), thinks)
    assert end.blame == "participant"
