"""A lost task made to look like somebody else's fault, so that it is left out of the rates: it counts all the same."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from helpers_assessment import Lab, Look, finish, kill, ref, say
from helpers_hostile_site import HOME, Handler, Page, hostile_site
from judge.sites import NetworkPolicy

pytestmark = pytest.mark.e2e
HANGING = "<title>Hang</title><h1>Hang</h1><script>setTimeout(() => { for (;;); }, 50)</script>"


@pytest.fixture
def both_sites_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets this machine's other sites pass, as it would a public one."""
    monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
    monkeypatch.setattr("judge.browser.guard.is_this_machine", lambda _: False)


@pytest.mark.usefixtures("both_sites_allowed")
async def test_leading_the_browser_to_a_page_elsewhere_that_breaks_it_is_scored_zero(judge: Lab) -> None:
    with hostile_site() as site, hostile_site({"/hang": HANGING}) as elsewhere:

        def script(look: Look) -> str:
            return say("browser_navigate", url=f"{elsewhere.url}hang") if look.n == 0 else finish()

        limits: dict[str, Any] = {"call_timeout_s": 4, "max_task_retries": 1}
        books = await judge.play(script, site.url, **limits)
    assert books.verdict == ("failure", "participant_error")
    assert books.entry["error"].startswith("participant: led the browser off the task's website")
    assert books.detail["scored_tasks"] == 1
    assert "off_site" in books.entry["flags"] or elsewhere.url in str(books.result()["steps"])


AT_ONCE = "<title>Hang</title><script>for (;;);</script>"


@pytest.mark.usefixtures("both_sites_allowed")
@pytest.mark.parametrize("how", ["navigate", "tab", "way back", "tab behind"])
async def test_no_detour_to_a_page_elsewhere_that_breaks_the_browser_is_an_excuse(judge: Lab, how: str) -> None:
    def at_the_second_visit(handler: Handler) -> None:
        body = HOME if elsewhere.seen.count("/late") % 2 else AT_ONCE
        handler.send(body.encode(), Cache_Control="no-store")

    def script(look: Look) -> str:
        page = f"{elsewhere.url}late"
        plan = {
            "navigate": [say("browser_navigate", url=f"{elsewhere.url}hang")],
            "tab": [say("browser_tabs", action="new", url=f"{elsewhere.url}hang")],
            "way back": [
                say("browser_navigate", url=page),
                say("browser_navigate", url=site.url),
                say("browser_navigate_back"),
            ],
            "tab behind": [
                say("browser_tabs", action="new", url=f"{elsewhere.url}wait"),
                say("browser_tabs", action="select", index=0),
                say("browser_wait_for", time=1),
            ],
        }[how]
        if how == "tab behind" and look.n == 2:
            kill(judge.place, "browser")
        return plan[look.n] if look.n < len(plan) else finish()

    pages: dict[str, Page] = {"/hang": AT_ONCE, "/late": at_the_second_visit, "/wait": HOME}
    with hostile_site() as site, hostile_site(pages) as elsewhere:
        books = await judge.play(script, site.url, call_timeout_s=4, max_task_retries=1)
    assert books.verdict == ("failure", "participant_error"), books.entry
    assert books.entry["error"].startswith("participant: led the browser off the task's website")
    assert books.result()["steps"][-1]["action"] is not None


ON_A_KEY = "<title>Hang</title><h1>Hang</h1><script>onkeydown = () => { for (;;); }</script>"


@pytest.mark.usefixtures("both_sites_allowed")
@pytest.mark.parametrize("how", ["a link of the site", "the website's own address"])
async def test_an_honest_participant_is_not_blamed_for_where_the_site_leads(judge: Lab, how: str) -> None:
    def script(look: Look) -> str:
        if how == "a link of the site" and look.n == 0:
            return say("browser_click", ref=ref(look, 'link "Partner"'))
        return say("browser_press_key", key="a")

    with hostile_site({"/partner": ON_A_KEY}) as partner:
        partners = f"{partner.url}partner"

        def moved(handler: Handler) -> None:
            handler.redirect(partners)

        home: Page = moved if how == "the website's own address" else f"{HOME}<a href='{partners}'>Partner</a>"
        with hostile_site({"/": home}) as site:
            books = await judge.play(script, site.url, call_timeout_s=4, max_task_retries=1)
    assert books.verdict == ("aborted", "environment_fault"), books.entry
    assert books.entry["error"].startswith("browser: ")
    assert books.result()["steps"][-1]["url"] == partners
    assert ("off_site" in books.entry["flags"]) == (how == "a link of the site")


