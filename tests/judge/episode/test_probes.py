"""Values that the judge reads in the page during an attempt, and attempts that end with one."""

import asyncio
import json
from pathlib import Path
from typing import Any

from helpers.episode.scripted import FINISH, ScriptedBrowser, play_episode
from judge.browser.session import Traffic
from judge.records.steps import ProbeValue
from shared.models import Action

CLICK = Action(tool="browser_click")
REWARD = {"kind": "probe", "expression": "reward", "expected": 1, "keep": "first", "ends": True}
WATCHED = {"kind": "probe", "expression": "reward", "expected": 1}


async def rewards(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
    browser.values["reward"] = 1


def values(*steps: Any) -> list[int | float | str | bool | None]:
    return [step.probes[0].value for step in steps if step]


def test_a_value_is_recorded_at_every_look(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(rewards), CLICK, FINISH, checks=[WATCHED])
    assert (end.stop_reason, values(*end.steps)) == ("finished", [None, 1])
    lines = (tmp_path / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["probes"] for line in lines] == [
        [{"value": None, "error": None}],
        [{"value": 1, "error": None}],
    ]


def test_a_value_that_ends_the_attempt_is_in_the_final_look(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(rewards), CLICK, CLICK, checks=[REWARD])
    assert (end.stop_reason, end.error, end.final_answer) == ("ended_by_page", None, None)
    assert (len(end.steps), values(end.final_look)) == (1, [1])


def test_the_last_step_may_end_the_attempt(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(rewards), CLICK, checks=[REWARD], max_steps=1)
    assert (end.stop_reason, values(end.final_look)) == ("ended_by_page", [1])


def test_a_value_before_the_first_action_does_not_end_the_attempt(tmp_path: Path) -> None:
    browser = ScriptedBrowser()
    browser.values["reward"] = 1
    assert play_episode(tmp_path, browser, FINISH, checks=[REWARD]).stop_reason == "finished"


def test_a_value_that_changes_after_the_last_step_leads_to_a_final_look(tmp_path: Path) -> None:
    browser = ScriptedBrowser()

    async def finishes() -> Action:
        browser.values["reward"] = 1
        return FINISH

    end = play_episode(tmp_path, browser, finishes, checks=[WATCHED])
    assert (end.stop_reason, values(end.final_look)) == ("finished", [1])


def test_a_page_of_another_site_gives_no_value(tmp_path: Path) -> None:
    async def leaves(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        browser.values["reward"] = 1
        browser.goes("https://evil.example/")

    end = play_episode(tmp_path, ScriptedBrowser(leaves), CLICK, FINISH, checks=[REWARD])
    assert end.stop_reason == "finished"
    assert end.steps[1].probes == (ProbeValue(error="a page of another site"),)


def test_participants_see_neither_expression_nor_value(tmp_path: Path) -> None:
    messages: list[str] = []
    browser = ScriptedBrowser()
    browser.values["reward"] = 87654
    play_episode(tmp_path, browser, CLICK, FINISH, checks=[WATCHED], messages=messages)
    assert len(messages) == 2
    assert not any("reward" in text or "87654" in text for text in messages)


def test_an_attempt_that_the_page_ended_needs_its_network_trace_like_any_other(tmp_path: Path) -> None:
    class Killed(ScriptedBrowser):
        def traffic(self) -> Traffic | None:
            return None

    # The trace is read in a thread, for which a loop that skips time would not wait.
    real_time = asyncio.new_event_loop
    end = play_episode(tmp_path, Killed(rewards), CLICK, checks=[REWARD], record_network=True, loop=real_time)
    assert (end.stop_reason, end.blame) == ("environment_fault", "browser")
