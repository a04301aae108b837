"""Utterances of MiniWoB++ tasks, read in the judge's own browser."""

import os
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from helpers.browser.text_browser import TextBrowser
from helpers.miniwob_package import fake_package
from judge.runner import miniwob
from judge.runner.miniwob import with_utterances
from judge.scenario.miniwob import MiniwobTask
from shared.errors import WabeError
from shared.models import Page, ProbeValue
from shared.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = str(fake_package(tmp_path))
    monkeypatch.syspath_prepend(folder)
    return Settings.from_environ({**os.environ, "PYTHONPATH": folder})


@pytest.mark.e2e
async def test_each_task_says_what_its_page_asks_for_with_its_seed(settings: Settings) -> None:
    tasks = await with_utterances([MiniwobTask("click-test", 3), MiniwobTask("click-link", 7)], settings)
    assert [task.task for task in tasks] == ["Click 3, train.", "Click 7, train."]
    assert [task.task_id for task in tasks] == ["click-test_3", "click-link_7"]


class NeverBegins(TextBrowser):
    """Shows a page that does not know its task."""

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return (ProbeValue(error="ReferenceError: WOB_UTTERANCE is not defined"),)


async def test_a_page_that_never_begins_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniwob, "_PAUSE_S", 0.0)
    address = MiniwobTask("click-test", 3).address()
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as http:
        with pytest.raises(WabeError, match=r"click-test\.html\?seed=3 does not begin: .*WOB_UTTERANCE is not defined"):
            await miniwob.utterance(NeverBegins(http), address)
