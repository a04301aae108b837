"""The page is looked at once more when an attempt ends before a step has shown what became of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.scripted import Acts, ScriptedBrowser, play_episode
from helpers.llm.scripted import JPEG, ScriptedModel, parts_for, webjudge_script
from helpers.results import a_result, a_step
from judge.episode.episode import EpisodeEnd
from judge.judges.rescoring import judge_stored
from judge.judges.webjudge import WebJudge
from judge.store import load_trajectory
from judge.store.layout import TaskStore
from shared.errors import BrowserFault, ParticipantUnreachable
from shared.llm.model import ImagePart
from shared.models import Action, Page

SAVING, SAVED, BROKEN = "- status: Saving", "- status: Saved", ""
CLICK = Action(tool="browser_click")


class ChangingBrowser(ScriptedBrowser):
    """Shows one snapshot after the other, and breaks at `BROKEN`."""

    def __init__(self, *snapshots: str) -> None:
        super().__init__()
        self._snapshots = iter(snapshots)

    async def observe(self) -> Page:
        snapshot = next(self._snapshots)
        if snapshot == BROKEN:
            raise BrowserFault("gone")
        picture = JPEG + snapshot.encode()
        return (await super().observe()).model_copy(update={"snapshot": snapshot, "screenshot": picture})


async def disconnects() -> Action:
    raise ParticipantUnreachable("gone")


def last_page(folder: Path, end: EpisodeEnd) -> str | None:
    """The snapshot of the final look, if there was one."""
    return (folder / (end.final_look.snapshot or "")).read_text() if end.final_look else None


def stored(folder: Path, end: EpisodeEnd) -> EpisodeEnd:
    TaskStore(folder).write_result(end.to_json())
    return end


@pytest.mark.parametrize(
    ("snapshots", "final"),
    [((SAVING, SAVED), SAVED), ((SAVING, SAVING), None), ((SAVING, BROKEN), None)],
    ids=["changed", "unchanged", "browser gone"],
)
def test_a_page_that_changed_while_the_participant_finished_is_recorded(
    tmp_path: Path, snapshots: tuple[str, ...], final: str | None
) -> None:
    end = play_episode(tmp_path, ChangingBrowser(*snapshots))
    assert (end.stop_reason, len(end.steps), last_page(tmp_path, end)) == ("finished", 1, final)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("actions", "config", "stop_reason"),
    [
        ((CLICK,), {"max_steps": 1}, "max_steps"),
        ((None,), {}, "task_timeout"),
        ((disconnects,), {}, "participant_error"),
    ],
    ids=["over the steps", "out of time", "gone"],
)
def test_every_end_that_is_not_a_fault_has_its_final_look(
    tmp_path: Path, actions: tuple[Acts, ...], config: dict[str, Any], stop_reason: str
) -> None:
    end = play_episode(tmp_path, ChangingBrowser(SAVING, SAVED), *actions, **config)
    assert (end.stop_reason, len(end.steps), last_page(tmp_path, end)) == (stop_reason, 1, SAVED)


def test_the_effect_of_the_last_action_is_recorded_even_if_the_page_reads_the_same(tmp_path: Path) -> None:
    end = play_episode(tmp_path, ChangingBrowser(SAVING, SAVING), CLICK, max_steps=1)
    assert last_page(tmp_path, end) == SAVING


@pytest.mark.slow
def test_a_final_look_that_never_ends_does_not_change_how_the_attempt_ended(tmp_path: Path) -> None:
    class Hanging(ChangingBrowser):
        async def observe(self) -> Page:
            page = await super().observe()
            if page.snapshot == SAVED:
                await asyncio.Event().wait()
            return page

    end = play_episode(tmp_path, Hanging(SAVING, SAVED))
    assert (end.stop_reason, end.error, end.final_look) == ("finished", None, None)


def test_the_final_look_lies_outside_the_trajectory_and_is_not_a_step(tmp_path: Path) -> None:
    result = stored(tmp_path, play_episode(tmp_path, ChangingBrowser(SAVING, SAVED)))
    assert (len(result.steps), result.steps_taken, len(result.action_history)) == (1, 1, 1)
    assert [path.name for path in (tmp_path / "trajectory").iterdir()] == ["step_000.jpg"]
    trajectory = load_trajectory(tmp_path)
    assert trajectory.screenshots == (tmp_path / "trajectory" / "step_000.jpg",)
    assert trajectory.attempt.final_look == result.final_look


def test_no_judge_model_sees_the_final_look(tmp_path: Path) -> None:
    model = ScriptedModel(webjudge_script())
    stored(tmp_path, play_episode(tmp_path, ChangingBrowser(SAVING, SAVED)))
    asyncio.run(judge_stored(TaskStore(tmp_path), WebJudge(parts_for(model))))
    images = [part.data for request in model.requests for part in request.parts if isinstance(part, ImagePart)]
    assert set(images) == {JPEG + SAVING.encode()}


def test_the_final_look_of_older_versions_is_not_a_step_of_the_participant() -> None:
    result = a_result(steps=(a_step(0), a_step(1, outcome=None)))
    assert (len(result.steps), result.steps_taken) == (2, 1)
