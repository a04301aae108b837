"""Metadata of tasks in a scenario: what is accepted, where they go, and how tasks are chosen by them."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.records.tasks import Task
from judge.results.submission import task_digest
from judge.scenario.draft import RequestDraft
from judge.scenario.request import parse_request
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import parse_scenario, problems_of, select
from judge.trajectory.record import Attempt
from shared.errors import ConfigError

HEAD = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"
"""
TASK = """[[tasks]]
task_id = "{0}"
website = "https://shop.example/"
task = "Order."
metadata = {1}
"""


def scenario_text(**metadata: str) -> str:
    return HEAD + "".join(TASK.format(name, table) for name, table in metadata.items())


def tasks_of(text: str) -> tuple[Task, ...]:
    return parse_scenario(text.encode(), Path("s.toml")).tasks


@pytest.mark.parametrize(
    ("table", "key", "complaint"),
    [
        ("{ a = [1] }", "a", "a list of 1 entry is not a text of 1 to 200 characters, a number or a boolean"),
        ("{ a = 1, b = { c = 1 } }", "b", "a table of 1 entry is not a text"),
        ('{ a = "" }', "a", "'' is not a text"),
        (f'{{ a = "{"x" * 201}" }}', "a", "is not a text of 1 to 200 characters"),
        ('{ a = "x\\ny" }', "a", "is not a text"),
        ("{ a = inf }", "a", "inf is not a text"),
        ('{ "a=b" = 1 }', "a=b", "not a usable key"),
        ('"shop"', "metadata", "'shop' is not a table"),
        (f"{{ {', '.join(f'k{n} = 1' for n in range(21))} }}", "metadata", "21 keys, more than 20"),
    ],
    ids=str,
)
def test_metadata_of_a_wrong_type_are_refused_with_line_task_and_key(table: str, key: str, complaint: str) -> None:
    (problem,) = problems_of(scenario_text(good="{ a = 1 }", bad=table).encode(), Path("s.toml"))[1]
    assert problem.startswith("s.toml: line 16, task bad: [[tasks]] #2, ")
    assert f"key {key!r}: " in problem
    assert complaint in problem


def test_metadata_of_the_whole_file_are_those_of_each_task_that_has_none_of_its_own() -> None:
    text = scenario_text(a='{ category = "desk" }', b="{ n = 3 }") + '[metadata]\ncategory = "shop"\nset = true\n'
    assert [task.metadata for task in tasks_of(text)] == [
        {"category": "desk", "set": True},
        {"category": "shop", "set": True, "n": 3},
    ]


def test_too_many_keys_together_are_refused() -> None:
    own, common = (", ".join(f"{name}{n} = 1" for n in range(11)) for name in ("a", "b"))
    text = scenario_text(t=f"{{ {own} }}") + "[metadata]\n" + common.replace(", ", "\n") + "\n"
    (problem,) = problems_of(text.encode(), Path("s.toml"))[1]
    assert "key 'metadata': more than 20 keys with those of task t" in problem


def test_clusters_need_metadata() -> None:
    text = scenario_text(t='{ template = "t1" }') + '[config]\ncluster = "templat"\n'
    (problem,) = problems_of(text.encode(), Path("s.toml"))[1]
    assert "config.cluster: no task has metadata 'templat'" in problem
    assert "did you mean 'template'?" in problem


def test_metadata_are_part_of_a_tasks_digest_only_where_present() -> None:
    plain = Task(task_id="t", website="https://shop.example/", task="Order.")
    same = plain.model_copy(update={"metadata": {}})
    other = plain.model_copy(update={"metadata": {"category": "shop"}})
    assert task_digest(plain) == task_digest(same) != task_digest(other)
    assert "metadata" not in plain.model_dump()


def test_b14_dataset_entries_have_metadata_that_reach_the_judge_and_the_result() -> None:
    scenario = parse_scenario(scenario_text(t='{ template = "t12", n = 2, b = true }').encode(), Path("s.toml"))
    text = RequestDraft.of(scenario).text()
    # As a client in which every number is a double sends it.
    (task,) = parse_request(text.replace('"n": 2', '"n": 2.0'), lambda _: ()).tasks
    assert task.metadata == {"template": "t12", "n": 2, "b": True}
    attempt = Attempt(task=task, steps=(), max_steps=1, stop_reason="finished", started_at=0, ended_at=0)
    result = attempt.to_json()
    assert result["metadata"] == {"template": "t12", "n": 2, "b": True}
    assert Attempt.from_json(json.loads(json.dumps(result)), source="t").task == task
    assert 'metadata = { template = "t12", n = 2, b = true }' in tasks_toml([task])


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (["category=shop"], ["a", "b"]),
        (["category=shop", "category=desk"], ["a", "b", "c"]),
        (["category=shop", "n=3"], ["b"]),
        (["hard=true"], ["a"]),
    ],
    ids=str,
)
def test_b8_tasks_are_chosen_by_their_metadata(where: list[str], names: list[str]) -> None:
    tasks = tasks_of(
        scenario_text(
            a='{ category = "shop", hard = true }', b='{ category = "shop", n = 3 }', c='{ category = "desk" }', d="{}"
        )
    )
    assert [task.task_id for task in select(tasks, where=where)] == names


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ("categry=shop", "--where 'categry=shop': no task has metadata 'categry'"),
        ("category=shops", "--where 'category=shops': no task has this value"),
        ("category", "--where 'category' gives no value"),
    ],
)
def test_a_filter_that_no_task_fits_names_what_there_is(where: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        select(tasks_of(scenario_text(a='{ category = "shop" }')), where=[where])
    assert str(caught.value).startswith(complaint)
    assert "did you mean" in str(caught.value) or "KEY=VALUE" in str(caught.value)


def test_a_filter_of_tasks_without_metadata_says_how_to_declare_them() -> None:
    tasks: Any = (Task(task_id="t", website="https://shop.example/", task="Order."),)
    with pytest.raises(ConfigError, match="declare it: metadata = "):
        select(tasks, where=["category=shop"])
