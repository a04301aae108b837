"""A run keeps the day on which it began: dates in its tasks are written out once."""

import datetime
from pathlib import Path

from helpers.runner.scenario_runs import interrupted_run, write_scenario
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from shared.settings import Settings


def with_dates(folder: Path) -> Path:
    path = write_scenario(folder / "s.toml")
    text = path.read_text().replace("task = ", 'key_points = ["On {today}"]\ntask = ', 1)
    path.write_text(text)
    return path


def test_a_resumed_run_keeps_the_day_of_its_first_start(tmp_path: Path) -> None:
    path, folder = with_dates(tmp_path), tmp_path / "out"
    store = interrupted_run(path, folder)
    record = store.read_run() or {}
    assert record["config"]["today"] == datetime.datetime.now(datetime.UTC).date().isoformat()
    record["config"]["today"] = "2020-02-29"
    store.write_run(record)
    plan = make_plan(RunOptions(scenario=path, output_dir=folder, resume=store.run_id), Settings.from_environ({}))
    assert plan.tasks[0].key_points == ("On 2020-02-29",)
    assert '"today": "2020-02-29"' in plan.request


def test_a_new_run_begins_on_its_own_day(tmp_path: Path) -> None:
    path, folder = with_dates(tmp_path), tmp_path / "out"
    interrupted_run(path, folder)
    plan = make_plan(RunOptions(scenario=path, output_dir=folder), Settings.from_environ({}))
    today = datetime.datetime.now(datetime.UTC).date()
    assert plan.tasks[0].key_points == (f"On {today}",)
