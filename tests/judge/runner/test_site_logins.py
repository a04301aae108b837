"""A site's `login`: before the run, and again after each reset, for the tasks that have no other log-in."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from helpers.browser.hostile_site import Site
from helpers.browser.login_site import PASSWORD, USER, login_site
from helpers.ports import free_port
from helpers.scenario.texts import AGENTS
from judge.config import RunConfig
from judge.episode.reset import SiteTurns, restart_site
from judge.network.policy import NetworkPolicy
from judge.records.access import StorageState, read_storage_state
from judge.records.tasks import Task
from judge.runner.instances import placed
from judge.runner.launch import site_members
from judge.runner.restarts import restarts_of
from judge.runner.site_logins import SiteLogins
from judge.scenario.draft import RequestDraft
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError, SiteFault
from shared.settings import Settings

SETTINGS = Settings.from_environ({**Settings.from_environ().environ, "SHOP_PASSWORD": PASSWORD})
OTHER = {"cookies": [{"name": "other", "value": "value-1", "domain": "127.0.0.1"}]}


@pytest.fixture
def site() -> Iterator[Site]:
    with login_site() as running:
        yield running


def a_scenario(folder: Path, address: str, *, more: str = "", password: str = "${SHOP_PASSWORD}") -> Scenario:
    """A scenario with two tasks on the site; the second has a log-in of its own."""
    (folder / "own.json").write_text('{"cookies": []}')
    site = f'[[sites]]\nname = "shop"\nendpoint = "{address}"\n{more}\n'
    login = f'login = {{ url = "/login", username = "{USER}", password = "{password}" }}\n'
    tasks = "".join(
        f'[[tasks]]\ntask_id = "{name}"\nwebsite = "{address}/"\ntask = "x"\n{own}\n'
        for name, own in (("a", ""), ("b", 'storage_state = "own.json"'))
    )
    path = folder / "s.toml"
    path.write_text(f"{AGENTS}{site}{login}{tasks}")
    return load_scenario(path)


def address_of(site: Site) -> str:
    return site.url.rstrip("/")


async def greets(site: Site, task: Task) -> bool:
    """Whether the site knows the task's browser."""
    state = task.storage_state
    cookies = {each.name: each.value for each in state.cookies} if isinstance(state, StorageState) else {}
    async with httpx.AsyncClient(trust_env=False, cookies=cookies) as client:
        return "Welcome, Emma" in (await client.get(site.url)).text


@pytest.mark.e2e
async def test_tasks_without_a_log_in_of_their_own_get_that_of_their_site(site: Site, tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, address_of(site))
    logins = SiteLogins(scenario, SETTINGS)
    first, second = logins.applied(scenario.tasks, await logins.first({"shop"}))
    assert await greets(site, first)
    assert second == scenario.tasks[1]


@pytest.mark.e2e
async def test_a_log_in_is_repeated_whenever_the_site_is_reset(site: Site, tmp_path: Path) -> None:
    address = address_of(site)
    scenario = a_scenario(tmp_path, address, more=f'reset_url = "{address}/reset"')
    logins = SiteLogins(scenario, SETTINGS)
    (before, _) = logins.applied(scenario.tasks, await logins.first({"shop"}))
    async with restarts_of(scenario.sites, [], logins) as restarts:
        assert list(restarts) == [address]
        config = RunConfig(site_restarts=restarts, site_resets={address: f"{address}/reset"})
        turns = SiteTurns(config, lambda task: NetworkPolicy.for_websites([task.website]))
        for _ in range(2):
            async with turns.turn(before, is_first=False) as turn:
                assert not await greets(site, before)
                assert await greets(site, turn.task)
                assert not turn.shares_state
        async with turns.turn(scenario.tasks[1], is_first=True) as turn:
            assert turn.task == scenario.tasks[1]


