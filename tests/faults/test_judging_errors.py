"""Internal errors while judging: each costs one verdict, live and in `wabe score` alike."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.exploding import Exploding
from helpers.results import a_finished_run, a_result, a_verdict
from judge.judges.base import Judge
from judge.judges.rescoring import Scored, judge_stored
from judge.judges.stored import score_all
from judge.records.steps import StopReason
from judge.records.verdicts import Verdict
from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory

Record = Callable[[str, object], None]


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """A finished run of three tasks that were not judged yet."""
    return a_finished_run(tmp_path, *(a_result(name, verdict=a_verdict("unscored")) for name in ("t0", "t1", "t2")))


async def scored(run: RunStore, judge: Judge, **options: Any) -> list[Scored]:
    done: list[Scored] = []
    await score_all([task.folder for task in run.tasks()], judge, max_parallel=2, done=done.append, **options)
    return sorted(done, key=lambda one: one.folder)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("t1"),
        RecursionError("deep"),
        ExceptionGroup("several", [ValueError("x")]),
        OSError(28, "No space left"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_on_one_trajectory_leaves_the_others_scored(
    run: RunStore, error: BaseException, record_property: Record
) -> None:
    done = await scored(run, Exploding(error))
    record_property("outcome", f"{[one.outcome for one in done]}: {done[1].reason}")
    assert [one.outcome for one in done] == ["success", "unscored", "success"]
    assert done[1].reason == f"internal error while judging ({type(error).__name__}); see the log"


async def test_a_trajectory_that_an_error_left_unscored_is_scored_by_the_next_call(
    run: RunStore, record_property: Record
) -> None:
    await scored(run, Exploding(KeyError("t1")))
    judge = Exploding()
    done = await scored(run, judge)
    record_property("outcome", f"{[one.outcome for one in done]}, {judge.calls} asked for")
    assert ([one.outcome for one in done], judge.calls) == (["success"] * 3, 1)


async def test_an_error_takes_no_earlier_verdict_away(run: RunStore, record_property: Record) -> None:
    await scored(run, Exploding())
    done = await scored(run, Exploding(KeyError("t1")), again=True)
    stored = json.loads(next(run.task("t1").folder.glob(f"verdicts/{Exploding().id}.json")).read_text())
    record_property("outcome", f"said {done[1].outcome}, on file {stored['outcome']}")
    assert (done[1].outcome, stored["outcome"]) == ("unscored", "success")


async def test_a_folder_that_cannot_be_written_is_named_and_the_others_are_scored(
    run: RunStore, record_property: Record
) -> None:
    folder = run.task("t1").folder
    for path in folder.glob("verdicts/*"):
        path.unlink()
    (folder / "verdicts").rmdir()
    (folder / "verdicts").write_text("a file where a folder should be")
    done = await scored(run, Exploding())
    record_property("outcome", done[1].reason.replace(str(folder), "t1"))
    assert [one.outcome for one in done] == ["success", "broken", "success"]
    assert "verdicts" in done[1].reason


@pytest.mark.parametrize("stop_reason", ["max_steps", "participant_error"])
async def test_an_end_that_needs_no_judge_goes_before_a_verdict_on_file(
    tmp_path: Path, stop_reason: StopReason, record_property: Record
) -> None:
    run = a_finished_run(tmp_path, a_result("t1", stop_reason))
    task, judge = run.task("t1"), Exploding()
    wrong = Verdict(outcome="success", reason="no", trajectory_sha256=load_trajectory(task.folder).sha256)
    task.write_verdict(judge.id, wrong)
    done = await judge_stored(task, judge)
    record_property("outcome", f"{done.outcome}: {done.reason}")
    assert (done.outcome, judge.calls) == ("failure", 0)
