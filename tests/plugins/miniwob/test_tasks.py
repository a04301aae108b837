"""MiniWoB++ tasks by name and seed, and the scenario made of them."""

import sys
from pathlib import Path

import pytest

from judge.evaluators.kinds.probe import ProbeCheck
from judge.plugins.miniwob.tasks import MiniwobTask, chosen_tasks, settings_for, site_entry
from judge.records.checks import SuccessRule
from judge.results.rewards import success_rule
from judge.scenario.sources import scenario_toml
from judge.scenario.toml import load_scenario
from plugins.miniwob.package import fake_package
from shared.errors import ConfigError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(fake_package(tmp_path)))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("names", "seeds", "expected"),
    [
        (["click-test"], "3", [("click-test", 3)]),
        (["click-test, button-delay"], "0", [("click-test", 0), ("button-delay", 0)]),
        (["click-test", "click-test"], "0:2", [("click-test", 0), ("click-test", 1)]),
        (["all"], "0", [("click-link", 0), ("click-test", 0)]),
        ([], "7:8", [("click-link", 7), ("click-test", 7)]),
    ],
)
def test_tasks_are_chosen_by_name_each_with_every_seed(
    names: list[str], seeds: str, expected: list[tuple[str, int]]
) -> None:
    assert chosen_tasks(names, seeds) == tuple(MiniwobTask(*one) for one in expected)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("names", "seeds", "message"),
    [
        (["click-tests"], "0", "--tasks: unknown task 'click-tests' (did you mean 'click-test'"),
        (["../core"], "0", "--tasks: unknown task '../core'"),
        (["all", "click-test"], "0", "--tasks: unknown task 'all'"),
        (["all"], "5:5", "--seeds '5:5' is not a range"),
        (["all"], "-1", "--seeds '-1' is not a range"),
        (["all"], "0:9999999", "is not a range"),
        (["all"], "", "is not a range"),
    ],
)
def test_a_mistake_names_the_option(names: list[str], seeds: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chosen_tasks(names, seeds)
    assert message in str(caught.value)


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ConfigError) as caught:
        chosen_tasks(["all"], "0")
    assert str(caught.value) == "the package 'miniwob' is not installed (pip install 'wabe[miniwob]')"


def test_the_scenario_serves_its_own_pages_and_ends_with_the_first_reward(tmp_path: Path) -> None:
    selection = [MiniwobTask("click-test", 0), MiniwobTask("click-test", 7)]
    path = tmp_path / "miniwob.toml"
    tasks = [one.task("Click it.") for one in selection]
    path.write_text(scenario_toml(tasks, participant="gemini", settings=settings_for(selection), sites=[site_entry()]))
    scenario = load_scenario(path)
    (check,) = scenario.tasks[1].checks
    assert isinstance(check, ProbeCheck)
    assert (check.expected, check.keep, check.ends) == (1.0, "first", True)
    assert scenario.tasks[1].website == f"{scenario.sites[0].endpoint}/miniwob/click-test.html?seed=7"
    assert scenario.sites[0].reset == "static"
    assert (scenario.config.actions, scenario.config.settle) == ("both", "auto")


@pytest.mark.parametrize(
    ("rule", "reward", "passes"),
    [
        ("exact", 1, True),
        ("exact", 0.97, False),
        ("positive", 0.01, True),
        ("positive", 0, False),
        ("positive", -1, False),
    ],
)
def test_the_rule_says_which_rewards_are_a_success(rule: SuccessRule, reward: float, passes: bool) -> None:
    task = MiniwobTask("circle-center", 0).task("Click it.", rule)
    (check,) = task.checks
    assert isinstance(check, ProbeCheck)
    assert (check.expected == reward if check.expected is not None else reward >= (check.min or 0)) is passes
    assert success_rule(task.checks) == rule


def test_a_probe_of_another_page_follows_no_rule() -> None:
    assert success_rule([ProbeCheck(kind="probe", expression="window.points", expected=1)]) is None


def test_a_page_about_time_is_played_in_real_time() -> None:
    assert settings_for([MiniwobTask("click-test", 0), MiniwobTask("button-delay", 0)])["settle"] == "real-time"
