"""Assessments with a scripted browser and participant, up to what is kept of each task."""

import asyncio
import errno
import gc
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from helpers.episode.one_page_shop import assess_in_shop as assess_with
from helpers.episode.scripted import SkippingLoop
from helpers.results import a_step
from judge.config import RunConfig
from judge.judges.base import Judge
from judge.judges.checked import ChecksJudge
from judge.records.events import Event, RequestWarning, StepBegun, StepDone, TaskDone
from judge.records.steps import Step
from judge.records.verdicts import MODEL_UNREACHED, Verdict, VerdictOutcome
from judge.results.metering import LEDGER, read_ledger
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.record import Trajectory
from shared.models import Action
from shared.protocol import render_reply

STEPS = 4


class Clicker:
    """A participant that clicks until the last step. `attempts` counts its attempts."""

    def __init__(self) -> None:
        self.attempts = 0
        self._turns: dict[str, int] = {}

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        number = self._turns[context_id] = self._turns.get(context_id, 0) + 1
        if number == 1:
            self.begins()
        if number == STEPS:
            return render_reply(Action(tool="finish", params={"answer": "done"}, thought="I am done."))
        return render_reply(Action(tool="browser_click", params={"target": "e1"}, thought="I click."))

    def begins(self) -> None:
        self.attempts += 1


class CountingClicker(Clicker):
    """Counts the steps in memory when an attempt begins."""

    def __init__(self) -> None:
        super().__init__()
        self.steps_before: list[int] = []

    def begins(self) -> None:
        self.steps_before.append(steps_in_memory())


@pytest.fixture
def own_objects_only() -> None:
    """Set aside what was in memory before the test: the collector takes seconds to go over a whole suite's objects."""
    gc.collect()
    gc.freeze()


def steps_in_memory() -> int:
    gc.collect()
    return sum(type(each) is Step for each in gc.get_objects())


@pytest.fixture
def clicker() -> Clicker:
    return Clicker()


async def assess_in_shop(
    folder: Path, clicker: Clicker, number: int, max_steps: int = STEPS, judge: Judge | None = None
) -> tuple[TaskSummary, ...]:
    return await assess_with(folder, clicker, number, max_steps=max_steps, judge=judge)


class SlowClicker(Clicker):
    """Takes a minute for each reply."""

    async def send(self, *text: Any, **more: Any) -> str:
        await asyncio.sleep(60)
        return await super().send(*text, **more)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_run_says_once_that_its_machine_is_too_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr("shared.patience._measured", lambda *_: share)
    events: list[Event] = []
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(assess_with(tmp_path, SlowClicker(), 2, max_steps=STEPS, record_network=False, events=events))
    said = [each.text for each in events if isinstance(each, RequestWarning)]
    assert [text.partition(":")[0] for text in said] == ["this machine is too busy for 1 at once"] * (share < 1)


async def test_each_task_results_in_its_entry_of_the_submission(tmp_path: Path, clicker: Clicker) -> None:
    done = await assess_in_shop(tmp_path, clicker, 2)
    assert [summary.entry["task_id"] for summary in done] == ["t0", "t1"]
    assert [summary.entry["steps_taken"] for summary in done] == [STEPS, STEPS]
    assert done[0].entry["action_history"] == ["<Go button> -> CLICK"] * (STEPS - 1) + ["<page> -> FINISH"]
    assert done[0].versions == {"browser": "scripted"}


async def test_each_step_is_reported_when_its_page_is_on_disk_and_when_it_is_over(
    tmp_path: Path, clicker: Clicker
) -> None:
    events: list[Event] = []
    await assess_with(tmp_path, clicker, 1, max_steps=2, events=events)
    messages = [(type(event).__name__, event.step) for event in events if isinstance(event, StepBegun | StepDone)]
    assert messages == [("StepBegun", 1), ("StepDone", 1), ("StepBegun", 2), ("StepDone", 2)]
    begun = next(event for event in events if isinstance(event, StepBegun))
    assert (begun.task_id, begun.task, begun.url) == ("t0", "Go.", "https://example.org/")


@pytest.mark.parametrize("is_metered", [True, False])
async def test_a_metered_run_notes_each_attempt_that_begins(tmp_path: Path, clicker: Clicker, is_metered: bool) -> None:
    await assess_with(tmp_path, clicker, 2, max_steps=STEPS, meter=is_metered)
    store = RunStore(tmp_path, "r")
    recorded = [json.loads(path.read_text())["context_id"] for path in sorted(store.folder.glob("results/*/*.json"))]
    starts = read_ledger(store.folder / LEDGER).starts if is_metered else ()
    entries = [(each.attempt, each.task) for each in starts]
    assert entries == (list(zip(recorded, ("t0", "t1"), strict=True)) if is_metered else [])
    assert (store.folder / LEDGER).exists() == is_metered


async def test_a_result_decided_without_the_judge_names_the_judge_of_the_run(tmp_path: Path, clicker: Clicker) -> None:
    (done,) = await assess_in_shop(tmp_path, clicker, 1, max_steps=STEPS - 1)
    assert (done.entry["verdict"], done.entry["stop_reason"]) == ("failure", "max_steps")
    assert done.judge is not None
    assert (done.judge.method, done.judge.model) == ("checks", "offline")


class Buggy(ChecksJudge):
    """A judge with a bug that appears with the second task."""

    def __init__(self) -> None:
        super().__init__(RunConfig(judge_model="offline"))

    def recompute(self, trajectory: Trajectory) -> Verdict:
        if trajectory.task.task_id == "t1":
            raise KeyError("t1")
        return super().recompute(trajectory)


