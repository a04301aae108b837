"""The archives that come with WABE, and their scenario, which starts no site."""

from pathlib import Path

import pytest

from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from judge.plugins.frozen.seam import FORMAT
from judge.scenario.frozen import on_archives
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create, find_script, load_book

FOLDER = ROOT / "scenarios" / "frozen"
ARCHIVES = sorted(FOLDER.glob("*.wacz"))


def test_every_task_has_a_script() -> None:
    tasks = load_scenario(FOLDER / "scenario.toml").tasks
    book = load_book([FOLDER / "walks.toml"])
    assert [task.task_id for task in tasks if find_script(book, task.task, task.website) is None] == []
    assert len(book) == len(tasks)


@pytest.mark.parametrize("path", ARCHIVES, ids=[path.name for path in ARCHIVES])
def test_a_bundled_archive_is_small_and_read(path: Path) -> None:
    assert path.stat().st_size < 2_000_000
    assert FORMAT.open(path).origins


@pytest.mark.e2e
@pytest.mark.parametrize("task_id", ["express_order", "datasette_sql"])
async def test_a_task_is_played_without_its_site(task_id: str, tmp_path: Path) -> None:
    scenario = on_archives(load_scenario(FOLDER / "scenario.toml"))
    script = create(ParticipantOptions(script=str(FOLDER / "walks.toml")))
    tasks = [task for task in scenario.tasks if task.task_id == task_id]
    outcome = await play_scenario(scenario, script, tmp_path, tasks)
    (row,) = outcome.results[0]["detail"]["tasks"]
    assert (row["verdict"], row["coverage"]) == ("success", "full")
