"""A bot wall on the first page is the site's fault; later it is only noted."""

from pathlib import Path

from helpers.episode.scripted import ScriptedBrowser, play_episode
from shared.models import Action, Page


class Walled(ScriptedBrowser):
    """Shows a wall from the given observation on."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.looks, self.first = 0, first

    async def observe(self) -> Page:
        self.looks += 1
        wall = "a Cloudflare challenge" if self.looks > self.first else ""
        return (await super().observe()).model_copy(update={"wall": wall})


def test_a_wall_instead_of_the_first_page_aborts_the_attempt_before_the_participant_is_asked(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Walled(first=0), Action(tool="browser_click"))
    assert (end.stop_reason, end.blame, end.is_aborted) == ("site_blocked", "site", True)
    assert end.error is not None
    assert "a Cloudflare challenge instead of its first page" in end.error
    (step,) = end.steps
    assert (step.reply, step.flags) == ("", ("site_blocked",))
    assert step.screenshot_sha256, "the wall is on record"


def test_a_wall_on_a_later_page_is_flagged_and_aborts_nothing(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Walled(first=1), Action(tool="browser_click"))
    assert (end.stop_reason, end.error) == ("finished", None)
    assert [step.flags for step in end.steps] == [(), ("site_blocked",)]
