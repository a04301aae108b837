"""Assessments that play every task several times, with a scripted browser and participant."""

import asyncio
import json
from pathlib import Path

import pytest

from helpers.episode.one_page_shop import assess_in_shop
from judge.records.events import Event, RunDone, RunStarted, TaskStarted
from judge.store.layout import RunStore
from judge.trajectory.record import SHARED_STATE
from shared.models import Action
from shared.protocol import render_reply

DONE = render_reply(Action(tool="finish", params={"answer": "done"}))


class Finisher:
    """A participant that finishes at once, but does not answer its `hanging`-th message."""

    def __init__(self, hanging: int = 0) -> None:
        self.turns = 0
        self.hangs = asyncio.Event()
        self._hanging = hanging

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        self.turns += 1
        if self.turns == self._hanging:
            self.hangs.set()
            await asyncio.Event().wait()
        return DONE


def started(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.task_id, event.epoch) for event in events if isinstance(event, TaskStarted)]


async def test_all_tasks_are_played_before_any_is_played_again(tmp_path: Path) -> None:
    events: list[Event] = []
    done = await assess_in_shop(tmp_path, Finisher(), 2, max_steps=2, epochs=3, events=events)
    order = [(task, epoch) for epoch in (1, 2, 3) for task in ("t0", "t1")]
    assert started(events) == order
    assert [(one.entry["task_id"], one.entry["epoch"]) for one in done] == order
    assert isinstance(events[0], RunStarted)
    assert (events[0].total, events[0].epochs, events[0].attempts) == (2, 3, 6)
    assert events[-1] == RunDone(successes=0, scored=0, total=6, epochs=3)


async def test_the_first_epoch_is_in_results_and_each_other_in_a_folder_of_its_own(tmp_path: Path) -> None:
    done = await assess_in_shop(tmp_path, Finisher(), 1, max_steps=2, epochs=2)
    run = tmp_path / "runs" / "r"
    first, second = (json.loads((run / name / "t0" / "result.json").read_text()) for name in FOLDERS[:2])
    assert ("epoch" in first, second["epoch"]) == (False, 2)
    assert done[1].entry["screenshots"] == ["epochs/2/results/t0/trajectory/step_000.jpg"]
    assert [(task.key, task.epoch) for task in RunStore(tmp_path, "r").tasks()] == [("t0", 1), ("t0.2", 2)]


FOLDERS = ("results", "epochs/2/results", "epochs/3/results")


async def test_a_run_that_is_stopped_in_its_second_epoch_plays_only_what_was_not_over(tmp_path: Path) -> None:
    hanging = Finisher(hanging=4)
    running = asyncio.create_task(assess_in_shop(tmp_path, hanging, 2, max_steps=2, epochs=3))
    await hanging.hangs.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    run = tmp_path / "runs" / "r"
    assert [path.parent.name for path in run.glob("epochs/2/results/*/result.json")] == ["t0"]
    before = {result.parent: (result.parent / "steps.jsonl").read_bytes() for result in run.rglob("result.json")}
    again, events = Finisher(), list[Event]()
    done = await assess_in_shop(tmp_path, again, 2, max_steps=2, epochs=3, events=events)
    assert started(events) == [("t1", 2), ("t0", 3), ("t1", 3)]
    assert (again.turns, len(done)) == (3, 6)
    assert {folder: (folder / "steps.jsonl").read_bytes() for folder in before} == before
    assert [str(path.relative_to(run)) for path in run.rglob("attempts/*")] == ["epochs/2/results/t1/attempts/001"]


async def test_on_a_site_that_cannot_be_reset_every_epoch_after_the_first_shares_its_state(tmp_path: Path) -> None:
    done = await assess_in_shop(tmp_path, Finisher(), 1, max_steps=2, epochs=2)
    assert [SHARED_STATE in one.entry["flags"] for one in done] == [False, True]


async def test_a_result_that_was_put_into_another_epoch_does_not_count_there(tmp_path: Path) -> None:
    await assess_in_shop(tmp_path, Finisher(), 1, max_steps=2, epochs=2)
    run = tmp_path / "runs" / "r"
    (run / FOLDERS[0] / "t0").rename(run / "moved")
    (run / FOLDERS[1] / "t0").rename(run / FOLDERS[0] / "t0")
    (run / "moved").rename(run / FOLDERS[1] / "t0")
    events: list[Event] = []
    await assess_in_shop(tmp_path, Finisher(), 1, max_steps=2, epochs=2, events=events)
    assert started(events) == [("t0", 1), ("t0", 2)]
