"""A lost task made to look like somebody else's fault, so that it is left out of the rates: it counts all the same."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME, Handler, Page, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, kill, ref, tool_call
from judge.sites import NetworkPolicy

pytestmark = pytest.mark.e2e
HANGING = "<title>Hang</title><h1>Hang</h1><script>setTimeout(() => { for (;;); }, 50)</script>"


@pytest.fixture
def both_sites_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets this machine's other sites pass, as it would a public one."""
    monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
    monkeypatch.setattr("judge.browser.guard.is_this_machine", lambda _: False)


@pytest.mark.usefixtures("both_sites_allowed")
async def test_leading_the_browser_to_a_page_elsewhere_that_breaks_it_is_scored_zero(judge: LiveJudge) -> None:
    with hostile_site() as site, hostile_site({"/hang": HANGING}) as elsewhere:

        def script(turn: ParticipantTurn) -> str:
            return tool_call("browser_navigate", url=f"{elsewhere.url}hang") if turn.n == 0 else finish()

        limits: dict[str, Any] = {"call_timeout_s": 4, "max_task_retries": 1}
        assessed = await judge.play(script, site.url, **limits)
    assert assessed.verdict == ("failure", "participant_error")
    assert assessed.entry["error"].startswith("participant: led the browser off the task's website")
    assert assessed.detail["scored_tasks"] == 1
    assert "off_site" in assessed.entry["flags"] or elsewhere.url in str(assessed.result()["steps"])


AT_ONCE = "<title>Hang</title><script>for (;;);</script>"


@pytest.mark.usefixtures("both_sites_allowed")
@pytest.mark.parametrize("how", ["navigate", "tab", "way back", "tab behind"])
async def test_no_detour_to_a_page_elsewhere_that_breaks_the_browser_is_an_excuse(judge: LiveJudge, how: str) -> None:
    def at_the_second_visit(handler: Handler) -> None:
        body = HOME if elsewhere.seen.count("/late") % 2 else AT_ONCE
        handler.send(body.encode(), Cache_Control="no-store")

    def script(turn: ParticipantTurn) -> str:
        page = f"{elsewhere.url}late"
        plan = {
            "navigate": [tool_call("browser_navigate", url=f"{elsewhere.url}hang")],
            "tab": [tool_call("browser_tabs", action="new", url=f"{elsewhere.url}hang")],
            "way back": [
                tool_call("browser_navigate", url=page),
                tool_call("browser_navigate", url=site.url),
                tool_call("browser_navigate_back"),
            ],
            "tab behind": [
                tool_call("browser_tabs", action="new", url=f"{elsewhere.url}wait"),
                tool_call("browser_tabs", action="select", index=0),
                tool_call("browser_wait_for", time=1),
            ],
        }[how]
        if how == "tab behind" and turn.n == 2:
            kill(judge.browser_files, "browser")
        return plan[turn.n] if turn.n < len(plan) else finish()

    pages: dict[str, Page] = {"/hang": AT_ONCE, "/late": at_the_second_visit, "/wait": HOME}
    with hostile_site() as site, hostile_site(pages) as elsewhere:
        assessed = await judge.play(script, site.url, call_timeout_s=4)
    assert assessed.verdict == ("failure", "participant_error"), assessed.entry
    assert assessed.entry["error"].startswith("participant: led the browser off the task's website")
    assert assessed.result()["steps"][-1]["action"] is not None


ON_A_KEY = "<title>Hang</title><h1>Hang</h1><script>onkeydown = () => { for (;;); }</script>"


@pytest.mark.usefixtures("both_sites_allowed")
@pytest.mark.parametrize("how", ["a link of the site", "the website's own address"])
async def test_an_honest_participant_is_not_blamed_for_where_the_site_leads(judge: LiveJudge, how: str) -> None:
    def script(turn: ParticipantTurn) -> str:
        if how == "a link of the site" and turn.n == 0:
            return tool_call("browser_click", ref=ref(turn, 'link "Partner"'))
        return tool_call("browser_press_key", key="a")

    with hostile_site({"/partner": ON_A_KEY}) as partner:
        partners = f"{partner.url}partner"

        def moved(handler: Handler) -> None:
            handler.redirect(partners)

        home: Page = moved if how == "the website's own address" else f"{HOME}<a href='{partners}'>Partner</a>"
        with hostile_site({"/": home}) as site:
            assessed = await judge.play(script, site.url, call_timeout_s=4)
    assert assessed.verdict == ("aborted", "environment_fault"), assessed.entry
    is_page_time = assessed.entry["settle"] == "page-time"
    assert assessed.entry["error"].startswith("site: a script of the page did not end" if is_page_time else "browser: ")
    assert assessed.result()["steps"][-1]["url"] == partners
    assert ("off_site" in assessed.entry["flags"]) == (how == "a link of the site")


