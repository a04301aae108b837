"""The archives that come with WABE, and their scenario, which starts no site."""

from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from judge.plugins.frozen.command import tasks_of
from judge.plugins.frozen.seam import FORMAT
from judge.plugins.frozen.wacz import read_wacz
from judge.records.sites import origin_of
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create, find_script, load_book

FOLDER = ROOT / "scenarios" / "frozen"
HIRE = ROOT / "scenarios" / "hire"
ARCHIVES = sorted(FOLDER.glob("*.wacz"))


def test_every_task_has_a_script() -> None:
    tasks = load_scenario(FOLDER / "scenario.toml").tasks
    book = load_book([FOLDER / "replay.toml"])
    assert [task.task_id for task in tasks if find_script(book, task.task, task.website) is None] == []
    assert len(book) == len(tasks)


@pytest.mark.slow
@pytest.mark.parametrize("path", ARCHIVES, ids=[path.name for path in ARCHIVES])
def test_a_bundled_archive_is_small_and_read(path: Path) -> None:
    assert path.stat().st_size < 2_000_000
    assert FORMAT.open(path).origins


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("shop.wacz", 10), ("datasette.wacz", 5), ("another.wacz", 0)])
def test_an_archive_is_checked_with_the_tasks_of_its_own_sites(name: str, count: int) -> None:
    scenario = load_scenario(FOLDER / "scenario.toml")
    tasks = tasks_of(FOLDER / name, scenario.tasks, scenario)
    assert len(tasks) == count
    assert all(origin_of(task.website) in map(origin_of, FORMAT.open(FOLDER / name).origins) for task in tasks)


def test_every_task_of_the_application_was_recorded_in_two_plays() -> None:
    walks = read_wacz(FOLDER / "hire.wacz").recording.walks
    tasks = load_scenario(HIRE / "scenario.toml").tasks
    assert [walk.task_id for walk in walks if walk.repeats is None and walk.passed] == [task.task_id for task in tasks]
    assert sorted(walk.repeats or "" for walk in walks if walk.repeats) == sorted(task.task_id for task in tasks)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("scenario", "script", "task_id"),
    [
        (on_archives(load_scenario(FOLDER / "scenario.toml")), FOLDER / "replay.toml", "express_order"),
        pytest.param(
            on_archives(load_scenario(FOLDER / "scenario.toml")),
            FOLDER / "replay.toml",
            "datasette_sql",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            on_archives(load_scenario(HIRE / "scenario.toml"), FOLDER / "hire.wacz"),
            HIRE / "replay.toml",
            "hire_order",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_task_is_played_without_its_site(
    scenario: Scenario, script: Path, task_id: str, tmp_path: Path
) -> None:
    player = create(ParticipantOptions(script=str(script)))
    tasks = [task for task in scenario.tasks if task.task_id == task_id]
    outcome = await play_scenario(scenario, player, tmp_path, tasks)
    (row,) = outcome.results[0]["detail"]["tasks"]
    assert (row["verdict"], row["coverage"]) == ("success", "full")
