"""A page that cannot be observed is an observation: a notice says so, it is recorded, and the attempt goes on."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from shared.models import Action, Notice, Page

pytestmark = pytest.mark.slow

CLICK = Action(tool="browser_click")
WAIT = Action(tool="browser_wait_for", params={"time": 1})
DRAWING = Notice(code="cannot_be_shown", kind="svg")
BUSY = Notice(code="tab_busy")


class OddBrowser(ScriptedBrowser):
    """Each look has the next of the notices, and takes as long as the next of the times."""

    def __init__(self, *notices: Notice | None, times: Iterator[float] | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._notices = iter(notices)
        self._times = times
        self.replaced: list[Notice] = []

    async def observe(self) -> Page:
        await asyncio.sleep(next(self._times, 0.0) if self._times else 0.0)
        page, notice = await super().observe(), next(self._notices, None)
        return page.model_copy(update={"notice": notice, "snapshot": ""}) if notice else page

    async def replace_tab(self, why: Notice) -> Page:
        self.replaced.append(why)
        return await super().replace_tab(why)


def notices_in(folder: Path) -> list[Any]:
    return [json.loads(line).get("notice") for line in (folder / "steps.jsonl").read_text().splitlines()]


def test_a_notice_is_sent_once_beside_the_page_and_recorded_as_data(tmp_path: Path) -> None:
    messages: list[str] = []
    end = play_episode(tmp_path, OddBrowser(None, DRAWING), CLICK, CLICK, messages=messages)
    assert end.stop_reason == "finished"
    is_told = ["Notice: This page cannot be shown: SVG image\nTools:" in text for text in messages]
    assert is_told == [False, True, False]
    assert notices_in(tmp_path) == [None, {"code": "cannot_be_shown", "kind": "svg"}, None]


def test_a_step_without_a_notice_is_recorded_as_before(tmp_path: Path) -> None:
    play_episode(tmp_path, ScriptedBrowser())
    assert "notice" not in (tmp_path / "steps.jsonl").read_text()


def test_a_first_page_that_cannot_be_observed_is_a_fault_of_the_site(tmp_path: Path) -> None:
    end = play_episode(tmp_path, OddBrowser(DRAWING), CLICK)
    assert (end.stop_reason, end.blame) == ("environment_fault", "site")
    assert end.error == f"{HOME} cannot be observed: This page cannot be shown: SVG image"


def test_a_look_that_takes_the_whole_step_ends_with_an_empty_tab(tmp_path: Path) -> None:
    browser = OddBrowser(times=iter([0.0, 1000.0]))
    end = play_episode(tmp_path, browser, CLICK, CLICK, step_timeout_s=100, reply_timeout_s=50)
    assert end.stop_reason == "finished"
    assert browser.replaced == [Notice(code="tab_took_too_long", seconds=100)]
    assert end.steps[1].url == "about:blank"


def test_an_action_that_takes_the_whole_step_fails_and_its_tab_is_replaced(tmp_path: Path) -> None:
    async def hangs(browser: ScriptedBrowser, tool: str, params: dict[str, Any]) -> None:
        await asyncio.sleep(1000)

    browser = OddBrowser(does=hangs)
    messages: list[str] = []
    end = play_episode(tmp_path, browser, CLICK, messages=messages, step_timeout_s=100, reply_timeout_s=50)
    assert end.stop_reason == "finished"
    assert browser.replaced == [Notice(code="tab_took_too_long", seconds=100)]
    assert "Feedback: the step took longer than 100 s" in messages[1]


@pytest.mark.parametrize(("pages", "is_charged"), [(1, False), (2, True)])
def test_only_the_first_page_that_was_given_up_costs_the_participant_nothing(
    tmp_path: Path, pages: int, is_charged: bool
) -> None:
    browser = OddBrowser(None, *[BUSY] * pages, times=iter([0.0, *[50.0] * pages]))
    end = play_episode(tmp_path, browser, *[CLICK] * pages)
    assert end.stop_reason == "finished"
    assert end.participant_s == pytest.approx(50.0 if is_charged else 0.0, abs=1.0)


def test_a_participant_that_keeps_opening_costly_pages_uses_up_its_time(tmp_path: Path) -> None:
    browser = OddBrowser(None, *[BUSY] * 99, times=iter([0.0, *[50.0] * 99]))
    end = play_episode(tmp_path, browser, *[CLICK] * 99, max_steps=100, task_timeout_s=400)
    assert (end.stop_reason, end.blame) == ("task_timeout", "participant")


def test_no_probe_is_read_in_a_page_that_cannot_be_observed(tmp_path: Path) -> None:
    checks = [{"kind": "probe", "expression": "done", "expected": 1}]
    end = play_episode(tmp_path, OddBrowser(None, DRAWING), CLICK, CLICK, checks=checks)
    assert [step.probes[0].error for step in end.steps] == [None, "the page cannot be observed", None]
