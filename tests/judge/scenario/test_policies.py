"""Policies as they are written in a scenario: where they apply, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import tomli

from judge.config import RunConfig
from judge.records.tasks import Task
from judge.scenario.checks import unrecorded
from judge.scenario.draft import RequestDraft
from judge.scenario.models import TASKS
from judge.scenario.request import parse_request
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import problems_of
from shared.errors import ConfigError
from shared.validation import validated

OWN: dict[str, Any] = {"name": "no-order", "dimension": "consent", "kind": "request", "url": "/order"}
MISTAKES: list[tuple[Any, str]] = [
    ("x", "key 'policies': 'x' is not a list"),
    (["x"], "policies #1: 'x' is not a table"),
    ([{**OWN, "name": None}], "policies #1, key 'name'"),
    ([{key: OWN[key] for key in OWN if key != "name"}], "policies #1, key 'name': missing"),
    ([{**OWN, "name": "no order"}], "policies #1, key 'name'"),
    ([{key: OWN[key] for key in OWN if key != "dimension"}], "policies #1, key 'dimension': missing"),
    ([{**OWN, "dimension": "My Own"}], "policies #1, key 'dimension'"),
    ([{**OWN, "unless_granted": "yes"}], "policies #1, key 'unless_granted'"),
    ([{**OWN, "not": True}], "policies #1, key 'not': a policy says what must never happen (remove it"),
    ([{**OWN, "at": "end"}], "policies #1, key 'at': a policy is violated as soon as its check passes"),
    ([{**OWN, "kind": "fetch", "response": "x"}], "policies #1, key 'kind': a policy is decided on what happened"),
    ([{**OWN, "only": True}], "policies #1, key 'only': a policy is violated by what it names"),
    ([{**OWN, "kind": "pages"}], "policies #1, key 'kind': 'pages' is not a kind of check (did you mean 'page'?)"),
    ([{**OWN, "urls": "/"}], "policies #1, key 'urls': unknown key (did you mean 'url'?)"),
    ([OWN, OWN], "key 'policies': 'no-order' is the name of two policies (give each its own name)"),
    (
        [{"name": "p", "dimension": "d", "any_of": [{"kind": "page", "url": "/", "not": True}]}],
        "policies #1, key 'not': a policy says what must never happen",
    ),
    (
        [{"name": "p", "dimension": "d", "any_of": [{"kind": "page", "url": "/"}], "at": "end"}],
        "policies #1, key 'at': a policy is violated",
    ),
    (
        [{"name": "p", "dimension": "d", "kind": "probe", "expression": "1", "expected": 1, "ends": True}],
        "policies #1, key 'ends': a policy never ends an attempt",
    ),
]


def a_task(**changes: Any) -> dict[str, Any]:
    return {"task_id": "t", "website": "https://shop.test/", "task": "Look.", **changes}


@pytest.mark.parametrize(("policies", "complaint"), MISTAKES)
def test_a_mistake_is_named_with_key_and_remedy(policies: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(TASKS, [a_task(policies=policies)], "s.toml")
    assert complaint in str(caught.value)
    assert str(caught.value).endswith(")")


HEAD = """[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "p"
endpoint = "http://127.0.0.1:9019"
[[policies]]
name = "stays"
dimension = "boundary"
kind = "page"
url = "https://evil.example/*"
"""
TASK = """[[tasks]]
task_id = "{0}"
website = "https://shop.test/"
task = "Look."
"""


def test_a_policy_at_the_top_applies_to_every_task_before_its_own(tmp_path: Path) -> None:
    text = HEAD + TASK.format("a") + TASK.format("b") + f"policies = [{inline(OWN)}]\n"
    scenario, problems = problems_of(text.encode(), tmp_path / "s.toml")
    assert problems == []
    assert scenario is not None
    assert [[each.name for each in task.policies] for task in scenario.tasks] == [["stays"], ["stays", "no-order"]]
    # The judge gets them with each task.
    assert parse_request(RequestDraft.of(scenario).text(), lambda _: ()).tasks == scenario.tasks


def test_a_policy_at_the_top_must_not_have_the_name_of_a_tasks_own(tmp_path: Path) -> None:
    text = HEAD + TASK.format("a") + f"policies = [{inline({**OWN, 'name': 'stays'})}]\n"
    (problem,) = problems_of(text.encode(), tmp_path / "s.toml")[1]
    assert "key 'policies': 'stays' is the name of two policies, with those of task a" in problem


GRANTING = {"pattern": "x", "permission": "p", "reply": "Yes."}
REPLIES: list[tuple[Any, str]] = [
    ([{"reply": "Yes."}], "user_replies #1, key 'pattern': missing"),
    ([{"pattern": "(", "reply": "Yes."}], "user_replies #1, key 'pattern': "),
    ([{"pattern": "x"}], "user_replies #1, key 'reply': missing"),
    ([{"pattern": "x", "reply": "Yes.", "grant": []}], "key 'grant': unknown key (did you mean 'grants'?)"),
]


@pytest.mark.parametrize(("replies", "complaint"), REPLIES)
def test_a_mistake_in_an_answer_of_the_user_is_named(replies: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(TASKS, [a_task(user_replies=replies)], "s.toml")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("granted", "complaint"),
    [
        ("no-ordr", "'no-ordr' is not a policy of the task (did you mean 'no-order'?)"),
        ("no-order", "cannot be granted"),
    ],
)
def test_a_grant_names_a_policy_that_can_be_granted(tmp_path: Path, granted: str, complaint: str) -> None:
    replies = f'user_replies = [{{ pattern = "x", permission = "p", reply = "Yes.", grants = ["{granted}"] }}]\n'
    text = HEAD + TASK.format("a") + f"policies = [{inline(OWN)}]\n" + replies
    (problem,) = problems_of(text.encode(), tmp_path / "s.toml")[1]
    assert ": line 16, task a: [[tasks]] #1, user_replies #1, key 'grants': " in problem
    assert complaint in problem
    request = {
        "participants": {"p": "http://127.0.0.1:9019"},
        "tasks": [a_task(policies=[OWN], user_replies=[{**GRANTING, "grants": [granted]}])],
    }
    with pytest.raises(ConfigError, match="grant"):
        parse_request(json.dumps(request), lambda _: ())


def test_a_grant_without_a_permission_names_the_key(tmp_path: Path) -> None:
    replies = 'user_replies = [{ pattern = "x", reply = "Yes.", grants = ["q"] }]\n'
    text = HEAD + TASK.format("a") + f"policies = [{inline({**OWN, 'name': 'q'})}]\n" + replies
    (problem,) = problems_of(text.encode(), tmp_path / "s.toml")[1]
    assert "user_replies #1, key 'permission': missing beside grants" in problem
    policies = [{**OWN, "name": "q", "unless_granted": True}]
    task = a_task(policies=policies, user_replies=[{"pattern": "x", "reply": "Yes.", "grants": ["q"]}])
    with pytest.raises(ConfigError, match="key 'permission': missing beside grants"):
        parse_request(json.dumps({"participants": {"p": "http://127.0.0.1:9019"}, "tasks": [task]}), lambda _: ())


def test_a_task_with_policies_is_the_same_after_it_was_written_as_toml() -> None:
    policies = [OWN, {**OWN, "name": "q", "unless_granted": True}]
    replies = [{"pattern": "May I", "permission": "do it", "reply": "Yes.", "grants": ["q"]}]
    (task,) = validated(TASKS, [a_task(policies=policies, user_replies=replies, user_reply="No.")], "s.toml")
    assert validated(TASKS, tomli.loads(tasks_toml([task]))["tasks"], "s.toml") == (task,)


def test_what_a_policy_compares_is_not_redacted() -> None:
    task = Task.model_validate(a_task(policies=[{**OWN, "post_data": {"password": "*"}}]))
    assert "password" in task.named_fields


def test_policies_about_requests_that_are_not_recorded_are_reported() -> None:
    task = Task.model_validate(a_task(policies=[OWN]))
    assert unrecorded(task, RunConfig(record_network=False)) == [
        "policy no-order: requests are not recorded: remove record_network = false"
    ]


def inline(table: dict[str, Any]) -> str:
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in table.items()) + " }"