@pytest.mark.e2e
async def test_each_attempt_is_logged_in_to_its_own_instance(site: Site, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with login_site() as other:
        both = (site, other)
        items = [address_of(each) for each in both]
        more = f'reset_url = "/reset"\ninstances = {json.dumps(items)}'
        scenario = a_scenario(tmp_path, address, more=more)
        _, instances = placed(site_members(scenario, SETTINGS), scenario.sites)
        logins = SiteLogins(scenario, SETTINGS)
        assert list(await logins.first({"shop"}, instances)) == [address]
        assert [len(each.paths) > 0 for each in both] == [True, False]
        async with restarts_of(scenario.sites, [], logins, instances) as restarts:
            resets = {"site_restarts": restarts, "site_resets": {address: f"{address}/reset"}}
            config = RunConfig(**resets, site_instances=instances)
            turns = SiteTurns(config, lambda task: NetworkPolicy.for_websites([task.website]))
            task = scenario.tasks[0]
            async with turns.turn(task, is_first=True) as one, turns.turn(task, is_first=True) as two:
                assert [turn.instances[address] for turn in (one, two)] == items
                greetings = [[await greets(each, turn.task) for each in both] for turn in (one, two)]
                assert greetings == [[True, False], [False, True]]


@pytest.mark.e2e
async def test_a_log_in_that_fails_after_a_reset_is_a_fault_of_the_site(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.browser.form_login._TIMEOUT_MS", 1500)
    address = address_of(site)
    scenario = a_scenario(tmp_path, address, more=f'reset_url = "{address}/reset"', password="wrong-horse")
    logins = SiteLogins(scenario, SETTINGS)
    with pytest.raises(ConfigError, match=r"s\.toml: key 'login': site shop: cannot log in at .*/login"):
        await logins.first({"shop"})
    async with restarts_of(scenario.sites, [], logins) as restarts:
        with pytest.raises(SiteFault, match=r"could not be reset: .*it still asks for the password") as error:
            await restart_site(restarts[address], "a", {})
    assert "wrong-horse" not in str(error.value)


def test_a_password_that_is_not_set_is_noticed_before_anything_starts(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, "http://127.0.0.1:9100")
    with pytest.raises(
        ConfigError, match=r"\[\[sites\]\] #1, key 'login' needs the environment variable SHOP_PASSWORD"
    ):
        SiteLogins(scenario, Settings.from_environ({}))


def test_the_log_in_of_another_site_of_the_task_is_kept(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, "http://127.0.0.1:9100")
    task = scenario.tasks[0].model_copy(update={"storage_state": read_storage_state(OTHER)})
    state = read_storage_state({"cookies": [{**OTHER["cookies"][0], "name": "session"}]})
    (result,) = SiteLogins(scenario, SETTINGS).applied([task], {"http://127.0.0.1:9100": state})
    assert isinstance(result.storage_state, StorageState)
    assert [each.name for each in result.storage_state.cookies] == ["other", "session"]


def test_a_request_names_each_state_once(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, "http://127.0.0.1:9100")
    state = read_storage_state(OTHER)
    task, other = (each.model_copy(update={"storage_state": state}) for each in scenario.tasks)
    third = task.model_copy(update={"task_id": "c", "storage_state": None})
    # As planned, no task has a state; the runner has logged in for two of them since.
    planned = RequestDraft({}, scenario.config, (*scenario.tasks, third))
    assert "storage_states" not in json.loads(planned.text())
    document = json.loads(planned.with_tasks([task, other, third]).text())
    assert [table.get("storage_state") for table in document["config"]["tasks"]] == ["state-1", "state-1", None]
    assert document["storage_states"] == {"state-1": OTHER}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('storage_state = "own.json"', "login and storage_state"),
        ('ready = { url = "http://other.example/" }', "is not an address of the site"),
        ("ready = { status = 99 }", "status"),
    ],
)
def test_a_site_is_described_without_contradictions(tmp_path: Path, more: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        a_scenario(tmp_path, "http://127.0.0.1:9100", more=more)
