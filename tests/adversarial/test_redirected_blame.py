"""Who led a browser to another site from which no page comes, and to one that is lost while the participant thinks.

Other ways, `test_ways_to_a_trap.py` plays and `judge/episode/test_blame.py` decides.
"""

from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME as HOME_PAGE
from helpers.browser.hostile_site import Handler, hostile_site
from helpers.episode.live_judge import LiveJudge, Script, finish, ref, tool_call
from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from judge.network.policy import NetworkPolicy
from shared.errors import BrowserFault
from shared.models import Action

# What the participant does, and who chose the other site, from which no page comes.
LED_ON = {"a typed address redirects in a new tab": "participant", "a link redirects": "site"}


@pytest.fixture(scope="module")
async def attempts_by_way(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """An attempt for each way to another site, which sends no page."""

    def to_nothing(handler: Handler) -> None:
        handler.redirect(f"{elsewhere.url}nothing")

    def no_content(handler: Handler) -> None:
        handler.send(b"", 204)

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        goes: dict[str, Script] = {
            "a typed address redirects in a new tab": lambda _: tool_call(
                "browser_tabs", action="new", url=f"{site.url}go"
            ),
            "a link redirects": lambda turn: tool_call("browser_click", ref=ref(turn, 'link "Partner"')),
        }
        return await play_tasks(judge, {way: Play(once(script), site.url) for way, script in goes.items()})

    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        hostile_site({"/nothing": no_content}) as elsewhere,
        hostile_site({"/": HOME_PAGE + "<a href='/go'>Partner</a>", "/go": to_nothing}) as site,
    ):
        # The guard lets this machine's other sites pass, as it would public ones.
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr("judge.network.guard.is_this_machine", lambda _: False)
        return await with_judge(tmp_path_factory.mktemp("run"), play)


def once(script: Script) -> Script:
    return lambda turn: finish() if turn.n else script(turn)


def navigations_of(task: PlayedTask) -> list[dict[str, Any]]:
    result = task.result()
    results: list[dict[str, Any]] = [one for step in result["steps"] for one in step["navigations"]]
    return [*results, *result["navigations"]]


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("way", LED_ON)
def test_a_way_to_a_site_from_which_no_page_comes(attempts_by_way: dict[str, PlayedTask], way: str) -> None:
    results = [each for each in navigations_of(attempts_by_way[way]) if each["url"].endswith("/nothing")]
    assert [each["by"] for each in results] == [LED_ON[way]]
    assert attempts_by_way[way].entry["flags"] == ["off_site"]


def going(url: str) -> Action:
    return Action(tool="browser_navigate", params={"url": url})


CLICK = Action(tool="browser_click", params={})


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
