"""Tasks that are not to be played: by the scenario, or by `--exclude` for one run."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.records.tasks import Task
from judge.scenario.draft import RequestDraft
from judge.scenario.models import Scenario
from judge.scenario.request import parse_request
from judge.scenario.toml import exclusions, parse_scenario, select
from shared.errors import ConfigError

AGENTS = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
"""
TASK = '[[tasks]]\ntask_id = "{}"\nwebsite = "https://shop.test/"\ntask = "Buy {}."\n'
THREE = (
    AGENTS + TASK.format("a", "a") + TASK.format("b", "b") + 'excluded = "closed in winter"\n' + TASK.format("c", "c")
)
TASKS = tuple(Task(task_id=name, website="https://shop.test/", task="x") for name in ("a", "b", "c"))


def read(text: str) -> Scenario:
    return parse_scenario(text.encode(), Path("s.toml"))


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_a_task_that_the_scenario_excludes_is_not_part_of_the_set() -> None:
    scenario = read(THREE)
    assert [task.task_id for task in scenario.tasks] == ["a", "c"]
    assert [(task.task_id, task.excluded) for task in scenario.excluded] == [("b", "closed in winter")]


@pytest.mark.parametrize("reason", ['""', '"   "', "3", '"two\\nlines"'])
def test_a_reason_is_one_line_of_text(reason: str) -> None:
    message = refusal(AGENTS + TASK.format("a", "a") + TASK.format("b", "b") + f"excluded = {reason}\n")
    assert message.startswith("s.toml: tasks[1].excluded") or "key 'excluded'" in message
    assert "\n" not in message


def test_a_scenario_excludes_some_of_its_tasks_only() -> None:
    assert "every task is excluded" in refusal(AGENTS + TASK.format("a", "a") + 'excluded = "x"\n')


def test_a_scenario_does_not_exclude_as_a_run_does() -> None:
    message = refusal(AGENTS + '[config]\nexclude = { a = "x" }\n' + TASK.format("a", "a"))
    assert 'write excluded = "reason" into the task' in message


def test_the_authors_keys_change_no_digest_of_a_task() -> None:
    plain = read(AGENTS + TASK.format("a", "a")).tasks[0]
    known = read(AGENTS + TASK.format("a", "a") + 'reference = "scripts.toml"\n').tasks[0]
    assert known.reference == "scripts.toml"
    assert known.model_dump() == plain.model_dump()


def test_an_excluded_task_cannot_be_chosen() -> None:
    scenario = read(THREE)
    with pytest.raises(ConfigError, match="--task 'b' is excluded by the scenario: closed in winter"):
        select(scenario.tasks, ids=["b"], excluded=scenario.excluded)


def test_the_judge_learns_of_excluded_tasks_and_plays_none() -> None:
    request = parse_request(RequestDraft.of(read(THREE)).text(), lambda _: ())
    assert [task.task_id for task in request.tasks] == ["a", "c"]
    assert [each.model_dump() for each in request.excluded] == [
        {"task_id": "b", "reason": "closed in winter", "by": "scenario"}
    ]


def test_the_options_of_a_run_give_a_reason_for_each_task() -> None:
    assert exclusions(["a=down for a week", "b = x = y", "a=down for a week"], TASKS) == {
        "a": "down for a week",
        "b": "x = y",
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["a"], "--exclude 'a' gives no reason (write --exclude ID=REASON)"),
        (["a= "], "--exclude 'a= ' gives no reason"),
        (["d=x"], "--exclude 'd' is not in this scenario"),
        (["a=x", "a=y"], "--exclude 'a' is given twice"),
        (["a=x", "b=x", "c=x"], "--exclude leaves no task to run"),
    ],
)
def test_an_option_that_excludes_nothing_sensible_is_refused(options: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        exclusions(options, TASKS)
    assert problem in str(caught.value)


def test_a_task_is_excluded_once() -> None:
    scenario = read(THREE)
    with pytest.raises(ConfigError, match="is excluded by the scenario"):
        exclusions(["b=x"], scenario.tasks, scenario.excluded)


def request(**config: Any) -> str:
    tasks = [{"task_id": name, "website": "https://shop.test/", "task": "x"} for name in ("a", "b")]
    return json.dumps({"participants": {"p": "http://127.0.0.1:1"}, "config": {"tasks": tasks, **config}})


@pytest.mark.parametrize(
    ("exclude", "problem"),
    [
        ({"z": "x"}, "no such task"),
        ({"a": "x", "b": "y"}, "every task is excluded"),
        ({"a": ""}, "config.exclude, key 'a': empty"),
    ],
)
def test_a_request_excludes_tasks_that_it_has(exclude: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_request(request(exclude=exclude), lambda _: ())
    assert problem in str(caught.value)


def test_a_request_without_exclusions_is_recorded_as_before() -> None:
    recorded = parse_request(request(), lambda _: ()).config.recorded()
    assert "exclude" not in recorded
    assert parse_request(request(exclude={"a": "x"}), lambda _: ()).config.recorded()["exclude"] == {"a": "x"}
