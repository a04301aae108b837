"""A participant that plays for time: only its own time counts against it, and no waiting aborts an attempt."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from judge.browser.session import Traffic
from shared.errors import BrowserFault
from shared.models import Action

pytestmark = pytest.mark.slow

KEY = Action(tool="browser_press_key", params={"key": "Tab"})
WAIT = Action(tool="browser_wait_for", params={"time": 30})
ELSEWHERE = "https://other.example/slow"
MINUTE_S = 60
# With these actions of a minute each, the second one is over the limit if it counts.
LIMITS: dict[str, Any] = {"reply_timeout_s": 80, "step_timeout_s": 90, "task_timeout_s": 100}


def going(url: str) -> Action:
    return Action(tool="browser_navigate", params={"url": url})


async def slow(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
    if url := params.get("url"):
        browser.goes(url)
    await asyncio.sleep(MINUTE_S)


async def slow_behind_a_redirect(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
    browser.goes(params["url"], ELSEWHERE)
    await asyncio.sleep(MINUTE_S)


def test_a_slow_browser_takes_none_of_the_participants_time(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(slow), *[KEY] * 10, **LIMITS)
    assert (end.stop_reason, end.error) == ("finished", None)


def test_pauses_of_the_judge_take_none_of_the_participants_time(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(), *[KEY] * 10, step_delay=MINUTE_S, **LIMITS)
    assert (end.stop_reason, end.error) == ("finished", None)


def test_a_slow_participant_cannot_use_up_the_time_of_the_step(tmp_path: Path) -> None:
    def slowly(action: Action) -> Callable[[], Awaitable[Action]]:
        async def thinks() -> Action:
            await asyncio.sleep(MINUTE_S)
            return action

        return thinks

    # With its reply, each of these steps takes longer than the browser may.
    limits = {**LIMITS, "task_timeout_s": 400}
    end = play_episode(tmp_path, ScriptedBrowser(slow), slowly(WAIT), slowly(KEY), **limits)
    assert (end.stop_reason, end.error) == ("finished", None)


def test_a_reply_that_does_not_come_takes_its_own_time(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(), None, **LIMITS)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")


def test_waits_it_asks_for_take_its_own_time(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(slow), WAIT, WAIT, **LIMITS)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")


@pytest.mark.parametrize("action", [WAIT, KEY], ids=["a wait", "an action"])
def test_time_off_site_takes_its_own_time(tmp_path: Path, action: Action) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(slow), going(ELSEWHERE), action, **LIMITS)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")


def test_a_slow_page_behind_a_redirect_off_site_takes_its_own_time(tmp_path: Path) -> None:
    browser = ScriptedBrowser(slow_behind_a_redirect)
    end = play_episode(tmp_path, browser, going(f"{HOME}a"), going(f"{HOME}b"), **LIMITS)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")


def test_slow_pages_of_the_site_up_to_the_end_of_the_attempt_are_scored_zero(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ScriptedBrowser(slow), *[KEY] * 10, attempt_timeout_s=200, **LIMITS)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")
    assert "attempt_timeout_s" in str(end.error)


def test_a_fault_stays_the_cause_when_closing_the_browser_takes_to_the_end_of_the_attempt(tmp_path: Path) -> None:
    async def breaks(*_: Any) -> None:
        raise BrowserFault("the browser was killed")

    async def closing() -> None:
        await asyncio.sleep(300)

    end = play_episode(tmp_path, ScriptedBrowser(breaks), KEY, closing=closing, attempt_timeout_s=200, **LIMITS)
    assert (end.stop_reason, end.blame, end.error) == ("environment_fault", "browser", "the browser was killed")


def test_an_attempt_that_ends_too_late_for_its_trace_to_be_written_is_over_its_time(tmp_path: Path) -> None:
    over = threading.Event()

    class NeverRead(ScriptedBrowser):
        def traffic(self) -> Traffic | None:
            # In a thread, while the loop's clock skips to the limit.
            over.wait()
            return super().traffic()

    async def closing() -> None:
        over.set()

    done = Action(tool="finish", params={"answer": "42"})
    end = play_episode(tmp_path, NeverRead(), done, closing=closing, record_network=True, **LIMITS)
    assert (end.stop_reason, end.blame, end.network) == ("task_timeout", "participant", None)


def test_a_step_that_hangs_on_the_site_is_followed_by_an_empty_tab_and_takes_none_of_the_participants_time(
    tmp_path: Path,
) -> None:
    async def hangs(*_: Any) -> None:
        await asyncio.Event().wait()

    end = play_episode(tmp_path, ScriptedBrowser(hangs), KEY, **LIMITS)
    assert (end.stop_reason, end.error) == ("finished", None)
    assert [step.notice.code for step in end.steps if step.notice] == ["tab_took_too_long"]
    assert end.participant_s < 1