@pytest.mark.usefixtures("both_sites_allowed")
async def test_a_way_through_another_site_is_off_site_play_also_when_it_leads_back_at_once(judge: LiveJudge) -> None:
    def back(handler: Handler) -> None:
        handler.redirect(f"{site.url}goal")

    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_navigate", url=f"{elsewhere.url}back") if turn.n == 0 else finish()

    with hostile_site() as site, hostile_site({"/back": back}) as elsewhere:
        assessed = await judge.play(script, site.url, off_site="fail")
    assert assessed.verdict == ("failure", "finished")
    assert assessed.entry["flags"] == ["off_site"]
    assert all(step["url"].startswith(site.url) for step in assessed.result()["steps"])


LONG: dict[str, Callable[[str], str]] = {
    "typing key by key": lambda field: tool_call("browser_type", ref=field, text="x" * 10_000, slowly=True),
    "many fields": lambda field: tool_call(
        "browser_fill_form", fields=[{"target": field, "name": "f", "type": "textbox", "value": "x" * 2_000}] * 50
    ),
    "a wait for what never comes": lambda _: tool_call("browser_wait_for", time=5, text="never", textGone="Welcome"),
}


@pytest.mark.parametrize("kind", LONG)
async def test_an_action_made_as_long_as_can_be_is_no_fault_of_the_browser(judge: LiveJudge, kind: str) -> None:
    def script(turn: ParticipantTurn) -> str:
        return LONG[kind](ref(turn, 'textbox "Field"')) if turn.n == 0 else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("failure", "finished"), assessed.entry


KEYS = ["Control+u", "Control+o", "Control+s", "Control+p", "Control+t", "Control+n", "Control+w", "Control+Shift+i"]
KEYS += ["F12", "F1", "F6", "Alt+F4", "Control+l", "Control+j", "Control+h", "Control+Shift+Delete", "Shift+Escape"]


async def test_keys_of_the_browser_itself_reach_the_page_alone(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_press_key", key=KEYS[turn.n]) if turn.n < len(KEYS) else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_steps=len(KEYS) + 1)
    assert assessed.verdict == ("failure", "finished"), assessed.entry
    assert {step["url"] for step in assessed.result()["steps"]} == {site.url}
    assert assessed.entry["steps_taken"] == len(KEYS) + 1


@pytest.mark.usefixtures("both_sites_allowed")
async def test_a_fault_on_the_tasks_own_site_in_one_attempt_keeps_the_abort(judge: LiveJudge) -> None:
    with hostile_site() as site, hostile_site({"/hang": HANGING}) as elsewhere:

        def script(turn: ParticipantTurn) -> str:
            if turn.episode == 0:
                kill(judge.browser_files, "browser")
                return tool_call("browser_press_key", key="Tab")
            return tool_call("browser_navigate", url=f"{elsewhere.url}hang") if turn.n == 0 else finish()

        assessed = await judge.play(script, site.url, call_timeout_s=4, max_task_retries=1)
    assert assessed.verdict == ("aborted", "environment_fault")


async def test_a_slow_participant_cannot_use_up_the_time_of_the_step(judge: LiveJudge) -> None:

    async def script(turn: ParticipantTurn) -> str:
        await asyncio.sleep(3)
        return tool_call("browser_wait_for", time=3) if turn.n == 0 else finish()

    with hostile_site() as site:
        limits: dict[str, Any] = {
            "reply_timeout_s": 4,
            "step_timeout_s": 4.5,
            "call_timeout_s": 4,
            "navigation_timeout_s": 2,
        }
        assessed = await judge.play(script, site.url, **limits)
    assert assessed.verdict == ("failure", "finished"), assessed.entry


async def test_tabs_without_end_are_refused_before_they_are_a_fault(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_tabs", action="new") if turn.n < 25 else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_steps=30, task_timeout_s=120)
    assert assessed.verdict == ("failure", "finished"), assessed.entry
    steps = assessed.result()["steps"]
    assert "close one before" in steps[24]["outcome"]["message"]
    assert steps[24]["outcome"]["line"] is None


async def test_a_killed_participant_is_no_fault_of_the_browser(judge: LiveJudge) -> None:
    async def script(turn: ParticipantTurn) -> str:
        raise RuntimeError("I am gone")

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("failure", "participant_error")
