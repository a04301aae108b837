"""The documentation scenario: a website that nobody here wrote, Debian's HTML manual of PostgreSQL."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tomli

from helpers.browser.sessions import left_behind
from helpers.episode.offline_judge import play_scenario
from helpers.paths import ROOT
from helpers.scenario.copies import scenario_on_free_ports
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create

DOCS = ROOT / "scenarios" / "docs"
MANUAL = Path("/usr/share/doc/postgresql-doc-15/html")
# They depend on a page of 600,000 characters, on what is in view, and on text as it is set.
RENDERED = {"storage_parameters", "release_day", "boolean_or_bit"}
pytestmark = pytest.mark.skipif(
    not MANUAL.is_dir(), reason="the manual is not installed: apt-get install postgresql-doc-15"
)


async def play(folder: Path, is_wanted: Callable[[str], bool]) -> tuple[dict[str, str], dict[str, str]]:
    """The verdicts on the scripts of these tasks, and those that are expected."""
    scenario = load_scenario(scenario_on_free_ports("docs", folder))
    script = create(ParticipantOptions(script=str(DOCS / "replay.toml")))
    tasks = [task for task in scenario.tasks if is_wanted(task.task_id)]
    outcome = await play_scenario(scenario, script, folder, tasks)
    verdicts = {task["task_id"]: task["verdict"] for task in outcome.results[0]["detail"]["tasks"]}
    expected = tomli.loads((DOCS / "expected.toml").read_text())
    return verdicts, {name: entry["verdict"] for name, entry in expected.items() if is_wanted(name)}


@pytest.mark.e2e
async def test_verdicts_on_what_a_browser_shows_are_the_expected_ones(tmp_path: Path, browser_files: Path) -> None:
    result, expected = await play(tmp_path, lambda task_id: task_id in RENDERED)
    assert len(expected) == len(RENDERED)
    assert result == expected
    assert left_behind(browser_files) == []


@pytest.mark.usefixtures("text_browser")
async def test_verdicts_on_where_links_lead_and_what_is_answered_are_the_expected_ones(tmp_path: Path) -> None:
    result, expected = await play(tmp_path, lambda task_id: task_id not in RENDERED)
    assert len(expected) == 9
    assert result == expected
