"""The addresses of WebArena's sites, and its tasks in our form."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from judge.plugins.webarena.package import PackageTask
from judge.plugins.webarena.tasks import (
    SiteAddresses,
    account_groups,
    imported,
    known_problems,
    read_addresses,
    site_entries,
    task_number,
)
from judge.scenario.logins import with_logins
from judge.scenario.models import TASKS, SiteEntry
from judge.scenario.sources import scenario_toml, tasks_toml
from judge.scenario.toml import load_scenario, parse_scenario
from shared.errors import ConfigError
from shared.toml_text import parse_toml
from shared.validation import validated

SCHEMA = {"type": "object", "required": ["task_type", "status"]}
ACCOUNT = {"username": "emma", "password": "correct-horse"}
FILE: dict[str, Any] = {
    "environments": {
        "__SHOPPING__": {"urls": ["http://shop.test:7770/"], "credentials": ACCOUNT, "use_header_login": False},
        "__SHOPPING_ADMIN__": {"urls": ["http://old.test/admin", "http://shop.test:7780/admin"], "active_url_idx": 1},
        "__REDDIT__": {"urls": ["http://forum.test:9999"], "credentials": ACCOUNT},
        "wikipedia": {"urls": ["http://wiki.test:8888"]},
    }
}


@pytest.fixture
def addresses(tmp_path: Path) -> SiteAddresses:
    return read(tmp_path, FILE)


def read(folder: Path, value: object) -> SiteAddresses:
    path = folder / "sites.json"
    path.write_text(json.dumps(value))
    return read_addresses(path)


def row(number: int, *sites: str, starts: tuple[str, ...], fields: tuple[str, ...] = ()) -> PackageTask:
    return PackageTask(task_id=number, sites=sites, start_urls=starts, intent="Do it.", fields=fields)


def test_a_task_gets_the_configured_address_the_intent_and_the_form_of_the_answer(addresses: SiteAddresses) -> None:
    (task,) = imported([row(41, "shopping_admin", starts=("__SHOPPING_ADMIN__/x",))], addresses, SCHEMA, "s")
    assert (task.task_id, task.website) == ("webarena-41", "http://shop.test:7780/admin/x")
    assert task.task.startswith("Do it.\n")
    assert task.task.endswith(json.dumps(SCHEMA, separators=(",", ":")))
    assert (task.storage_state, task.start_urls, task.allowed_sites) == (None, (), ())


def test_several_start_pages_become_tabs_and_their_sites_belong_to_the_task(addresses: SiteAddresses) -> None:
    one = row(7, "shopping", "reddit", starts=("__SHOPPING__", "__REDDIT__/f/x"), fields=("title",))
    (task,) = imported([one], addresses, SCHEMA, "wav.states")
    assert task.start_urls == ("http://shop.test:7770", "http://forum.test:9999/f/x")
    assert task.allowed_sites == ("http://forum.test:9999",)
    assert "The reddit site is at http://forum.test:9999" in task.task
    assert (task.storage_state, task.keep_fields) == ("wav.states/reddit-shopping.json", ("title",))


def test_an_imported_task_reads_back_from_toml_without_any_password(addresses: SiteAddresses) -> None:
    rows = [row(7, "shopping", "reddit", starts=("__SHOPPING__", "__REDDIT__"), fields=("a[b]",))]
    tasks = imported(rows, addresses, SCHEMA, "wav.states")
    text = tasks_toml(tasks)
    assert TASKS.validate_python(parse_toml(text)["tasks"]) == tasks
    assert "correct-horse" not in text + str(addresses) + json.dumps(addresses.without_credentials())


def test_tasks_on_a_site_without_an_address_are_refused(addresses: SiteAddresses) -> None:
    with pytest.raises(ConfigError, match="no address of __MAP__"):
        imported([row(1, "map", starts=("__MAP__",))], addresses, SCHEMA, None)


def test_accounts_are_grouped_as_tasks_use_them(addresses: SiteAddresses) -> None:
    assert account_groups(addresses) == [("reddit",), ("shopping",), ("reddit", "shopping")]


def test_a_file_of_addresses_is_always_required() -> None:
    with pytest.raises(ConfigError, match="--config is missing"):
        read_addresses(None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "environments"),
        ({"environments": {}}, "environments"),
        ({"environments": {"__SHOP__": {"urls": ["http://x.test"]}}}, "unknown site"),
        ({"environments": {"__MAP__": {"urls": []}}}, "urls"),
        ({"environments": {"__MAP__": {"urls": ["x.test"]}}}, "http://"),
        (
            {"environments": {"__MAP__": {"urls": ["http://x.test"], "active_url_idx": 1}}},
            "'active_url_idx': there is no url 1",
        ),
        ({"environments": {"__MAP__": {"urls": ["http://x.test"], "credentials": {"username": "x"}}}}, "password"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, value: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        read(tmp_path, value)
    assert "sites.json" in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON | st.builds(lambda name, site: {"environments": {name: site}}, st.sampled_from(["__MAP__", "x"]), JSON))
def test_any_other_json_is_a_mistake_in_one_line(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    try:
        read(tmp_path_factory.mktemp("sites"), value)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("task_id", "number"), [("webarena-0", 0), ("webarena-811", 811), ("webarena-", None), ("44", None), ("t", None)]
)
def test_the_number_of_a_task_is_in_its_id(task_id: str, number: int | None) -> None:
    assert task_number(task_id) == number


def test_disputed_tasks_are_named() -> None:
    result = known_problems([f"webarena-{number}" for number in (338, 339, 475, 600, 625, 699, 700, 701)])
    assert [text.split()[1] for text in result] == [f"webarena-{number}" for number in (339, 475, 600, 625, 699, 700)]
    assert all("is disputed" in text for text in result)


def test_tasks_that_cannot_be_passed_are_named() -> None:
    numbers = (428, 429, 680, 736, 737, 741, 742, 758, 759, 760, 761)
    result = known_problems([*(f"webarena-{number}" for number in numbers), "429"])
    assert [text.split()[1] for text in result] == [f"webarena-{number}" for number in (429, 680, 737, 741, 759, 760)]


def test_v5_a_template_id_of_webarena_becomes_metadata(addresses: SiteAddresses) -> None:
    rows = [row(n, "wikipedia", starts=("__WIKIPEDIA__/",)) for n in (41, 42)]
    rows[0] = rows[0].model_copy(update={"intent_template_id": 253})
    first, second = imported(rows, addresses, SCHEMA, None)
    assert (first.metadata, second.metadata) == ({"intent_template_id": 253}, {})
    assert "metadata = { intent_template_id = 253 }" in tasks_toml([first])


CONTROLLED: dict[str, Any] = {
    "environments": {
        "__SHOPPING__": {"urls": ["http://shop.test:7770"], "env_ctrl_url": "http://shop.test:7771/", "cmd": "serve"},
        "__REDDIT__": {"urls": ["http://forum.test:9999"], "extra": {"env_ctrl_url": "http://forum.test:8877"}},
        "__GITLAB__": {"urls": ["http://git.test"], "env_ctrl_url": "http://git.test:8877"},
        "__WIKIPEDIA__": {"urls": ["http://wiki.test:8888"]},
        "__SHOPPING_ADMIN__": {"urls": ["http://shop.test:7780"], "extra": {"headers": {"X-Auto-Login": "${ADMIN}"}}},
    }
}


def test_v13_an_import_writes_the_sites_with_their_reset_and_their_status(tmp_path: Path) -> None:
    addresses = read(tmp_path, CONTROLLED)
    rows = [row(41, "shopping", "reddit", starts=("__SHOPPING__/x",)), row(42, "wikipedia", starts=("__WIKIPEDIA__",))]
    tasks = imported(rows, addresses, SCHEMA, None)
    sites = site_entries(tasks, addresses)
    assert [(site.name, site.endpoint, site.reset_url, site.cmd) for site in sites] == [
        ("shopping", "http://shop.test:7770", "http://shop.test:7771/init", "serve"),
        ("reddit", "http://forum.test:9999", "http://forum.test:8877/init", None),
    ]
    assert sites[0].ready is not None
    assert sites[0].ready.url == "http://shop.test:7771/status"
    text = scenario_toml(tasks, participant="idle", settings={}, sites=sites)
    scenario = parse_scenario(text.encode(), tmp_path / "s.toml")
    # By the runner, since a judge resets a site only by the site itself.
    assert all(site.is_reset_elsewhere for site in scenario.sites)
    assert scenario.resets == {}


def test_v14_a_log_in_by_headers_is_its_sites_and_the_variables_value_is_in_no_file(tmp_path: Path) -> None:
    addresses = read(tmp_path, CONTROLLED)
    tasks = imported([row(43, "shopping_admin", starts=("__SHOPPING_ADMIN__/admin",))], addresses, SCHEMA, None)
    path = tmp_path / "s.toml"
    path.write_text(scenario_toml(tasks, participant="idle", settings={}, sites=site_entries(tasks, addresses)))
    scenario = load_scenario(path)
    (task,) = with_logins(scenario, scenario.tasks, {"ADMIN": "admin:pass-word"})
    assert [dict(each) for each in task.http_credentials] == [
        {"headers": {"X-Auto-Login": "admin:pass-word"}, "origin": "http://shop.test:7780"}
    ]
    assert task.secrets == ("admin:pass-word",)
    assert "pass-word" not in f"{task!r}{task.model_dump_json()}"


def test_a_sites_status_is_its_own_or_its_resets(tmp_path: Path) -> None:
    other = {"name": "s", "endpoint": "http://a.test", "reset_url": "http://a.test:8877/init"}
    with pytest.raises(ConfigError, match="not an address of the site"):
        validated(TypeAdapter(SiteEntry), {**other, "ready": {"url": "http://b.test/status"}}, "s.toml")
