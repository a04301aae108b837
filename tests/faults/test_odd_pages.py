"""Odd pages on the task's own site, opened by the participant: each is an observation, and the attempt goes on."""

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.odd_pages import odd_site_pages
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, kill, tool_call

pytestmark = pytest.mark.e2e

_CANNOT = frozenset({"cannot_be_shown"})
# What the participant may read. Where it is `None`, the page can be shown, or how far it gets depends on the machine.
# On a busy one, a script that never ends has not used its CPU time when the time for an observation is over.
PAGES: dict[str, frozenset[str] | None] = {
    "svg": _CANNOT,
    "svg_with_script": None,
    "broken_xml": _CANNOT,
    "without_body": _CANNOT,
    "shorter_than_its_length": None,
    "only_a_doctype": _CANNOT,
    "bad_chunks": _CANNOT,
    "invalid_gzip": _CANNOT,
    "reloads_at_once": None,
    "refreshes_without_end": None,
    "20_mb_of_text": None,
    "200000_nodes": None,
    "20000_buttons": None,
    "nested_frames": None,
    "30_popups": None,
    "200_popups": None,
    "console_flood": None,
    "history_flood": None,
    "script_of_6_s": None,
    "endless_script": frozenset({"tab_busy", "tab_took_too_long"}),
    "popup_with_an_endless_script": None,
    "alerts_without_end": None,
    "file_chooser_without_end": None,
}


@pytest.mark.parametrize(
    "name",
    each(
        PAGES,
        suite=(
            "svg",
            "shorter_than_its_length",
            "bad_chunks",
            "reloads_at_once",
            "20000_buttons",
            "nested_frames",
            "30_popups",
            "console_flood",
            "endless_script",
            "alerts_without_end",
            "file_chooser_without_end",
        ),
    ),
)
async def test_the_attempt_goes_on_after(judge: LiveJudge, name: str) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_navigate", url=f"{site.url}odd/{name}")
        if turn.observation.page.url == f"{site.url}goal":
            return finish()
        if turn.observation.page.dialog is None and turn.n < 3:
            return tool_call("browser_navigate", url=f"{site.url}goal")
        return tool_call("browser_tabs", action="new", url=f"{site.url}goal")

    with hostile_site(odd_site_pages(lambda each: each in (name, "goal"))) as site:
        assessed = await judge.play(script, site.url, step_timeout_s=120, task_timeout_s=300)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    if (messages := PAGES[name]) is not None:
        assert assessed.result()["steps"][1]["notice"]["code"] in messages


@pytest.mark.own_browser
async def test_the_attempt_goes_on_after_the_process_of_its_page_was_killed(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            assert kill(judge.browser_files, "renderer") > 0
            return tool_call("browser_press_key", key="Tab")
        return tool_call("browser_navigate", url=f"{site.url}goal") if turn.n == 1 else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    steps = assessed.result()["steps"]
    assert [step.get("notice") for step in steps] == [None, {"code": "tab_crashed"}, None]
