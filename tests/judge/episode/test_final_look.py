"""After `finish` the page is looked at once more: checks of the end are judged on what it became."""

from pathlib import Path

import pytest

from helpers.episode.scripted import ScriptedBrowser, play_episode
from judge.store import TaskStore, load_trajectory
from judge.trajectory.record import Attempt
from shared.errors import BrowserFault
from shared.models import Page, Task

SAVING, SAVED, BROKEN = "- status: Saving", "- status: Saved", ""


class ChangingBrowser(ScriptedBrowser):
    """Shows one snapshot after the other, and breaks at `BROKEN`."""

    def __init__(self, *snapshots: str) -> None:
        super().__init__()
        self._snapshots = iter(snapshots)

    async def observe(self) -> Page:
        snapshot = next(self._snapshots)
        if snapshot == BROKEN:
            raise BrowserFault("gone")
        return (await super().observe()).model_copy(update={"snapshot": snapshot})


@pytest.mark.parametrize(
    ("snapshots", "recorded"),
    [((SAVING, SAVED), [SAVING, SAVED]), ((SAVING, SAVING), [SAVING]), ((SAVING, BROKEN), [SAVING])],
    ids=["changed", "unchanged", "browser gone"],
)
def test_a_page_that_changed_while_the_participant_replied_is_recorded(
    tmp_path: Path, snapshots: tuple[str, ...], recorded: list[str]
) -> None:
    end = play_episode(tmp_path, ChangingBrowser(*snapshots))
    assert end.stop_reason == "finished"
    assert [(tmp_path / (step.snapshot or "")).read_text() for step in end.steps] == recorded


def test_the_final_look_is_not_a_step_of_the_participant(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ChangingBrowser(SAVING, SAVED))
    task = Task(task_id="t", website="https://shop.example/", task="Save.")
    result = Attempt(
        task=task,
        steps=end.steps,
        stop_reason=end.stop_reason,
        max_steps=1,
        number=1,
        started_at=end.started_at,
        ended_at=end.ended_at,
    )
    assert (len(result.steps), result.steps_taken, len(result.action_history)) == (2, 1, 1)
    TaskStore(tmp_path).write_result(result.to_json())
    assert [step.outcome is None for step in load_trajectory(tmp_path).steps] == [False, True]
