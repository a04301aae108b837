"""Odd pages on the task's own site, opened by the participant: each is an observation, and the attempt goes on."""

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.odd_pages import odd_site_pages
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, kill, tool_call

pytestmark = pytest.mark.e2e

# What the participant reads. Where it is `None`, the page can be shown, or how far it gets depends on the machine.
PAGES = {
    "svg": "cannot_be_shown",
    "svg_with_script": None,
    "broken_xml": "cannot_be_shown",
    "without_body": "cannot_be_shown",
    "shorter_than_its_length": None,
    "only_a_doctype": "cannot_be_shown",
    "bad_chunks": "cannot_be_shown",
    "invalid_gzip": "cannot_be_shown",
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
    "endless_script": "tab_busy",
    "popup_with_an_endless_script": None,
    "alerts_without_end": None,
    "file_chooser_without_end": None,
}


@pytest.mark.parametrize("name", PAGES)
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
    if PAGES[name] is not None:
        assert assessed.result()["steps"][1]["notice"]["code"] == PAGES[name]


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
