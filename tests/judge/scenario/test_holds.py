"""Held requests as they are written in a scenario: where they apply, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from judge.records.tasks import Task
from judge.scenario.draft import RequestDraft
from judge.scenario.frozen import on_archives
from judge.scenario.models import TASKS
from judge.scenario.request import parse_request
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import parse_scenario, problems_of
from judge.trajectory.record import Attempt
from shared.errors import ConfigError
from shared.validation import validated

ORDER: dict[str, Any] = {"method": "POST", "url": "/order"}
HEAD = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"
"""
TASK = """[[tasks]]
task_id = "t"
website = "https://shop.example/"
task = "Order."
"""
SITE = '[[sites]]\nname = "shop"\nendpoint = "https://shop.example/"\n'
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"hold": "x"}, "key 'hold': 'x' is not a list"),
    ({"hold": [{"method": "POST"}]}, "hold #1, key 'url': missing"),
    ({"hold": [{**ORDER, "urls": "/"}]}, "hold #1, key 'urls': unknown key (did you mean 'url'?)"),
    ({"hold": [{"url": "order"}]}, "hold #1, key 'url': column 1: neither a path nor an address"),
    ({"hold": [{**ORDER, "status": 303}]}, "hold #1, key 'status': 303 is a redirect, and a held reply has no address"),
    ({"hold": [{**ORDER, "status": 99}]}, "hold #1, key 'status'"),
    ({"hold": [{**ORDER, "type": "html"}]}, "hold #1, key 'type': 'html' is not a content type"),
    ({"hold": [{**ORDER, "type": "text/html\r\nX-A: b"}]}, "hold #1, key 'type'"),
    ({"hold": [{**ORDER, "ends": "yes"}]}, "hold #1, key 'ends'"),
    ({"writes": "allow"}, "key 'writes'"),
    ({"allow_writes": [ORDER]}, "key 'allow_writes': needs writes = \"hold\""),
    ({"allow_sockets": True}, "key 'allow_sockets': needs writes = \"hold\""),
    ({"writes": "hold", "allow_writes": [{**ORDER, "pattern": "("}]}, "allow_writes #1, key 'pattern'"),
    ({"writes": "hold", "allow_writes": [{**ORDER, "pattern": "(?=x)"}]}, "look-around and back-references"),
    ({"writes": "hold", "allow_writes": [{**ORDER, "body": "x"}]}, "allow_writes #1, key 'body': unknown key"),
]


@pytest.mark.parametrize(("keys", "complaint"), MISTAKES, ids=str)
def test_a_mistake_is_named_with_its_key(keys: dict[str, Any], complaint: str) -> None:
    task = {"task_id": "t", "website": "https://shop.example/", "task": "Order.", **keys}
    with pytest.raises(ConfigError) as caught:
        validated(TASKS, [task], "s.toml")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_site_holds_is_held_for_its_tasks_after_their_own() -> None:
    text = HEAD + TASK + 'hold = [{ url = "/own" }]\n' + TASK.replace('"t"', '"u"').replace("shop", "other")
    text += SITE + 'hold = [{ url = "/order", ends = true }]\n'
    tasks = parse_scenario(text.encode(), Path("s.toml")).tasks
    assert [[hold.url for hold in task.hold] for task in tasks] == [["/own", "/order"], []]


@pytest.mark.parametrize("key", ["hold", "writes"])
def test_nothing_is_held_on_a_site_with_an_archive(tmp_path: Path, key: str) -> None:
    line = 'hold = [{ url = "/order" }]\n' if key == "hold" else 'writes = "hold"\n'
    text = HEAD + TASK + line + SITE + 'archive = "shop.wacz"\n'
    (problem,) = problems_of(text.encode(), tmp_path / "s.toml")[1]
    assert f": line 11, task t: [[tasks]] #1, key '{key}': requests cannot be held on a frozen site" in problem


POLICY = '{ name = "p", dimension = "consent", kind = "request", url = "/order" }'


@pytest.mark.parametrize("common", [False, True], ids=["of the task", "of all tasks"])
def test_policies_about_requests_are_refused_in_a_hosted_browser(tmp_path: Path, *, common: bool) -> None:
    hosted = f'{HEAD}[config]\ncdp_url = "http://127.0.0.1:9222"\n'
    declared = f"policies = [{POLICY}]\n"
    text = declared + hosted + TASK if common else hosted + TASK + declared
    (problem,) = problems_of(text.encode(), tmp_path / "s.toml")[1]
    why = "policies and attacks about requests cannot be decided in a hosted"
    assert f"task t: [[tasks]] #1, key 'policies': {why}" in problem
    about_pages = text.replace('"request"', '"page"')
    assert parse_scenario(about_pages.encode(), tmp_path / "s.toml").config.cdp_url


def test_nothing_is_held_with_an_archive_for_every_site(tmp_path: Path) -> None:
    scenario = parse_scenario((HEAD + TASK + 'writes = "hold"\n').encode(), tmp_path / "s.toml")
    refused = r"--archive all\.wacz: task t: requests cannot be held on a frozen site.* \(play it without --archive"
    with pytest.raises(ConfigError, match=refused):
        on_archives(scenario, tmp_path / "all.wacz")


HOLDING = Task(
    task_id="t",
    website="https://shop.example/",
    task="Order.",
    hold=({**ORDER, "status": 201, "body": "ok", "type": "text/plain", "ends": True},),
    writes="hold",
    allow_writes=({"url": "/search", "pattern": "^q="},),
    allow_sockets=True,
)


def test_a_task_is_the_same_after_it_was_written_as_toml_sent_or_recorded() -> None:
    text = HEAD + tasks_toml((HOLDING,))
    scenario = parse_scenario(text.encode(), Path("s.toml"))
    assert scenario.tasks == (HOLDING,)
    assert parse_request(RequestDraft.of(scenario).text(), lambda _: ()).tasks == (HOLDING,)
    attempt = Attempt(task=HOLDING, steps=(), stop_reason="finished", max_steps=5, started_at=1, ended_at=2)
    assert Attempt.from_json(attempt.to_json(), source="x").task == HOLDING


def test_a_record_without_held_requests_has_none_of_their_keys() -> None:
    task = Task(task_id="t", website="https://shop.example/", task="Order.")
    assert not {"hold", "writes", "allow_writes", "allow_sockets"} & task.model_dump().keys()
