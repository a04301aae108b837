"""The state behind the live page."""

import asyncio
import json

import pytest

from judge.events import Event, RunDone, RunStarted, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from judge.server.live import MAX_VIEWERS, LiveHub


def hub_with(*events: Event) -> LiveHub:
    hub = LiveHub(clock=lambda: 0.0)
    sink = hub.watch("r1")
    for event in events:
        sink(event)
    return hub


def step(number: int, action: str = "<Go button> -> CLICK", task_id: str = "t1") -> StepDone:
    return StepDone(task_id=task_id, step=number, max_steps=15, action=action)


STARTED = TaskStarted(task_id="t1", attempt=1, max_steps=15)
DONE = TaskDone(task_id="t1", outcome="success", steps=2, reason="all met")


def test_a_running_task_shows_its_step_and_its_newest_actions() -> None:
    (task,) = hub_with(STARTED, *(step(number) for number in range(1, 13))).since(-1)["tasks"]
    assert (task["state"], task["step"]) == ("running", 12)
    assert [number for number, _ in task["actions"]] == list(range(5, 13))


def test_a_task_being_judged_says_so() -> None:
    (task,) = hub_with(STARTED, step(1), TaskJudging(task_id="t1", steps=1)).since(-1)["tasks"]
    assert task["state"] == "judging"


def test_a_finished_task_keeps_its_outcome_and_drops_its_actions() -> None:
    update = hub_with(STARTED, step(1), DONE).since(-1)
    assert (update["tasks"][0]["state"], update["tasks"][0]["actions"]) == ("success", [])
    assert update["runs"][0]["counts"]["success"] == 1


def test_another_attempt_begins_at_its_first_step() -> None:
    hub = hub_with(
        STARTED,
        step(4),
        TaskRetried(task_id="t1", attempt=1, cause="browser gone"),
        TaskStarted(task_id="t1", attempt=2, max_steps=15),
    )
    (task,) = hub.since(-1)["tasks"]
    assert (task["attempt"], task["step"], task["actions"]) == (2, 0, [])


def test_a_run_that_is_over_says_so_with_its_totals() -> None:
    hub = hub_with(RunStarted(run_id="r1", total=3, kept=1), DONE, RunDone(successes=1, scored=2, total=3))
    assert hub.since(-1)["runs"] == [
        {
            "id": "r1",
            "total": 3,
            "kept": 1,
            "counts": {"success": 1, "failure": 0, "unscored": 0, "aborted": 0},
            "done": True,
            "seconds": 0.0,
        }
    ]


def test_a_run_that_was_stopped_leaves_no_task_running() -> None:
    hub = hub_with(STARTED, step(1), TaskStarted(task_id="t2", attempt=1, max_steps=15), DONE)
    hub.end("r1")
    update = hub.since(-1)
    assert {task["id"]: task["state"] for task in update["tasks"]} == {"t1": "success", "t2": "stopped"}
    assert update["runs"][0]["done"]


def test_only_the_newest_runs_are_kept_and_running_ones_longest() -> None:
    hub = LiveHub(max_runs=2)
    first, second = hub.watch("r1"), hub.watch("r2")
    second(RunDone(successes=0, scored=0, total=0))
    hub.watch("r3")
    assert [run["id"] for run in hub.since(-1)["runs"]] == ["r1", "r3"]
    first(step(1))
    assert (hub.knows("r1"), hub.knows("r2")) == (True, False)


def test_a_long_hostile_action_is_bounded_and_on_one_line() -> None:
    (task,) = hub_with(step(1, "<b>\n\u202e" + "x" * 10_000)).since(-1)["tasks"]
    text = task["actions"][0][1]
    assert len(text) <= 300
    assert "\n" not in text


async def test_a_viewer_gets_everything_first_and_then_what_changed() -> None:
    hub = LiveHub()
    sink = hub.watch("r1")
    sink(step(1, task_id="t1"))
    changes = hub.changes()
    assert [task["id"] for task in (await anext(changes))["tasks"]] == ["t1"]
    sink(step(1, task_id="t2"))
    assert [task["id"] for task in (await anext(changes))["tasks"]] == ["t2"]
    await changes.aclose()


async def test_a_slow_viewer_gets_many_changes_at_once() -> None:
    hub = LiveHub()
    sink = hub.watch("r1")
    changes = hub.changes()
    await anext(changes)
    for number in range(1, 2000):
        sink(step(number))
    update = await anext(changes)
    assert len(update["tasks"]) == 1
    assert len(json.dumps(update)) < 2000
    await changes.aclose()


async def test_a_viewer_that_leaves_makes_room() -> None:
    hub = LiveHub()
    viewers = [hub.changes() for _ in range(MAX_VIEWERS)]
    for viewer in viewers:
        await anext(viewer)
    assert hub.is_full
    await viewers[0].aclose()
    assert not hub.is_full
    for viewer in viewers[1:]:
        await viewer.aclose()


async def test_closing_lets_every_viewer_go() -> None:
    hub = LiveHub()

    async def watch() -> int:
        return len([update async for update in hub.changes()])

    viewers = [asyncio.create_task(watch()) for _ in range(3)]
    await asyncio.sleep(0)
    await hub.close()
    async with asyncio.timeout(5):
        assert await asyncio.gather(*viewers) == [1, 1, 1]


@pytest.mark.parametrize("task_id", ["t1", "never"])
def test_the_hub_knows_how_far_a_task_is(task_id: str) -> None:
    assert hub_with(step(3)).step_of("r1", task_id) == (3 if task_id == "t1" else None)
