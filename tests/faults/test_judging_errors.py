"""Internal errors while judging: each costs one verdict, live and in `wabe score` alike."""

from pathlib import Path
from typing import Any

import pytest

from helpers.exploding import Exploding
from helpers.results import a_finished_run, a_result, a_verdict
from judge.judges.base import Judge
from judge.judges.rescoring import Scored
from judge.judges.stored import score_all
from judge.store.layout import RunStore


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
async def test_an_error_on_one_trajectory_leaves_the_others_scored(run: RunStore, error: BaseException) -> None:
    done = await scored(run, Exploding(error))
    assert [one.outcome for one in done] == ["success", "unscored", "success"]
    assert done[1].reason == f"internal error while judging ({type(error).__name__}); see the log"


async def test_a_folder_that_cannot_be_written_is_named_and_the_others_are_scored(run: RunStore) -> None:
    folder = run.task("t1").folder
    for path in folder.glob("verdicts/*"):
        path.unlink()
    (folder / "verdicts").rmdir()
    (folder / "verdicts").write_text("a file where a folder should be")
    done = await scored(run, Exploding())
    assert [one.outcome for one in done] == ["success", "broken", "success"]
    assert "verdicts" in done[1].reason