async def test_a_bug_in_the_judge_affects_one_verdict_only(tmp_path: Path, clicker: Clicker) -> None:
    done = await assess_in_shop(tmp_path, clicker, 3, judge=Buggy())
    assert ["internal error" in summary.entry["reason"] for summary in done] == [False, True, False]
    assert done[1].outcome == "unscored"


async def test_an_attempt_that_a_bug_left_unscored_is_judged_again_without_playing_it(
    tmp_path: Path, clicker: Clicker
) -> None:
    await assess_in_shop(tmp_path, clicker, 3, judge=Buggy())
    outcome = clicker.attempts
    fixed = ChecksJudge(RunConfig(judge_model="offline"))
    done = await assess_in_shop(tmp_path, clicker, 3, judge=fixed)
    assert not any("internal error" in summary.entry["reason"] for summary in done)
    assert clicker.attempts == outcome


class ModelJudge(Judge):
    """A judge that needs a model, which gives no usable reply at first. `calls` counts its verdicts."""

    def __init__(self) -> None:
        checks = ChecksJudge(RunConfig(judge_model="offline"))
        self.id, self.info = checks.id, checks.info
        self.replies, self.calls = False, 0

    async def judge(self, trajectory: Trajectory) -> Verdict:
        self.calls += 1
        outcome: VerdictOutcome = "success" if self.replies else "unscored"
        return Verdict(outcome=outcome, reason="the model's reply", judge=self.info, cost_usd=0.0)


class UnreachedJudge(ModelJudge):
    """A judge whose model cannot be reached before the last `probe`, and then if `recovers`."""

    def __init__(self, *, recovers: bool) -> None:
        super().__init__()
        self._recovers = recovers

    def probe(self) -> None:
        self.replies = self._recovers

    async def judge(self, trajectory: Trajectory) -> Verdict:
        verdict = await super().judge(trajectory)
        return verdict if self.replies else verdict.model_copy(update={"reason_code": MODEL_UNREACHED})


@pytest.mark.parametrize(("recovers", "outcome"), [(True, "success"), (False, "unscored")])
async def test_tasks_wait_for_a_judge_model_that_cannot_be_reached_and_are_judged_at_the_end(
    tmp_path: Path, clicker: Clicker, recovers: bool, outcome: str
) -> None:
    events: list[Event] = []
    judge = UnreachedJudge(recovers=recovers)
    done = await assess_with(tmp_path, clicker, 3, max_steps=STEPS, judge=judge, events=events)
    assert [summary.outcome for summary in done] == [outcome] * 3
    assert [event.outcome for event in events if isinstance(event, TaskDone)] == [outcome] * 3
    # Each task is played once, and the warning is given once.
    assert clicker.attempts == 3
    assert len([event for event in events if isinstance(event, RequestWarning)]) == 1


async def test_an_attempt_that_the_model_left_unscored_is_judged_again_and_then_kept(
    tmp_path: Path, clicker: Clicker
) -> None:
    judge = ModelJudge()
    outcomes = []
    for replies in (False, True, True):
        judge.replies = replies
        (done,) = await assess_in_shop(tmp_path, clicker, 1, judge=judge)
        outcomes.append((done.outcome, judge.calls, clicker.attempts))
    assert outcomes == [("unscored", 1, 1), ("success", 2, 1), ("success", 2, 1)]


async def test_an_internal_error_anywhere_else_aborts_one_task_only(
    tmp_path: Path, clicker: Clicker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TaskStore.write_result

    def write(store: TaskStore, result: dict[str, Any]) -> None:
        if store.folder.name == "t1":
            raise ZeroDivisionError
        real(store, result)

    monkeypatch.setattr(TaskStore, "write_result", write)
    done = await assess_in_shop(tmp_path, clicker, 3)
    assert [summary.outcome == "aborted" for summary in done] == [False, True, False]
    assert done[1].entry["error"] == "internal: ZeroDivisionError; see the log"


@pytest.mark.parametrize("method", ["write_result", "append_step"])
async def test_after_the_first_write_on_a_full_disk_no_task_is_begun_and_the_run_can_be_resumed(
    tmp_path: Path, clicker: Clicker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    real = getattr(TaskStore, method)

    def write(store: TaskStore, *arguments: Any) -> Any:
        if store.folder.name == "t1":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(store, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TaskStore, method, write)
        done = await assess_in_shop(tmp_path, clicker, 4)
    why = "cannot write results: No space left on device"
    assert [each.outcome == "aborted" for each in done] == [False, True, True, True]
    assert [each.entry["error"] for each in done[1:]] == [
        f"internal: {why}",
        *[f"internal: not begun, because an earlier task {why}"] * 2,
    ]
    assert clicker.attempts == 2
    assert "aborted" not in [each.outcome for each in await assess_in_shop(tmp_path, clicker, 4)]
    assert clicker.attempts == 5


@pytest.mark.usefixtures("own_objects_only")
async def test_finished_tasks_and_those_of_an_earlier_run_keep_no_steps_in_memory(tmp_path: Path) -> None:
    # A thread holds what it worked on until shortly after its result is there. With one thread, the next work waits
    # for that, so that only the judge's own references count.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    clicker, before = CountingClicker(), steps_in_memory()
    remaining = a_step(0)
    assert steps_in_memory() == before + 1, "a step that is kept is counted"
    del remaining
    assert len(await assess_in_shop(tmp_path, clicker, 5)) == 5
    assert steps_in_memory() == before
    first, *others = clicker.steps_before
    # The memory of earlier tasks is freed before the last one begins.
    assert others == [first] * 4
    assert len(await assess_in_shop(tmp_path, clicker, 5)) == 5
    # Nothing else waits for the thread that read the last result.
    await asyncio.to_thread(int)
    assert (steps_in_memory(), len(clicker.steps_before)) == (before, 5)
