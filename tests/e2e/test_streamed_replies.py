"""A participant that only streams, in chunks of one character, is played and judged like any other."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from helpers.runner.streamed_demo import write_streamed_demo
from judge.runner.options import RunOptions
from judge.runner.run import run
from judge.store.layout import newest_run
from judge.trajectory.files import read_attempt
from shared.settings import Settings


@pytest.mark.e2e
async def test_two_tasks_of_the_demo_end_as_they_do_for_the_participant_itself(tmp_path: Path) -> None:
    path = write_streamed_demo(tmp_path, only_streams=True)
    tasks = ("product_by_suggestion", "two_shelves")
    options = RunOptions(scenario=path, output_dir=tmp_path / "output", task=tasks, display="none")
    assert await run(options, Settings.from_environ(), Console(file=io.StringIO())) == 0
    store = newest_run(tmp_path / "output")
    assert store is not None
    attempts = [read_attempt(store.task(task_id).folder) for task_id in tasks]
    assert [attempt.outcome for attempt in attempts] == ["success", "failure"]
    assert all(step.action for attempt in attempts for step in attempt.steps)