@pytest.mark.usefixtures("both_sites_allowed")
async def test_a_way_through_another_site_is_off_site_play_also_when_it_leads_back_at_once(judge: Lab) -> None:
    def back(handler: Handler) -> None:
        handler.redirect(f"{site.url}goal")

    def script(look: Look) -> str:
        return say("browser_navigate", url=f"{elsewhere.url}back") if look.n == 0 else finish()

    with hostile_site() as site, hostile_site({"/back": back}) as elsewhere:
        books = await judge.play(script, site.url, off_site="fail")
    assert books.verdict == ("failure", "finished")
    assert books.entry["flags"] == ["off_site"]
    assert all(step["url"].startswith(site.url) for step in books.result()["steps"])


LONG: dict[str, Callable[[str], str]] = {
    "typing key by key": lambda field: say("browser_type", ref=field, text="x" * 10_000, slowly=True),
    "many fields": lambda field: say(
        "browser_fill_form", fields=[{"target": field, "name": "f", "type": "textbox", "value": "x" * 2_000}] * 50
    ),
    "a wait for what never comes": lambda _: say("browser_wait_for", time=5, text="never", textGone="Welcome"),
}


@pytest.mark.parametrize("kind", LONG)
async def test_an_action_made_as_long_as_can_be_is_no_fault_of_the_browser(judge: Lab, kind: str) -> None:
    def script(look: Look) -> str:
        return LONG[kind](ref(look, 'textbox "Field"')) if look.n == 0 else finish()

    with hostile_site() as site:
        books = await judge.play(script, site.url)
    assert books.verdict == ("failure", "finished"), books.entry


KEYS = ["Control+u", "Control+o", "Control+s", "Control+p", "Control+t", "Control+n", "Control+w", "Control+Shift+i"]
KEYS += ["F12", "F1", "F6", "Alt+F4", "Control+l", "Control+j", "Control+h", "Control+Shift+Delete", "Shift+Escape"]


async def test_keys_of_the_browser_itself_reach_the_page_alone(judge: Lab) -> None:
    def script(look: Look) -> str:
        return say("browser_press_key", key=KEYS[look.n]) if look.n < len(KEYS) else finish()

    with hostile_site() as site:
        books = await judge.play(script, site.url, max_steps=len(KEYS) + 1)
    assert books.verdict == ("failure", "finished"), books.entry
    assert {step["url"] for step in books.result()["steps"]} == {site.url}
    assert books.entry["steps_taken"] == len(KEYS) + 1


@pytest.mark.usefixtures("both_sites_allowed")
async def test_a_fault_on_the_tasks_own_site_in_one_attempt_keeps_the_abort(judge: Lab) -> None:
    with hostile_site() as site, hostile_site({"/hang": HANGING}) as elsewhere:

        def script(look: Look) -> str:
            if look.episode == 0:
                kill(judge.place, "browser")
                return say("browser_press_key", key="Tab")
            return say("browser_navigate", url=f"{elsewhere.url}hang") if look.n == 0 else finish()

        books = await judge.play(script, site.url, call_timeout_s=4, max_task_retries=1)
    assert books.verdict == ("aborted", "environment_fault")


async def test_a_slow_participant_cannot_use_up_the_time_of_the_step(judge: Lab) -> None:

    async def script(look: Look) -> str:
        await asyncio.sleep(3)
        return say("browser_wait_for", time=3) if look.n == 0 else finish()

    with hostile_site() as site:
        limits = {"reply_timeout_s": 4, "step_timeout_s": 4.5, "call_timeout_s": 4, "navigation_timeout_s": 2}
        books = await judge.play(script, site.url, **limits)
    assert books.verdict == ("failure", "finished"), books.entry


async def test_tabs_without_end_are_refused_before_they_are_a_fault(judge: Lab) -> None:
    def script(look: Look) -> str:
        return say("browser_tabs", action="new") if look.n < 25 else finish()

    with hostile_site() as site:
        books = await judge.play(script, site.url, max_steps=30, task_timeout_s=120)
    assert books.verdict == ("failure", "finished"), books.entry
    steps = books.result()["steps"]
    assert "close one before" in steps[24]["outcome"]["message"]
    assert steps[24]["outcome"]["line"] is None


async def test_a_killed_participant_is_no_fault_of_the_browser(judge: Lab) -> None:
    async def script(look: Look) -> str:
        raise RuntimeError("I am gone")

    with hostile_site() as site:
        books = await judge.play(script, site.url)
    assert books.verdict == ("failure", "participant_error")
