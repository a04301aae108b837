"""What logs a task's browser in: read beside the scenario, sent in the request, kept to the task's own site."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers.scenario.texts import AGENTS, value_or_complaint
from judge.records.access import StorageState
from judge.records.tasks import Task
from judge.scenario.draft import RequestDraft
from judge.scenario.logins import expired_logins, with_logins
from judge.scenario.request import parse_request
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import load_scenario

SITE = 'name = "shop"\nendpoint = "http://127.0.0.1:9100"\n'
TASK = 'task_id = "t"\nwebsite = "http://127.0.0.1:9100/"\ntask = "x"\n'
LOGIN = 'http_credentials = { username = "ada", password = "${PASSWORD}" }\n'
ENVIRON = {"PASSWORD": "pass-word"}


def cookie(domain: str) -> dict[str, Any]:
    return {"name": "id", "value": "cookie-value", "domain": domain}


def storage(origin: str) -> dict[str, Any]:
    return {"origin": origin, "localStorage": [{"name": "token", "value": "token-value"}]}


def logged_in(
    folder: Path,
    *,
    site: str = "",
    task: str = "",
    more: str = "",
    environ: dict[str, str] | None = ENVIRON,
    **state: Any,
) -> tuple[Task, ...]:
    """The tasks of a scenario with these keys; `state` is in `login.json`."""
    (folder / "login.json").write_text(json.dumps(state))
    path = folder / "s.toml"
    path.write_text(f"{AGENTS}[[sites]]\n{SITE}{site}\n[[tasks]]\n{TASK}{task}\n{more}")
    scenario = load_scenario(path)
    return with_logins(scenario, scenario.tasks, environ)


def complaint(folder: Path, **keys: Any) -> str:
    return value_or_complaint(lambda: logged_in(folder, **keys))[1].removeprefix(f"{folder}/")


STATE = 'storage_state = "login.json"\n'


def test_cookies_that_have_expired_are_named_with_the_tasks_that_use_them(tmp_path: Path) -> None:
    expires = {"old": 999, "new": 1001, "session": -1, "other": 0, **{f"old{n}": 1 for n in range(3)}}
    cookies = [{**cookie("127.0.0.1"), "name": name, "expires": at} for name, at in expires.items()]
    again = "[[tasks]]\n" + TASK.replace('"t"', '"t2"')
    tasks = logged_in(tmp_path, site=STATE, more=again, cookies=cookies)
    (warning,) = expired_logins(tasks, now=1000)
    assert warning.startswith(
        "storage_state of task t and 1 more: 4 of 7 cookies expired: 'old', 'old0', 'old1' and 1 more (if they hold the"
    )
    assert "cookie-value" not in warning
    assert expired_logins(tasks, now=0.5) == []


@pytest.mark.parametrize("where", ["site", "task"])
def test_a_file_beside_the_scenario_is_read(tmp_path: Path, where: str) -> None:
    keys: dict[str, Any] = {where: STATE}
    (task,) = logged_in(tmp_path, cookies=[cookie("127.0.0.1")], **keys)
    assert isinstance(task.storage_state, StorageState)
    assert "cookie-value" in task.secrets


def test_a_password_comes_from_the_environment(tmp_path: Path) -> None:
    (task,) = logged_in(tmp_path, site=LOGIN)
    assert [(each.secrets[0], each.origin) for each in task.http_credentials] == [
        ("pass-word", "http://127.0.0.1:9100")
    ]
    (unresolved,) = logged_in(tmp_path, task=LOGIN, environ=None)
    assert unresolved.http_credentials[0].secrets[0] == "${PASSWORD}"


def test_what_a_task_declares_itself_stands(tmp_path: Path) -> None:
    own = 'storage_state = { cookies = [] }\nhttp_credentials = { username = "b", password = "own" }\n'
    (task,) = logged_in(tmp_path, site=STATE + LOGIN, task=own, cookies=[cookie("127.0.0.1")])
    assert task.secrets == ("own", "Yjpvd24=")


def test_a_task_gets_the_logins_of_every_site_that_belongs_to_it(tmp_path: Path) -> None:
    second = f'[[sites]]\nname = "forum"\nendpoint = "http://localhost:9200"\n{STATE}{LOGIN}'
    other = '[[tasks]]\ntask_id = "u"\nwebsite = "http://127.0.0.1:9300/"\ntask = "x"\n'
    allowed = 'allowed_sites = ["http://localhost:9200"]\n'
    keys: dict[str, Any] = {"cookies": [cookie("localhost")], "site": LOGIN, "more": second + other}
    both, none = logged_in(tmp_path, task=allowed, **keys)
    assert [each.origin for each in both.http_credentials] == ["http://127.0.0.1:9100", "http://localhost:9200"]
    assert isinstance(both.storage_state, StorageState)
    assert none.secrets == ()
    (alone, _) = logged_in(tmp_path, **keys)
    assert alone.storage_state is None


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"site": 'storage_state = "none.json"'}, "[[sites]] #1, key 'storage_state': {folder}/none.json: No such"),
        ({"task": STATE, "cookies": 1}, "[[tasks]] #1, key 'storage_state': {folder}/login.json: cookies: not usa"),
        ({"task": "storage_state = 1"}, "[[tasks]] #1, key 'storage_state': not the name of a file"),
        (
            {"task": STATE, "cookies": [cookie("127.0.0.1"), cookie("ads.example")]},
            "[[tasks]] #1, key 'storage_state': cookie 2 is of another site, 'ads.example' (remove it, or add that",
        ),
        (
            {"site": STATE, "origins": [storage("http://127.0.0.1:9101")]},
            "[[tasks]] #1, key 'storage_state': it holds the storage of another site, 'http://127.0.0.1:9101'",
        ),
        ({"task": LOGIN, "environ": {}}, "[[tasks]] #1, key 'http_credentials' needs the environment variable PASS"),
        ({"site": LOGIN.replace("D}", "D")}, "[[sites]] #1, key 'http_credentials' refers to a variable in anoth"),
        (
            {"task": 'start_urls = ["http://127.0.0.1:9100/a", "http://127.0.0.1:9200/"]'},
            "[[tasks]] #1, key 'start_urls': 'http://127.0.0.1:9200/' is on another site than website (add",
        ),
        (
            {"task": 'start_urls = ["http://127.0.0.1:9200/"]'},
            "[[tasks]] #1, key 'start_urls': 'http://127.0.0.1:9200/' is not an address of 'http://127.0.0.1",
        ),
        (
            {"task": 'http_credentials = { username = "a", password = "b", origin = "http://evil.example" }'},
            "[[tasks]] #1, key 'http_credentials': 'http://evil.example' is on another site than website",
        ),
    ],
)
def test_a_mistake_names_file_line_task_key_and_remedy(tmp_path: Path, keys: dict[str, Any], expected: str) -> None:
    message = complaint(tmp_path, **keys)
    match = re.fullmatch(r"s\.toml: (?:line (?P<line>\d+)(?:, )?)?(?P<task>task t)?(?:: )?(?P<rest>\[\[.*\))", message)
    assert match, message
    assert match["rest"].startswith(expected.format(folder=tmp_path)), message
    assert bool(match["task"]) is expected.startswith("[[tasks]]")
    # An unset variable may concern every task, so the file is not read again for its line.
    if "variable" not in expected:
        # A task that has its site's login has no such key of its own.
        key = "[[tasks]]" if "site" in keys and match["task"] else expected.split("'")[1]
        assert (tmp_path / "s.toml").read_text().splitlines()[int(match["line"]) - 1].startswith(key)


@pytest.mark.parametrize(
    ("website", "domain", "is_own"),
    [
        ("https://www.shop.example/", ".shop.example", True),
        ("https://shop.example/", "accounts.shop.example", True),
        ("https://shop.example/", "pay.example", True),  # in allowed_sites
        ("https://shop.example/", "othershop.example", False),
        ("https://a.github.io/", "b.github.io", False),
        ("https://a.github.io/", ".github.io", False),
        ("http://[::1]:9100/", "[::1]", True),
        ("http://localhost:9100/", "localhost", True),
    ],
)
def test_cookies_are_those_of_the_tasks_own_site(tmp_path: Path, website: str, domain: str, is_own: bool) -> None:
    keys = f'[[tasks]]\ntask_id = "u"\nwebsite = "{website}"\ntask = "x"\nallowed_sites = ["pay.example"]\n{STATE}'
    assert (complaint(tmp_path, more=keys, cookies=[cookie(domain)]) == "") is is_own


def test_a_request_carries_the_content_and_the_judge_reads_it(tmp_path: Path) -> None:
    (task,) = logged_in(tmp_path, task=STATE + LOGIN, cookies=[cookie("127.0.0.1")])
    path = tmp_path / "s.toml"
    path.write_text(path.read_text().replace('role = "p"', 'role = "p"\nendpoint = "http://127.0.0.1:9019"'))
    tasks = (task, task.model_copy(update={"task_id": "u"}), Task(task_id="v", website=task.website, task="x"))
    text = RequestDraft.of(load_scenario(path), tasks=tasks).text()
    assert parse_request(text, lambda _: ()).tasks == tasks
    # Once, however many tasks share it.
    assert text.count("cookie-value") == 1


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"storage_state": "/etc/shadow"}, "task t: key 'storage_state': '/etc/shadow' is not in storage_states ("),
        ({"storage_state": {"cookies": [cookie("ads.example")]}}, "task t: key 'storage_state': cookie 1 is of"),
        (
            {"http_credentials": {"headers": {"X-Login": "a"}, "origin": "https://other.example"}},
            "task t: key 'http_credentials': 'https://other.example' is on another site than website",
        ),
        (
            {"http_credentials": {"headers": {"Host": "a"}}},
            "config.tasks #1, key 'http_credentials': headers: the protocol sets",
        ),
        ({"http_credentials": {"username": "u"}}, "config.tasks #1, key 'http_credentials': password: missing"),
    ],
)
def test_a_request_names_no_file_and_logs_in_nowhere_else(keys: dict[str, Any], expected: str) -> None:
    task = {"task_id": "t", "website": "https://shop.example/", "task": "x", **keys}
    text = json.dumps({"participants": {"p": "http://127.0.0.1:9019"}, "config": {"tasks": [task]}})
    _, message = value_or_complaint(lambda: parse_request(text, lambda _: ()))
    assert message.startswith(f"assessment request: {expected}"), message


@pytest.mark.parametrize(
    ("state", "problem"),
    [({"cookies": [{"value": "hunter-2"}]}, "cookies[0].name: missing"), ("hunter-2", "not a table")],
)
def test_a_storage_state_of_a_request_is_checked_without_showing_it(state: object, problem: str) -> None:
    body = {"participants": {"p": "http://127.0.0.1:9019"}, "storage_states": {"a": state}}
    _, message = value_or_complaint(lambda: parse_request(json.dumps(body), lambda _: ()))
    assert message.startswith(f"assessment request: storage_states, key 'a': {problem}")
    assert "hunter-2" not in message


def test_a_variable_in_a_request_is_not_resolved(tmp_path: Path) -> None:
    login = {"username": "u", "password": "${HOME}"}
    task = {"task_id": "t", "website": "https://shop.example/", "task": "x", "http_credentials": login}
    text = json.dumps({"participants": {"p": "http://127.0.0.1:9019"}, "config": {"tasks": [task]}})
    assert parse_request(text, lambda _: ()).tasks[0].http_credentials[0].secrets[0] == "${HOME}"


def test_no_dump_holds_a_login_and_no_secret_is_written_as_toml(tmp_path: Path) -> None:
    (declared,) = logged_in(tmp_path, task=LOGIN, environ=None)
    (scenario,) = logged_in(tmp_path, task=STATE + LOGIN, cookies=[cookie("127.0.0.1")])
    text = f"{scenario!r} {scenario} {scenario.model_dump()} {scenario.model_dump_json()} {tasks_toml([scenario])}"
    for secret in scenario.secrets:
        assert secret not in text
    assert 'password = "${PASSWORD}"' in tasks_toml([declared])
