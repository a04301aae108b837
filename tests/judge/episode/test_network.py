"""The network trace of an attempt: written however it ends, and a fault where it is lost."""

import asyncio
from pathlib import Path

import pytest

from helpers.episode.scripted import FINISH, HOME, ScriptedBrowser, play_episode
from helpers.trajectory.recordings import RecordedRequest
from judge.browser.session import Traffic
from judge.episode.episode import EpisodeEnd
from judge.trajectory.network import read_har
from shared.errors import BrowserFault
from shared.models import Action, Page

GO_HOME = Action(tool="browser_navigate", params={"url": HOME})


class AskingBrowser(ScriptedBrowser):
    """Its page makes one request, which is answered at the `answered`-th look at it; with 0 the browser is gone."""

    def __init__(self, answered: int = 1) -> None:
        super().__init__()
        self.answered = answered
        self.looks = 0
        self.steps: list[int] = []

    def begin_step(self, number: int) -> None:
        self.steps.append(number)

    def traffic(self) -> Traffic | None:
        self.looks += 1
        entry = RecordedRequest().har_entry(1)
        return Traffic(entries=(entry,), is_pending=self.looks < self.answered) if self.answered else None


def play(folder: Path, browser: AskingBrowser, *actions: Action, record_network: bool = True) -> EpisodeEnd:
    return play_episode(folder, browser, *actions, loop=asyncio.new_event_loop, record_network=record_network)


def test_the_requests_are_written_beside_the_steps(tmp_path: Path) -> None:
    end = play(tmp_path, AskingBrowser(), FINISH)
    assert end.network is not None
    assert (end.network.entries, end.network_missing) == (1, None)
    assert len(read_har(tmp_path / end.network.file).entries) == 1


def test_each_action_begins_a_step_of_its_own(tmp_path: Path) -> None:
    browser = AskingBrowser()
    play(tmp_path, browser, GO_HOME, Action(tool="unknown"), GO_HOME, FINISH)
    assert browser.steps == [1, 3]


def test_an_answer_that_is_being_read_is_waited_for(tmp_path: Path) -> None:
    browser = AskingBrowser(answered=3)
    assert play(tmp_path, browser, FINISH).network is not None
    assert browser.looks == 3


def test_an_answer_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    browser = AskingBrowser(answered=1_000)
    assert play(tmp_path, browser, FINISH).network is not None
    assert browser.looks < 10


def test_a_finished_attempt_whose_trace_is_lost_is_a_fault_of_the_browser(tmp_path: Path) -> None:
    end = play(tmp_path, AskingBrowser(answered=0), FINISH)
    assert (end.stop_reason, end.blame, end.network) == ("environment_fault", "browser", None)
    assert end.error == end.network_missing
    assert "its network trace is lost" in (end.error or "")


def test_an_attempt_that_had_failed_already_stays_failed_without_its_trace(tmp_path: Path) -> None:
    end = play(tmp_path, AskingBrowser(answered=0), *[Action(tool="unknown")] * 20)
    assert (end.stop_reason, end.error) == ("max_steps", None)
    assert "its network trace is lost" in (end.network_missing or "")


def test_a_fault_of_the_browser_names_the_lost_trace_too(tmp_path: Path) -> None:
    class Broken(AskingBrowser):
        async def observe(self) -> Page:
            raise BrowserFault("it was killed")

    end = play(tmp_path, Broken(answered=0), FINISH)
    assert end.error == "it was killed; its network trace is lost"


@pytest.mark.parametrize("record_network", [True, False])
def test_a_trace_that_cannot_be_written_ends_the_attempt_only_where_one_is_wanted(
    tmp_path: Path, record_network: bool
) -> None:
    class Full(AskingBrowser):
        async def observe(self) -> Page:
            (tmp_path / "network.har").mkdir(exist_ok=True)
            return await super().observe()

    end = play(tmp_path, Full(), FINISH, record_network=record_network)
    if record_network:
        assert end.stop_reason == "environment_fault"
        assert "network.har: cannot be written" in (end.network_missing or "")
    else:
        assert (end.stop_reason, end.network_missing) == ("finished", "record_network is off")
