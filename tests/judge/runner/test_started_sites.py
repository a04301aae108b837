"""Which sites of a scenario are started."""

from collections.abc import Collection
from pathlib import Path

import pytest

from judge.records.tasks import Task
from judge.runner.rehearsal import started_sites
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from shared.settings import Settings

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"

[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"

[config]
judge_model = "offline"

[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:9180"

[[sites]]
name = "bank"
endpoint = "http://127.0.0.1:9181"

[[sites]]
name = "wiki"
endpoint = "http://127.0.0.1:9182"

[[tasks]]
task_id = "buy"
website = "http://127.0.0.1:9180/"
task = "Buy a lamp."

[[tasks]]
task_id = "pay"
website = "http://127.0.0.1:9180/"
task = "Buy a lamp and pay."
allowed_sites = ["http://127.0.0.1:9181"]

[[tasks]]
task_id = "read"
website = "http://127.0.0.1:9182/"
task = "Read."
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    return load_scenario(tmp_path / "scenario.toml")


def names_of(scenario: Scenario, tasks: Collection[Task]) -> set[str]:
    return {site.name for site in started_sites(scenario, tasks, Settings.from_environ({}))}


@pytest.mark.parametrize(
    ("selection", "started"),
    [
        ({"buy"}, {"shop"}),
        ({"pay"}, {"shop", "bank"}),
        ({"buy", "read"}, {"shop", "wiki"}),
        ({"buy", "pay", "read"}, {"shop", "bank", "wiki"}),
    ],
)
def test_of_some_tasks_only_the_sites_that_they_name_are_started(
    scenario: Scenario, selection: set[str], started: set[str]
) -> None:
    tasks = [task for task in scenario.tasks if task.task_id in selection]
    assert names_of(scenario, tasks) == started


def test_all_tasks_together_need_all_sites_also_those_that_none_of_them_names(scenario: Scenario) -> None:
    without = scenario.model_copy(update={"tasks": scenario.tasks[:1]})
    assert names_of(without, without.tasks) == {"shop", "bank", "wiki"}


def test_a_site_that_no_task_names_is_started_because_another_one_may_need_it(scenario: Scenario) -> None:
    mail = scenario.sites[0].model_copy(update={"name": "mail", "endpoint": "http://127.0.0.1:9183"})
    more = scenario.model_copy(update={"sites": (*scenario.sites, mail)})
    assert names_of(more, more.tasks[:1]) == {"shop", "mail"}
