"""What the judge asks the site itself at the end of an attempt."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.scripted import FINISH, HOME, Acts, ScriptedBrowser, play_episode
from judge.trajectory.fetched import FetchResponse
from shared.errors import BrowserFault, ParticipantUnreachable
from shared.models import Action, Page

CLICK = Action(tool="browser_click")
CHECK = {"kind": "fetch", "url": "/api", "response": {"done": True}}
DONE = FetchResponse(status=200, type="application/json", body='{"done": true, "note": "unseen"}')


class Shop(ScriptedBrowser):
    """Answers the judge; `happened` is what it was asked to do, in order."""

    def __init__(self, answers: Callable[[], Awaitable[FetchResponse]]) -> None:
        super().__init__()
        self._answers = answers
        self.happened: list[str] = []

    async def observe(self) -> Page:
        self.happened.append("observe")
        return await super().observe()

    async def fetch(self, url: str, key: str | None) -> FetchResponse:
        self.happened.append(url)
        return await self._answers()


async def done() -> FetchResponse:
    return DONE


async def never() -> FetchResponse:
    await asyncio.Event().wait()
    return DONE


async def breaks() -> FetchResponse:
    raise BrowserFault("gone")


async def disconnects() -> Action:
    raise ParticipantUnreachable("gone")


@pytest.mark.parametrize("last", [FINISH, disconnects], ids=["finished", "disconnected"])
def test_the_site_is_asked_once_after_the_last_look(tmp_path: Path, last: Acts) -> None:
    shop, messages = Shop(done), list[str]()
    end = play_episode(tmp_path, shop, CLICK, last, checks=[CHECK], messages=messages)
    assert shop.happened == ["observe", "observe", "observe", f"{HOME}api"]
    assert [each.body for each in end.fetched] == [DONE.body]
    assert not any("unseen" in text for text in messages)


def test_a_task_without_such_checks_asks_nothing(tmp_path: Path) -> None:
    shop = Shop(done)
    assert play_episode(tmp_path, shop, FINISH).fetched == ()
    assert f"{HOME}api" not in shop.happened


@pytest.mark.slow
def test_an_answer_that_never_comes_is_an_error_and_no_fault(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Shop(never), FINISH, checks=[CHECK])
    assert (end.stop_reason, end.error) == ("finished", None)
    assert [each.error for each in end.fetched] == ["the attempt ended before the judge could ask"]


def test_at_the_limit_of_the_attempt_the_answer_is_an_error(tmp_path: Path) -> None:
    limits: dict[str, Any] = {
        "task_timeout_s": 100.0,
        "step_timeout_s": 90.0,
        "reply_timeout_s": 50.0,
        "attempt_timeout_s": 101.0,
    }

    async def thinks() -> Action:
        await asyncio.sleep(40)
        return CLICK

    async def slowly() -> FetchResponse:
        await asyncio.sleep(80)
        return DONE

    end = play_episode(tmp_path, Shop(slowly), thinks, FINISH, checks=[CHECK], **limits)
    assert (end.stop_reason, [each.body for each in end.fetched]) == ("finished", [None])


def test_a_browser_that_breaks_then_is_a_fault_of_the_environment(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Shop(breaks), FINISH, checks=[CHECK])
    assert (end.stop_reason, end.is_aborted) == ("environment_fault", True)
