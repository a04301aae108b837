"""Utterances of MiniWoB++ tasks, read in the judge's own browser."""

import os
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from helpers.browser.text_browser import TextBrowser
from judge.plugins.miniwob import importing
from judge.plugins.miniwob.importing import unreachable_notes, with_utterances
from judge.plugins.miniwob.tasks import PORT, MiniwobTask
from judge.records.steps import ProbeValue
from plugins.miniwob.package import fake_package
from shared.errors import WabeError
from shared.models import Page
from shared.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = str(fake_package(tmp_path))
    monkeypatch.syspath_prepend(folder)
    return Settings.from_environ({**os.environ, "PYTHONPATH": folder})


@pytest.mark.e2e
async def test_each_task_says_what_its_page_asks_for_with_its_seed(settings: Settings) -> None:
    tasks, unreachable = await with_utterances([MiniwobTask("click-test", 3), MiniwobTask("click-link", 7)], settings)
    assert unreachable == {}
    assert [task.task for task in tasks] == ["Click 3, train.", "Click 7, train."]
    assert [task.task_id for task in tasks] == ["click-test_3", "click-link_7"]


@pytest.mark.e2e
async def test_pairs_on_which_no_click_is_worth_a_whole_reward_are_named() -> None:
    pairs = {"circle-center": (0,), "find-midpoint": (0, 3), "bisect-angle": (0,), "right-angle": (0, 1)}
    selection = [MiniwobTask(name, seed) for name, seeds in pairs.items() for seed in seeds]
    result = (await with_utterances([*selection, MiniwobTask("hot-cold", 0)], Settings.from_environ())).unreachable
    best = {
        "circle-center_0": 0.971716,
        "find-midpoint_0": 0.983333,
        "bisect-angle_0": 0.999592,
        "right-angle_0": 0.999829,
    }
    assert {task_id: round(reward, 6) for task_id, reward in result.items()} == best
    assert len(unreachable_notes(result, "exact")) == len(best)
    assert unreachable_notes(result, "positive") == []


class NeverBegins(TextBrowser):
    """Shows a page that does not know its task."""

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return (ProbeValue(error="ReferenceError: WOB_UTTERANCE is not defined"),)


async def test_a_page_that_never_begins_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_PAUSE_S", 0.0)
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as http:
        with pytest.raises(WabeError, match=r"click-test\.html\?seed=3 does not begin: .*WOB_UTTERANCE is not defined"):
            await importing.start_task(NeverBegins(http), MiniwobTask("click-test", 3), PORT)
