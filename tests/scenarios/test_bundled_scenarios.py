import tomllib
from pathlib import Path

import pytest

from judge.records.checks import AnyOf
from judge.scenario.checks import contradictions_of, warnings_of
from judge.scenario.toml import load_scenario
from participants.replay import find_script, load_book
from shared.settings import Settings

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SCRIPTED_SETS = ["demo", "docs", "held", "miniwob"]
# With a right script for each task, and a wrong one.
IN_TWO_WAYS = ["apps", "hire"]


@pytest.mark.parametrize("name", [*SCRIPTED_SETS, *IN_TWO_WAYS, "live"])
def test_a_bundled_scenario_is_read(name: str) -> None:
    assert load_scenario(SCENARIOS / name / "scenario.toml").tasks


@pytest.mark.parametrize("name", SCRIPTED_SETS)
def test_every_task_has_a_script_and_every_script_a_task(name: str) -> None:
    tasks = load_scenario(SCENARIOS / name / "scenario.toml").tasks
    book = load_book([SCENARIOS / name / "replay.toml"])
    assert [task.task_id for task in tasks if find_script(book, task.task, task.website) is None] == []
    assert len([script for script in book.values() if not script.site_tools]) == len(tasks)
    assert {script.task for script in book.values()} == {task.task for task in tasks}


@pytest.mark.parametrize("name", SCRIPTED_SETS)
def test_every_task_has_an_expected_verdict(name: str) -> None:
    tasks = load_scenario(SCENARIOS / name / "scenario.toml").tasks
    expected = tomllib.loads((SCENARIOS / name / "expected.toml").read_text(encoding="utf-8"))
    assert list(expected) == [task.task_id for task in tasks]
    assert {entry["verdict"] for entry in expected.values()} == {"success", "failure"}


@pytest.mark.parametrize("name", [*SCRIPTED_SETS, *IN_TWO_WAYS])
def test_every_task_has_checks_that_can_be_passed(name: str) -> None:
    tasks = load_scenario(SCENARIOS / name / "scenario.toml").tasks
    assert [task.task_id for task in tasks if not task.checks] == []
    assert [problem for task in tasks for problem in (*contradictions_of(task), *warnings_of(task))] == []


@pytest.mark.parametrize("scripts", ["replay.toml", "wrong.toml"])
@pytest.mark.parametrize("name", IN_TWO_WAYS)
def test_every_task_on_an_application_has_a_right_script_and_a_wrong_one(name: str, scripts: str) -> None:
    tasks = load_scenario(SCENARIOS / name / "scenario.toml").tasks
    book = load_book([SCENARIOS / name / scripts])
    assert [task.task_id for task in tasks if find_script(book, task.task, task.website) is None] == []
    assert len(book) == len(tasks)


def test_every_application_of_the_scenario_can_be_installed() -> None:
    load_apps = pytest.importorskip("judge.plugins.apps").load_apps
    sites = load_scenario(SCENARIOS / "apps" / "scenario.toml").sites
    assert sorted(site.name for site in sites) == sorted(load_apps(Settings().scenarios_folder))
    assert all(f"apps.serve {site.name} --port " in (site.cmd or "") for site in sites)


def test_the_scenarios_use_every_kind_of_check() -> None:
    used = {
        type(one).__name__
        for name in SCRIPTED_SETS
        for task in load_scenario(SCENARIOS / name / "scenario.toml").tasks
        for check in task.checks
        for one in (check, *(check.any_of if isinstance(check, AnyOf) else ()))
    }
    assert used == {
        "PageCheck",
        "ElementCheck",
        "TextCheck",
        "ActionCheck",
        "AnswerCheck",
        "RequestCheck",
        "FetchCheck",
        "ProbeCheck",
        "AnyOf",
    }
