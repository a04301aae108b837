"""A bot wall or a server error on the first page is the site's fault; later it is not."""

from pathlib import Path

import pytest

from helpers.episode.scripted import ScriptedBrowser, play_episode
from shared.models import Action, Page


class Changed(ScriptedBrowser):
    """Shows pages with other fields from the given observation on."""

    def __init__(self, first: int, **fields: object) -> None:
        super().__init__()
        self.looks, self.first, self.fields = 0, first, fields

    async def observe(self) -> Page:
        self.looks += 1
        return (await super().observe()).model_copy(update=self.fields if self.looks > self.first else {})


def walled(first: int) -> Changed:
    return Changed(first, wall="a Cloudflare challenge")


def test_a_wall_instead_of_the_first_page_aborts_the_attempt_before_the_participant_is_asked(tmp_path: Path) -> None:
    end = play_episode(tmp_path, walled(first=0), Action(tool="browser_click"))
    assert (end.stop_reason, end.blame, end.is_aborted) == ("site_blocked", "site", True)
    assert end.error is not None
    assert "a Cloudflare challenge instead of its first page" in end.error
    (step,) = end.steps
    assert (step.reply, step.flags) == ("", ("site_blocked",))
    assert step.screenshot_sha256, "the wall is on record"


def test_a_wall_on_a_later_page_is_flagged_and_aborts_nothing(tmp_path: Path) -> None:
    end = play_episode(tmp_path, walled(first=1), Action(tool="browser_click"))
    assert (end.stop_reason, end.error) == ("finished", None)
    assert [step.flags for step in end.steps] == [(), ("site_blocked",)]


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_error_instead_of_the_first_page_is_the_sites_fault(tmp_path: Path, status: int) -> None:
    end = play_episode(tmp_path, Changed(0, http_status=status), Action(tool="browser_click"))
    assert (end.stop_reason, end.blame, end.is_aborted) == ("environment_fault", "site", True)
    assert f"answers with HTTP status {status} instead of its first page" in str(end.error)


@pytest.mark.parametrize(("first", "status"), [(0, 404), (0, 403), (1, 500)])
def test_other_error_pages_and_later_ones_are_played(tmp_path: Path, first: int, status: int) -> None:
    end = play_episode(tmp_path, Changed(first, http_status=status), Action(tool="browser_click"))
    assert (end.stop_reason, end.error) == ("finished", None)
